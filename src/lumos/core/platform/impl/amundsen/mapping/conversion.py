"""Canonical datasets as Amundsen's tables, and back.

A dataset that Lumos writes is kept whole beside the table. On reading, whatever others changed in
the table since then counts, and everything else is as it was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lumos.core.models import Field, LumosDataset, Owner, with_parts
from lumos.core.models.dataset import DatasetKind
from lumos.core.platform.impl.amundsen.mapping import tables
from lumos.core.platform.impl.amundsen.mapping.keys import TableKey, column_key, fits_key
from lumos.core.platform.impl.amundsen.mapping.records import AmundsenColumn, AmundsenTable
from lumos.core.platform.type_spelling import type_of_spelling

if TYPE_CHECKING:
    from pydantic import JsonValue

EXTENSION = "amundsen"
_MILLISECONDS = 10**11
"""The least number that is no time in seconds: it would be in the year 5138."""
_LONGEST_TEXT = 15_000
_LONGEST_COLUMN = 768
_BEYOND_MYSQL_UTF8 = 0x10000


def record_of(dataset: LumosDataset, key: TableKey) -> AmundsenTable:
    """Return what Amundsen can hold of a dataset."""
    extras = _extras(dataset.extensions.get(EXTENSION))
    known = badge_categories(extras, "table")
    labels = [tag for tag in dataset.tags if fits_key(tag, longest=tables.LONGEST_TAG)]
    owners = (owner.user for owner in dataset.ownership.owners if owner.user)
    return AmundsenTable(
        key=key.text,
        database=key.database,
        cluster=key.cluster,
        schema_name=key.schema,
        name=key.table,
        is_view=dataset.kind is DatasetKind.VIEW,
        description=native_text(dataset.documentation.description),
        tags=tuple(tag for tag in labels if tag not in known),
        badges=tuple(tag for tag in labels if tag in known),
        owners=tuple(name for name in owners if fits_key(name, longest=tables.LONGEST_USER)),
        columns=tuple(_column(field, key.text) for field in dataset.schema.fields),
        extras=extras,
    )


def dataset_of(record: AmundsenTable) -> LumosDataset:
    """Return the dataset of a table that Lumos did not write."""
    key = TableKey(record.database, record.cluster, record.schema_name, record.name)
    urn = key.urn()
    reads = record.read_count
    statistics = {
        "last_modified": _moment(record.last_updated),
        "query_count": None if reads is None or reads < 0 else reads,
    }
    return LumosDataset.from_json(
        {
            "urn": urn,
            "name": record.name,
            "platform": urn.platform,
            "kind": DatasetKind.VIEW if record.is_view else DatasetKind.TABLE,
            "database": record.cluster,
            "namespace": record.schema_name,
            "schema": {"fields": [_field(column) for column in record.columns]},
            "ownership": [{"user": name} for name in record.owners],
            "tags": (*record.tags, *record.badges),
            "documentation": {"description": record.description},
            "statistics": statistics if any(v is not None for v in statistics.values()) else None,
            "extensions": {EXTENSION: {"key": record.key, **record.extras}},
        }
    )


def merged(written: LumosDataset, now: AmundsenTable) -> LumosDataset:
    """Return the dataset as it was written, with what others changed in Amundsen since."""
    key = TableKey(now.database, now.cluster, now.schema_name, now.name)
    then = record_of(written, key)
    parts: dict[str, object] = {}
    if now.description != then.description:
        parts["documentation"] = written.documentation.model_copy(
            update={"description": now.description}
        )
    labels_then, labels_now = {*then.tags, *then.badges}, {*now.tags, *now.badges}
    if labels_then != labels_now:
        parts["tags"] = _changed(written.tags, labels_then, now=labels_now)
    if then.owners != now.owners:
        parts["ownership"] = _owners(written, then=then.owners, now=now.owners)
    if then.columns != now.columns:
        fields = _fields(written.schema.fields, then=then.columns, now=now.columns)
        parts["schema"] = written.schema.model_copy(update={"fields": fields})
    if then.extras != now.extras:
        parts["extensions"] = {
            **written.extensions,
            EXTENSION: {"key": now.key, **now.extras},
        }
    return with_parts(written, **parts) if parts else written


def native_text(text: str | None, *, longest: int = _LONGEST_TEXT) -> str | None:
    """Return text as any MySQL table with Unicode keeps it; nothing for nothing."""
    if not text:
        return None
    return "".join(map(_native_character, text[:longest]))


def badge_categories(extras: Mapping[str, JsonValue], level: str) -> Mapping[str, str]:
    """Return the category of each badge that tables, or columns, are known to have."""
    badges = extras.get("badges")
    known = badges.get(level) if isinstance(badges, Mapping) else None
    given = known.items() if isinstance(known, Mapping) else ()
    return {name: category for name, category in given if isinstance(category, str)}


def _moment(told: int | None) -> datetime | None:
    """Return a time of Amundsen: seconds, or the milliseconds that some publishers write."""
    if told is None:
        return None
    try:
        return datetime.fromtimestamp(told / 1_000 if abs(told) >= _MILLISECONDS else told, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _native_character(character: str) -> str:
    readable = character.isprintable() or character in "\n\t"
    return character if readable and ord(character) < _BEYOND_MYSQL_UTF8 else "?"


def _column(field: Field, table_key: str) -> AmundsenColumn:
    spelling = field.native_type or field.signature().lower()
    if len(spelling) > tables.LONGEST_TYPE:
        spelling = f"{spelling[: tables.LONGEST_TYPE - 3]}..."
    return AmundsenColumn(
        key=column_key(table_key, field.name),
        name=native_text(field.name, longest=_LONGEST_COLUMN) or "?",
        type=native_text(spelling) or "?",
        description=native_text(field.description),
        badges=tuple(tag for tag in field.tags if fits_key(tag, longest=tables.LONGEST_TAG)),
    )


def _field(column: AmundsenColumn) -> dict[str, object]:
    return {
        "name": column.name,
        **type_of_spelling(column.type),
        "description": column.description,
        "tags": column.badges,
    }


def _changed(kept: Iterable[str], then: set[str], *, now: set[str]) -> tuple[str, ...]:
    """Return the names with those gone that were taken away, and those that were added."""
    return (*(name for name in kept if name not in then - now), *sorted(now - then))


def _owners(
    written: LumosDataset, *, then: tuple[str, ...], now: tuple[str, ...]
) -> tuple[Owner, ...]:
    gone = {*then} - {*now}
    stay = (owner for owner in written.ownership.owners if owner.user not in gone)
    return (*stay, *(Owner(user=name) for name in now if name not in then))


def _fields(
    written: tuple[Field, ...],
    *,
    then: tuple[AmundsenColumn, ...],
    now: tuple[AmundsenColumn, ...],
) -> tuple[Field, ...]:
    known = {column.key: (column, field) for column, field in zip(then, written, strict=True)}
    return tuple(_field_now(column, known.get(column.key)) for column in now)


def _field_now(now: AmundsenColumn, known: tuple[AmundsenColumn, Field] | None) -> Field:
    if known is None or known[0].type != now.type:
        return Field.from_json(_field(now))
    then, field = known
    changes: dict[str, object] = {}
    if then.description != now.description:
        changes["description"] = now.description
    if then.badges != now.badges:
        changes["tags"] = _changed(field.tags, {*then.badges}, now={*now.badges})
    return field.model_copy(update=changes)


def _extras(extension: JsonValue) -> dict[str, JsonValue]:
    """Return what a dataset carries that was once read from Amundsen, without its key there."""
    if not isinstance(extension, Mapping):
        return {}
    return {name: extension[name] for name in ("badges", "rows") if name in extension}
