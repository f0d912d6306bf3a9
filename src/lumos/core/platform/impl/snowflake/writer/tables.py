"""Brings comments, tags and the owner of a table to what they are to be, by few statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from lumos.core.platform.impl.snowflake.mapping.records import ICEBERG_TABLE
from lumos.core.platform.impl.snowflake.mapping.sql import identifier, literal, qualified

if TYPE_CHECKING:
    from lumos.core.platform.impl.snowflake.client import SnowflakeSession
    from lumos.core.platform.impl.snowflake.mapping.records import ColumnRecord, TableRecord, TagUse


class TableWriter:
    """Writes what differs; it neither makes nor drops tables, columns or the tags of others."""

    def __init__(self, session: SnowflakeSession) -> None:
        self._session = session
        self._made: set[tuple[str, str, str]] = set()

    def make_tags(self, tags: Iterable[TagUse]) -> None:
        """Make those tags that Lumos has not made yet."""
        for key in sorted({tag[:3] for tag in tags} - self._made):
            self._session.run(f"CREATE TAG IF NOT EXISTS {qualified(*key)}")
            self._made.add(key)

    def write(self, now: TableRecord, wanted: TableRecord) -> None:
        """Change a table from what it is to what it is to be."""
        self.make_tags(_added(now, wanted))
        for statement in statements(now, wanted):
            self._session.run(statement)


def statements(now: TableRecord, wanted: TableRecord) -> Iterator[str]:
    """Yield what makes one state of a table into another."""
    kind, table = now.kind, qualified(*now.key)
    if now.comment != wanted.comment:
        text = literal(wanted.comment)
        if kind == ICEBERG_TABLE:
            yield f"ALTER {kind} {table} SET COMMENT = {text}"
        else:
            yield f"COMMENT ON {kind} {table} IS {text}"
    yield from _tagging(f"ALTER {kind} {table}", now.tags, wanted=wanted.tags)
    for before, after in zip(now.columns, wanted.columns, strict=True):
        yield from _of_column(table, kind, before=before, after=after)
    if wanted.owner and now.owner != wanted.owner:
        role = identifier(wanted.owner)
        yield f"GRANT OWNERSHIP ON {kind} {table} TO ROLE {role} COPY CURRENT GRANTS"


def _of_column(
    table: str, kind: str, *, before: ColumnRecord, after: ColumnRecord
) -> Iterator[str]:
    column = identifier(before.name)
    if before.comment != after.comment:
        text = literal(after.comment)
        if kind == "VIEW":  # of COMMENT ON COLUMN only columns of tables are documented
            yield f"ALTER VIEW {table} ALTER COLUMN {column} COMMENT {text}"
        else:
            yield f"COMMENT ON COLUMN {table}.{column} IS {text}"
    yield from _tagging(
        f"ALTER {kind} {table} MODIFY COLUMN {column}", before.tags, wanted=after.tags
    )


def _tagging(what: str, now: Iterable[TagUse], *, wanted: Iterable[TagUse]) -> Iterator[str]:
    held, goal = {*now}, {*wanted}
    if gone := sorted(held - goal):
        yield f"{what} UNSET TAG {', '.join(qualified(*tag[:3]) for tag in gone)}"
    if added := sorted(goal - held):
        pairs = (f"{qualified(*tag[:3])} = {literal(tag.value)}" for tag in added)
        yield f"{what} SET TAG {', '.join(pairs)}"


def _added(now: TableRecord, wanted: TableRecord) -> Iterator[TagUse]:
    yield from {*wanted.tags} - {*now.tags}
    for before, after in zip(now.columns, wanted.columns, strict=True):
        yield from {*after.tags} - {*before.tags}
