"""Copying a whole state database into another one, and the proof that both are equal."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.errors import StateError, UnstorableValueError
from lumos.core.progress import SILENT, Progress
from lumos.core.store.catalog.search import SearchIndex, SearchText
from lumos.core.store.checksums import TABLES, CheckedTable, printable_key, whole_rows
from lumos.core.store.integrity import check_structure

if TYPE_CHECKING:
    from lumos.core.errors import DamagedDocumentError
    from lumos.core.store.database import StateDatabase
    from lumos.core.store.engine import Row, SqlValue

SEARCH_INDEX: Final = "search_index"
NOT_COPIED: Final = frozenset({"alembic_version", "leases", SEARCH_INDEX})
"""The destination has its own schema version; leases belong to processes that run now; the search
index has another form in each engine and is filled from its words."""

_PAGE: Final = 200
_NAMED: Final = 20


class StateTable(NamedTuple):
    """A table that is copied row by row.

    Attributes:
        name: the table.
        key: columns that identify a row, by which the rows are read in order.
    """

    name: str
    key: tuple[str, ...]

    @property
    def checks(self) -> tuple[CheckedTable, ...]:
        """The checksums that its rows have."""
        return tuple(each for each in TABLES if each.table == self.name)

    def describe(self, row: Row) -> str:
        """Name a row for people."""
        return f"{self.name} {' '.join(printable_key(row[column]) for column in self.key)}"


COPIED: Final = (  # a table comes after those that it refers to
    StateTable("datasets", ("urn",)),
    StateTable("dataset_labels", ("dataset_id", "kind", "value")),
    StateTable("contributions", ("urn", "contributor")),
    StateTable("observations", ("urn", "kind", "contributor", "sequence")),
    StateTable("lineage_edges", ("edge_key",)),
    StateTable("edge_contributions", ("edge_key", "contributor")),
    StateTable("entities", ("kind", "name")),
    StateTable("identity_map", ("urn", "catalog")),
    StateTable("versions", ("urn", "sequence")),
    StateTable("changes", ("urn", "sequence", "position")),
    StateTable("runs", ("id",)),
    StateTable("alerts", ("id",)),
    StateTable("sync_states", ("target", "kind", "name")),
    StateTable("scan_marks", ("source", "mark")),
    StateTable("configured_sources", ("settings", "contributor")),
)


class CopiedTable(NamedTuple):
    """A table that is equal in both databases."""

    name: str
    rows: int
    checksum: str
    """SHA-256 over all values of all rows in the order of their keys."""


class StateCopy(NamedTuple):
    """What was copied."""

    tables: tuple[CopiedTable, ...]
    damaged: int
    """Rows that do not match their own checksum; they were copied unchanged."""
    named: tuple[DamagedDocumentError, ...]
    """The first of them."""


def copy_state(
    source: StateDatabase, target: StateDatabase, *, progress: Progress = SILENT
) -> StateCopy:
    """Copy every row of a state database into an empty one, in one transaction of the target.

    No other process can write to either database meanwhile. Both are read to the end and compared
    before the target is committed; the source is not changed.

    Raises:
        StateLockedError: another process is writing to one of them.
        StateError: the target is not empty, the source is damaged so that the target cannot hold
            it, or the copy is not equal. The target then stays empty.
    """
    with source.transaction():
        _exclude_writers(source, mode="SHARE")
        check_structure(source)
        with target.transaction():
            _exclude_writers(target, mode="EXCLUSIVE")
            _require_empty(target)
            copied = _Copier(source, target, progress).run()
            if target.dialect == "postgresql":
                _continue_identities(target)
    return copied


class _Copier:
    def __init__(self, source: StateDatabase, target: StateDatabase, progress: Progress) -> None:
        self._source = source
        self._target = target
        self._progress = progress
        self._damaged = 0
        self._named: list[DamagedDocumentError] = []

    def run(self) -> StateCopy:
        tables = [self._table(table) for table in COPIED]
        tables.append(self._search_index())
        return StateCopy(tuple(tables), self._damaged, tuple(self._named))

    def _table(self, table: StateTable) -> CopiedTable:
        columns = table_columns(self._source, table.name)
        if columns != table_columns(self._target, table.name):
            raise StateError(f"the table {table.name} has other columns in {self._target.place}")
        total = _count(self._source, table.name)
        self._progress.stage(f"copying {table.name}", total=total, unit="rows")
        before = _Digest()
        for rows in pages_of(self._source, table, columns):
            self._note_damage(table, rows)
            self._insert(table, rows, columns)
            before.add(row.values for row in rows)
            self._progress.advance(before.rows)
        self._progress.stage(f"comparing {table.name}", total=total, unit="rows")
        after = _Digest()
        for rows in pages_of(self._target, table, columns):
            after.add(row.values for row in rows)
            self._progress.advance(after.rows)
        return self._equal(table.name, before, after, total=total)

    def _search_index(self) -> CopiedTable:
        total = _count(self._source, SEARCH_INDEX)
        self._progress.stage("building the search index", total=total, unit="datasets")
        before, after = _Digest(), _Digest()
        target = SearchIndex.on(self._target)
        for entries in _entries(SearchIndex.on(self._source)):
            for dataset_id, text in entries:
                target.put(dataset_id, text)
            before.add(_as_values(entries))
            self._progress.advance(before.rows)
        for entries in _entries(target):
            after.add(_as_values(entries))
        return self._equal(SEARCH_INDEX, before, after, total=total)

    def _equal(self, name: str, before: _Digest, after: _Digest, *, total: int) -> CopiedTable:
        if (before.rows, before.checksum) != (after.rows, after.checksum) or before.rows != total:
            raise StateError(
                f"the copy of {name} in {self._target.place} is not equal: {after.rows:,} of "
                f"{total:,} rows; nothing was moved",
                hint="run lumos doctor on the state, then try again",
            )
        return CopiedTable(name, after.rows, after.checksum)

    def _note_damage(self, table: StateTable, rows: Sequence[Row]) -> None:
        for check in table.checks:
            errors: list[DamagedDocumentError] = []
            whole_rows(rows, check, errors.append)
            self._damaged += len(errors)
            self._named += errors[: _NAMED - len(self._named)]

    def _insert(self, table: StateTable, rows: Sequence[Row], columns: Sequence[str]) -> None:
        try:
            with self._target.transaction():
                self._target.execute(*_insertion(table, rows, columns))
        except UnstorableValueError:
            self._raise_named(table, rows, columns)
            raise

    def _raise_named(self, table: StateTable, rows: Sequence[Row], columns: Sequence[str]) -> None:
        """Find the row that the target cannot hold."""
        for row in rows:
            try:
                with self._target.transaction():
                    self._target.execute(*_insertion(table, [row], columns))
            except UnstorableValueError:
                raise UnstorableValueError(
                    f"{self._target.place} cannot hold a damaged row: {table.describe(row)}; "
                    "nothing was moved",
                    hint="import it from a snapshot or restore a backup, then move again",
                ) from None


class _Digest:
    """The number of rows, and a checksum of their values that is the same on both engines."""

    def __init__(self) -> None:
        self.rows = 0
        self._hash = hashlib.sha256()

    def add(self, rows: Iterable[Sequence[SqlValue]]) -> None:
        for row in rows:
            self.rows += 1
            for value in row:
                content = _content(value)
                self._hash.update(f"{type(value).__name__}:{len(content)}:".encode())
                self._hash.update(content)

    @property
    def checksum(self) -> str:
        return self._hash.hexdigest()


def _content(value: SqlValue) -> bytes:
    if isinstance(value, bytes):
        return value
    return str(value).encode("utf-8", "surrogateescape")


def _exclude_writers(database: StateDatabase, *, mode: str) -> None:
    """Lock all tables against other writers; on SQLite the begin of the transaction does it."""
    if database.dialect == "postgresql":
        names = ", ".join((*(table.name for table in COPIED), SEARCH_INDEX))
        database.execute(f"LOCK TABLE {names} IN {mode} MODE")


def _require_empty(target: StateDatabase) -> None:
    for table in COPIED:
        if found := _count(target, table.name):
            raise StateError(
                f"{target.place} is not empty: it has {found:,} rows of {table.name}",
                hint="give --to a database without a Lumos state",
            )


def _continue_identities(target: StateDatabase) -> None:
    """Let new datasets have ids after the copied ones; SQLite does so by itself."""
    target.query(
        "SELECT setval(pg_get_serial_sequence('datasets', 'id'), max(id)) FROM datasets "
        "HAVING max(id) IS NOT NULL"
    )


def table_columns(database: StateDatabase, table: str) -> list[str]:
    """Return the names of the columns of a table in ascending order."""
    if database.dialect == "sqlite":
        sql = "SELECT name FROM pragma_table_info(:name)"
    else:
        sql = (
            "SELECT CAST(column_name AS text) AS name FROM information_schema.columns "
            "WHERE table_schema = current_schema() AND table_name = :name"
        )
    return sorted(row.text("name") for row in database.query(sql, {"name": table}))


def pages_of(
    database: StateDatabase, table: StateTable, columns: Sequence[str]
) -> Iterator[list[Row]]:
    """Yield the rows of a table in the order of its key, some at a time."""
    select = f"SELECT {', '.join(columns)} FROM {table.name}"  # noqa: S608 - names of the schema
    keys, marks = ", ".join(table.key), ", ".join(f":{key}" for key in table.key)
    order = f"ORDER BY {keys} LIMIT {_PAGE}"
    rows = database.query(f"{select} {order}")
    while rows:
        yield rows
        after = {key: rows[-1][key] for key in table.key}
        rows = database.query(f"{select} WHERE ({keys}) > ({marks}) {order}", after)


def _insertion(
    table: StateTable, rows: Sequence[Row], columns: Sequence[str]
) -> tuple[str, Mapping[str, SqlValue]]:
    """Return one statement for all rows, and its parameters."""
    values = ", ".join(
        f"({', '.join(f':{column}_{number}' for column in columns)})" for number in range(len(rows))
    )
    parameters = {
        f"{column}_{number}": value
        for number, row in enumerate(rows)
        for column, value in zip(columns, row.values, strict=True)
    }
    return f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES {values}", parameters  # noqa: S608


def _entries(index: SearchIndex) -> Iterator[list[tuple[int, SearchText]]]:
    entries = index.page(None, limit=_PAGE)
    while entries:
        yield entries
        entries = index.page(entries[-1][0], limit=_PAGE)


def _as_values(entries: Iterable[tuple[int, SearchText]]) -> Iterator[Sequence[SqlValue]]:
    """Return entries in a form in which the order of their words does not count."""
    for dataset_id, text in entries:
        yield dataset_id, *(" ".join(sorted(words)) for words in text)


def _count(database: StateDatabase, table: str) -> int:
    (row,) = database.query(f"SELECT count(*) AS n FROM {table}")  # noqa: S608 - names of the schema
    return row.integer("n")
