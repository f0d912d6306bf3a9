"""Reads tables and views with their columns and tags, many by one statement."""
# ruff: noqa: S608 - names and text go into statements through `sql` alone

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from lumos.core.errors import (
    PlatformError,
    PlatformForbiddenError,
    PlatformLimitError,
    PlatformNotFoundError,
)
from lumos.core.platform.impl.snowflake.mapping.records import (
    DYNAMIC_TABLE,
    ICEBERG_TABLE,
    ColumnRecord,
    TableKey,
    TableRecord,
    TagUse,
    snowflake_type,
)
from lumos.core.platform.impl.snowflake.mapping.sql import holds_one, identifier, literal, qualified

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models import Urn
    from lumos.core.platform.impl.snowflake.client import Row, SnowflakeSession
    from lumos.core.platform.impl.snowflake.settings import SnowflakeSettings

_MOST_NAMED: Final = 1_000
"""How many tables one statement names; Snowflake takes up to 16,384 expressions in a list."""
_TABLE_COLUMNS: Final = (
    "TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, TABLE_OWNER, COMMENT, ROW_COUNT, BYTES, LAST_ALTERED, "
    "CREATED, CLUSTERING_KEY, IS_TRANSIENT, RETENTION_TIME, IS_ICEBERG, IS_DYNAMIC"
)
_COLUMN_COLUMNS: Final = (
    "TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, DATA_TYPE, IS_NULLABLE, COLUMN_DEFAULT, "
    "NUMERIC_PRECISION, NUMERIC_SCALE, CHARACTER_MAXIMUM_LENGTH, COMMENT"
)
_TAG_COLUMNS: Final = (
    "OBJECT_DATABASE, OBJECT_SCHEMA, OBJECT_NAME, COLUMN_NAME, LEVEL, "
    "TAG_DATABASE, TAG_SCHEMA, TAG_NAME, TAG_VALUE, APPLY_METHOD"
)
_PROPAGATED: Final = "PROPAGATED"
"""How a tag came there that Snowflake carried over from another table."""
_ABOVE_TABLES: Final = ("ACCOUNT", "DATABASE", "SCHEMA")
_EXTRAS: Final = ("created", "clustering_key", "is_transient", "retention_time")
Refused = Callable[["Urn", PlatformError], object]
_Tags = Mapping[tuple[TableKey, str | None], tuple[TagUse, ...]]


