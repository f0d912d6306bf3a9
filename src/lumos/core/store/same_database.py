"""Whether two addresses lead to the same state database."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from lumos.core.errors import NoCatalogError
from lumos.core.store.database import StateDatabase, engine_for
from lumos.core.store.sqlite_engine import SqliteEngine

_WHERE: Final = """
SELECT current_database() AS name, current_schema() AS inside,
       CAST(pg_postmaster_start_time() AS text) AS server
"""
"""What identifies a database in PostgreSQL: a server may have many names."""


def same_database(one: str | Path, other: str | Path) -> bool:
    """Return whether two addresses lead to one state database, however they are spelt.

    A server is asked, for neither its name nor the user's says which of its schemas is meant. What
    does not exist yet is no other's.

    Raises:
        StateError: a server cannot be reached.
    """
    if str(one) == str(other):
        return True
    first, second = engine_for(one), engine_for(other)
    if isinstance(first, SqliteEngine) and isinstance(second, SqliteEngine):
        return _same_file(first.path, second.path)
    if first.dialect != second.dialect:
        return False
    try:
        return _where(one) == _where(other)
    except NoCatalogError:
        return False


def _same_file(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)  # through links of both kinds
    except OSError:
        return one.resolve() == other.resolve()


def _where(address: str | Path) -> tuple[object, ...]:
    with StateDatabase.open(address, read_only=True) as database:
        (row,) = database.query(_WHERE)
    return row["name"], row["inside"], row["server"]
