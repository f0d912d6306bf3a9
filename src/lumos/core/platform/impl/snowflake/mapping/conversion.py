"""Tables of Snowflake as canonical datasets, and what a dataset asks of its table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from lumos.core.models import LumosDataset
from lumos.core.models.dataset import DatasetKind
from lumos.core.platform.impl.snowflake.mapping.records import (
    MATERIALIZED_VIEW,
    PLATFORM,
    ColumnRecord,
    TableRecord,
    TagUse,
)
from lumos.core.platform.impl.snowflake.mapping.sql import shown_text

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models import Field
    from lumos.core.platform.impl.snowflake.settings import SnowflakeSettings

_LONGEST_NAME: Final = 255
LONGEST_COMMENT: Final = 32_000
MOST_TAGS: Final = 50
"""How many tags a table may have, and how many all of its columns together."""
OWN_VALUE: Final = "true"
"""The value of a tag that Lumos sets: Lumos knows tags that are there or not."""


class Conversion:
    """Between records and datasets, by where the tags of Lumos lie."""

    def __init__(self, settings: SnowflakeSettings) -> None:
        self._place = settings.stash_place
        self._use_tags = settings.use_tags
        self._transfer = settings.transfer_ownership

    def dataset(self, record: TableRecord) -> LumosDataset:
        """Return what a table says by itself."""
        extension: dict[str, JsonValue] = {"table_type": record.table_type, **record.extras}
        others: list[JsonValue] = [
            {"tag": ".".join(tag[:3]), "value": tag.value}
            for tag in record.tags
            if not self._is_own(tag)
        ]
        if others:
            extension["tags"] = others
        return LumosDataset.from_json(
            {
                "urn": record.key.urn,
                "name": record.key.table,
                "platform": PLATFORM,
                "kind": DatasetKind.VIEW if record.is_view else DatasetKind.TABLE,
                "database": record.key.database,
                "namespace": record.key.schema,
                "schema": {"fields": [self._field(column) for column in record.columns]},
                "ownership": [{"group": record.owner}] if record.owner else [],
                "tags": self._names(record.tags),
                "documentation": {"description": record.comment or None},
                "statistics": {
                    "row_count": record.row_count,
                    "total_size_bytes": record.size_bytes,
                    "last_modified": record.altered,
                },
                "extensions": {PLATFORM: extension},
            }
        )

    def wanted(self, dataset: LumosDataset, record: TableRecord) -> TableRecord:
        """Return a table as it is to be for a dataset; what Lumos may not change stays."""
        fields = {field.name: field for field in dataset.schema.fields}
        room = MOST_TAGS
        columns = []
        for column in record.columns:
            field = fields.get(column.name)
            changed = column if field is None else self._column(column, field, room=room)
            if record.kind == MATERIALIZED_VIEW:  # its columns take no comments afterwards
                changed = changed._replace(comment=column.comment)
            room -= len({*changed.tags} - {*column.tags})
            columns.append(changed)
        return record._replace(
            comment=shown_text(dataset.documentation.description, longest=LONGEST_COMMENT),
            tags=self._tags(dataset.tags, record.tags, room=MOST_TAGS),
            columns=tuple(columns),
            owner=self._owner(dataset, record),
        )

    def is_shown(self, tag: str) -> bool:
        """Return whether a tag can be one of Snowflake."""
        return (
            self._use_tags and tag == shown_text(tag, longest=_LONGEST_NAME) and bool(tag.strip())
        )

    def _owner(self, dataset: LumosDataset, record: TableRecord) -> str | None:
        groups = [owner.group for owner in dataset.ownership.owners if owner.group]
        if not self._transfer or not groups or record.owner in groups:
            return record.owner
        return groups[0]

    def _column(self, column: ColumnRecord, field: Field, *, room: int) -> ColumnRecord:
        return column._replace(
            comment=shown_text(field.description, longest=LONGEST_COMMENT),
            tags=self._tags(field.tags, column.tags, room=room),
        )

    def _tags(
        self, names: Iterable[str], held: tuple[TagUse, ...], *, room: int
    ) -> tuple[TagUse, ...]:
        """Return the tags of others as they are, and those of Lumos as they are to be."""
        others = [tag for tag in held if not self._is_own(tag)]
        there = {*self._names(others)}
        own = {tag.name: tag for tag in held if self._is_own(tag)}
        shown = [name for name in names if name not in there and self.is_shown(name)]
        database, schema = self._place
        made = [
            own.get(name) or TagUse(database, schema, name, OWN_VALUE)
            for name in shown[: max(0, room - len(others))]
        ]
        return tuple(sorted([*others, *made]))

    def _field(self, column: ColumnRecord) -> dict[str, object]:
        return {
            "name": column.name,
            **column.type_parts,
            "nullable": column.nullable,
            "default": column.default,
            "description": column.comment or None,
            "tags": self._names(column.tags),
        }

    def _names(self, tags: Iterable[TagUse]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(map(self._name, tags)))

    def _name(self, tag: TagUse) -> str:
        """Return a tag as Lumos knows it: one of others may say something by its value."""
        if self._is_own(tag) or tag.value in ("", OWN_VALUE):
            return tag.name
        return f"{tag.name}={tag.value}"

    def _is_own(self, tag: TagUse) -> bool:
        return (tag.database, tag.schema) == self._place