class TableReader:
    """Tables and views of the databases that are catalogued."""

    def __init__(self, session: SnowflakeSession, settings: SnowflakeSettings) -> None:
        self._session = session
        self._settings = settings

    def heads(self) -> dict[Urn, TableRecord]:
        """Return all tables and views, without their columns and tags."""
        found: dict[Urn, TableRecord] = {}
        for database in self._settings.databases:
            found |= {record.key.urn: record for record in self._all_heads(database)}
        return found

    def schemas(self) -> set[tuple[str, str]]:
        """Return the schemas that the role sees, each with its database."""
        return {
            (database, schema)
            for database in self._settings.databases
            for schema in self._schemas_of(database)
        }

    def read(self, urns: Iterable[Urn]) -> dict[Urn, TableRecord]:
        """Return those of some datasets that are tables or views, with columns and tags.

        Raises:
            PlatformForbiddenError: the role may not read the tags of one of them.
        """
        keys = [key for urn in urns if (key := TableKey.of(urn)) is not None]
        return self.filled(self._heads_of(keys))

    def filled(
        self, heads: Sequence[TableRecord], *, refused: Refused | None = None
    ) -> dict[Urn, TableRecord]:
        """Return tables with their columns and tags.

        Args:
            heads: the tables.
            refused: is called with each table whose tags the role may not read, and the error.
                Without it the error is raised. A table without its tags would look as if people
                had removed them.
        """
        unknown: dict[TableKey, PlatformError] = {}
        tags = self._tags([head.key for head in heads], unknown) if self._settings.use_tags else {}
        if unknown:  # some of them may have been dropped in the meantime
            there = {head.key for head in self._heads_of(unknown)}
            for key, error in unknown.items():
                if key in there and refused is None:
                    raise error
                if key in there and refused is not None:
                    refused(key.urn, error)
        known = [head for head in heads if head.key not in unknown]
        columns = self._columns([head.key for head in known], tags)
        return {
            head.key.urn: head._replace(
                columns=tuple(columns.get(head.key, ())), tags=tags.get((head.key, None), ())
            )
            for head in known
        }

    def columns_with(self, words: Sequence[str]) -> Iterator[tuple[TableKey, str, str]]:
        """Yield table, name and comment of the columns that hold one of the words."""
        for database in self._settings.databases:
            statement = (
                "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COMMENT "
                f"FROM {identifier(database)}.INFORMATION_SCHEMA.COLUMNS "
                f"WHERE ({holds_one(('COLUMN_NAME', 'COMMENT'), words)})"
            )
            for schema, table, column, comment in self._rows_of_all(database, statement):
                yield TableKey(database, str(schema), str(table)), str(column), str(comment or "")

    def _rows_of_all(self, database: str, statement: str) -> Iterator[Row]:
        """Yield what a statement gives of a whole database; of a large one, schema by schema."""
        try:
            yield from self._session.rows(statement)
        except PlatformLimitError:
            for schema in sorted(self._schemas_of(database)):
                within = f"{statement} AND TABLE_SCHEMA = {literal(schema)}"
                yield from self._session.rows(within)

    def _schemas_of(self, database: str) -> set[str]:
        schemata = f"{identifier(database)}.INFORMATION_SCHEMA.SCHEMATA"
        rows = self._session.rows(f"SELECT SCHEMA_NAME FROM {schemata}")
        return {str(row[0]) for row in rows}

    def _chunks(self, keys: Iterable[TableKey]) -> Iterator[tuple[str, list[TableKey]]]:
        by_database: dict[str, list[TableKey]] = defaultdict(list)
        for key in keys:
            if key.database in self._settings.databases:
                by_database[key.database].append(key)
        for database, within in by_database.items():
            for start in range(0, len(within), _MOST_NAMED):
                yield database, within[start : start + _MOST_NAMED]

    def _heads_of(self, keys: Iterable[TableKey]) -> list[TableRecord]:
        return [
            _head(database, row)
            for database, chunk in self._chunks(keys)
            for row in self._session.rows(f"{self._listing(database)} AND {_named(chunk)}")
        ]

    def _all_heads(self, database: str) -> Iterator[TableRecord]:
        for row in self._rows_of_all(database, self._listing(database)):
            yield _head(database, row)

    def _listing(self, database: str) -> str:
        """Return the statement that lists tables and views; what is Lumos's own is not among them.

        A further condition may be appended.
        """
        hidden = ["INFORMATION_SCHEMA"]
        stash_database, stash_schema = self._settings.stash_place
        if database == stash_database:
            hidden.append(stash_schema)
        return (
            f"SELECT {_TABLE_COLUMNS} FROM {identifier(database)}.INFORMATION_SCHEMA.TABLES "
            f"WHERE TABLE_SCHEMA NOT IN ({', '.join(map(literal, hidden))})"
        )

    def _columns(
        self, keys: Iterable[TableKey], tags: _Tags
    ) -> Mapping[TableKey, list[ColumnRecord]]:
        found: dict[TableKey, list[ColumnRecord]] = defaultdict(list)
        for database, chunk in self._chunks(keys):
            for row in self._rows_of_columns(database, chunk):
                key = TableKey(database, str(row[0]), str(row[1]))
                found[key].append(_column(row, tags.get((key, str(row[2])), ())))
        return found

    def _rows_of_columns(self, database: str, keys: Sequence[TableKey]) -> list[Row]:
        """Return the columns of tables; of too many at once, by halves."""
        statement = (
            f"SELECT {_COLUMN_COLUMNS} FROM {identifier(database)}.INFORMATION_SCHEMA.COLUMNS "
            f"WHERE {_named(keys)} ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION"
        )
        try:
            return self._session.rows(statement)
        except PlatformLimitError:
            half = len(keys) // 2
            if not half:
                raise
            parts = (keys[:half], keys[half:])
            return [row for part in parts for row in self._rows_of_columns(database, part)]

    def _tags(self, keys: Sequence[TableKey], unknown: dict[TableKey, PlatformError]) -> _Tags:
        """Return the tags of tables and columns; tables that cannot be asked go into `unknown`."""
        found: dict[tuple[TableKey, str | None], list[TagUse]] = defaultdict(list)
        for start in range(0, len(keys), self._settings.tag_batch):
            asked = keys[start : start + self._settings.tag_batch]
            for database, schema, table, column, level, *tag, method in self._tag_rows(
                asked, unknown
            ):
                name = None if column is None else str(column)
                # A tag of a schema shows on all that lies in it, one of a table on its columns.
                is_own = level not in _ABOVE_TABLES if name is None else level == "COLUMN"
                if is_own and method != _PROPAGATED:
                    key = TableKey(str(database), str(schema), str(table))
                    found[key, name].append(TagUse(*(str(part or "") for part in tag)))
        return {place: tuple(sorted(uses)) for place, uses in found.items()}

    def _tag_rows(
        self, keys: Sequence[TableKey], unknown: dict[TableKey, PlatformError]
    ) -> list[Row]:
        """Return rows of tags; one table that cannot be asked fails the statement for all."""
        try:
            return self._session.rows(" UNION ALL ".join(map(_tags_of, keys)))
        except (PlatformNotFoundError, PlatformForbiddenError) as error:
            half = len(keys) // 2
            if not half:
                unknown[keys[0]] = PlatformForbiddenError(
                    f"the role of Lumos may not read the tags of {'.'.join(keys[0])}",
                    hint=error.hint,
                )
                return []
            parts = (keys[:half], keys[half:])
            return [row for part in parts for row in self._tag_rows(part, unknown)]


