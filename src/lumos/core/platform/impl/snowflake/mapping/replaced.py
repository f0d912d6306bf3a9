"""`CREATE OR REPLACE TABLE` takes comments and tags away; that is nobody's wish.

What Lumos shows on a table is noted in the stash, with the time at which the table was made. On
a table that was made since then, what is missing counts as lost, and not as removed by people.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from lumos.core.json_reading import object_at, text_at, texts_at
from lumos.core.platform.impl.snowflake.mapping.conversion import OWN_VALUE
from lumos.core.platform.impl.snowflake.mapping.records import TableRecord, TagUse

if TYPE_CHECKING:
    from pydantic import JsonValue

_Place = tuple[str, str]
_Note = Mapping[str, "JsonValue"]


def note_of(record: TableRecord, place: _Place) -> dict[str, JsonValue]:
    """Return what a table shows, and when it was made."""
    columns: dict[str, JsonValue] = {}
    for column in record.columns:
        tags = _own(column.tags, place)
        if column.comment or tags:
            columns[column.name] = {"comment": column.comment, "tags": tags}
    return {
        "created": record.extras.get("created"),
        "comment": record.comment,
        "tags": _own(record.tags, place),
        "columns": columns,
    }


def with_lost(record: TableRecord, note: JsonValue, *, place: _Place) -> TableRecord:
    """Return a table with what it lost, if it was replaced since the note was made."""
    if not isinstance(note, dict) or note.get("created") in (None, _created(record)):
        return record
    of_columns = object_at(note, "columns")
    columns = (
        column._replace(
            comment=column.comment or text_at(noted, "comment") or "",
            tags=_with_tags(column.tags, noted, place),
        )
        if (noted := object_at(of_columns, column.name))
        else column
        for column in record.columns
    )
    return record._replace(
        comment=record.comment or text_at(note, "comment") or "",
        tags=_with_tags(record.tags, note, place),
        columns=tuple(columns),
    )


def _created(record: TableRecord) -> JsonValue:
    return record.extras.get("created")


def _own(tags: Iterable[TagUse], place: _Place) -> list[JsonValue]:
    return [tag.name for tag in tags if (tag.database, tag.schema) == place]


def _with_tags(tags: tuple[TagUse, ...], note: _Note, place: _Place) -> tuple[TagUse, ...]:
    there = {tag[:3] for tag in tags}
    noted = (TagUse(*place, name, OWN_VALUE) for name in texts_at(note, "tags"))
    return tuple(sorted([*tags, *(tag for tag in noted if tag[:3] not in there)]))
