"""Checks of a whole state database: what the engine finds wrong, and documents that are damaged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.errors import StateError
from lumos.core.progress import SILENT, Progress
from lumos.core.store.checksums import TABLES, CheckedTable, whole_rows

if TYPE_CHECKING:
    from lumos.core.errors import DamagedDocumentError
    from lumos.core.store.database import StateDatabase
    from lumos.core.store.engine import Row

_PAGE: Final = 1_000
_NAMED: Final = 5
_PROBLEMS: Final = 3


class DocumentCheck(NamedTuple):
    """What a scan of all stored documents found."""

    documents: int
    damaged: int
    named: tuple[DamagedDocumentError, ...]
    """The first of them."""


def check_structure(database: StateDatabase) -> None:
    """Let SQLite check its file: every page, index and reference.

    PostgreSQL checks what it reads, and has tools for the rest.

    Raises:
        StateError: it is damaged.
    """
    if database.dialect != "sqlite":
        return
    rows = database.query(f"PRAGMA integrity_check({_PROBLEMS})")
    found = [row.text("integrity_check") for row in rows]
    if found != ["ok"]:
        raise _damaged(database, f"SQLite finds {' and '.join(found).splitlines()[0]}")
    if dangling := database.query("PRAGMA foreign_key_check"):
        raise _damaged(database, f"{len(dangling):,} rows refer to others that are not there")


def check_documents(database: StateDatabase, progress: Progress = SILENT) -> DocumentCheck:
    """Compare every stored document with its checksum."""
    total = sum(_count(database, table) for table in TABLES)
    progress.stage("checking stored documents", total=total, unit="documents")
    done = damaged = 0
    named: list[DamagedDocumentError] = []
    for table in TABLES:
        for page in _pages(database, table):
            errors: list[DamagedDocumentError] = []
            whole_rows(page, table, errors.append)
            damaged += len(errors)
            named += errors[: _NAMED - len(named)]
            done += len(page)
            progress.advance(done)
    return DocumentCheck(done, damaged, tuple(named))


def _pages(database: StateDatabase, table: CheckedTable) -> Iterator[list[Row]]:
    keys = ", ".join(table.primary)
    marks = ", ".join(f":{key}" for key in table.primary)
    order = f"ORDER BY {keys} LIMIT {_PAGE}"
    rows = database.query(f"{table.select()} {order}")
    while rows:
        yield rows
        after = {key: rows[-1][key] for key in table.primary}
        rows = database.query(f"{table.select()} WHERE ({keys}) > ({marks}) {order}", after)


def _count(database: StateDatabase, table: CheckedTable) -> int:
    (row,) = database.query(f"SELECT count(*) AS n FROM {table.table}")  # noqa: S608 - our names
    return row.integer("n")


def _damaged(database: StateDatabase, reason: str) -> StateError:
    return StateError(
        f"{database.place} is damaged: {reason}",
        hint="restore a backup, or move it away, run lumos init and import the latest snapshot",
    )