def _named(keys: Iterable[TableKey]) -> str:
    pairs = ", ".join(f"({literal(key.schema)}, {literal(key.table)})" for key in keys)
    return f"(TABLE_SCHEMA, TABLE_NAME) IN ({pairs})"


def _tags_of(key: TableKey) -> str:
    table = literal(qualified(*key))
    functions = identifier(key.database) + ".INFORMATION_SCHEMA"
    return " UNION ALL ".join(
        f"SELECT {_TAG_COLUMNS} FROM TABLE({functions}.{function}({table}, 'TABLE'))"
        for function in ("TAG_REFERENCES", "TAG_REFERENCES_ALL_COLUMNS")
    )


def _head(database: str, row: Row) -> TableRecord:
    schema, name, table_type, owner, comment, rows, size, altered, *extras, iceberg, dynamic = row
    special = ICEBERG_TABLE if iceberg == "YES" else DYNAMIC_TABLE if dynamic == "YES" else None
    pairs = zip(_EXTRAS, map(_json, extras), strict=True)
    return TableRecord(
        key=TableKey(database, str(schema), str(name)),
        table_type=special or str(table_type or "BASE TABLE"),
        owner=str(owner) if owner else None,
        comment=str(comment or ""),
        row_count=_count(rows),
        size_bytes=_count(size),
        altered=_moment(altered),
        extras={name: value for name, value in pairs if value is not None},
    )


def _column(row: Row, tags: tuple[TagUse, ...]) -> ColumnRecord:
    _, _, name, data_type, nullable, default, precision, scale, length, comment = row
    parts = snowflake_type(
        str(data_type), precision=_count(precision), scale=_count(scale), length=_count(length)
    )
    return ColumnRecord(
        name=str(name),
        type_parts=parts,
        nullable=nullable != "NO",
        default=None if default is None else str(default),
        comment=str(comment or ""),
        tags=tags,
    )


def _count(value: object) -> int | None:
    return int(value) if isinstance(value, int | float | Decimal) else None


def _moment(value: object) -> datetime | None:
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _json(value: object) -> JsonValue:
    moment = _moment(value)
    if moment is not None:
        return moment.astimezone(UTC).isoformat()
    if value is None or isinstance(value, str | int):
        return value
    return int(value) if isinstance(value, Decimal) else str(value)
