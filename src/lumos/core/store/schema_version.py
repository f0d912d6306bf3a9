"""Which schema this Lumos knows, and how an older one is brought up to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.core.errors import StateError

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy.exc import DBAPIError

    from lumos.core.store.engine import Engine

REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010")
"""Every revision in order; a test holds it to the files in `migrations/versions`."""

HEAD = REVISIONS[-1]
MIGRATIONS = Path(__file__).parent / "migrations"
SQLITE_SCRIPT = MIGRATIONS / "head_sqlite.sql"
"""The schema that all migrations make in an empty SQLite; `make generate` writes it."""


def is_current(revision: str | None, *, place: str) -> bool:
    """Return whether a database needs no migration.

    Raises:
        StateError: a newer Lumos made the database.
    """
    if revision is not None and revision not in REVISIONS:
        raise StateError(
            f"{place} was made by a newer Lumos (schema {revision}, this one knows {HEAD})",
            hint="upgrade Lumos: pip install --upgrade lumos",
        )
    return revision == HEAD


def create_or_upgrade(engine: Engine, *, revision: str | None) -> None:
    """Make the schema of a database that has none, or bring an older one up to date."""
    if revision is not None or not engine.make_schema():
        upgrade(engine)


def statements_of(script: str) -> Iterator[str]:
    """Yield the statements of a script for SQLite, each of which ends at the end of a line."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def upgrade(engine: Engine, *, to: str = HEAD) -> None:
    """Bring the schema up to a revision in one transaction that excludes all other migrations."""
    from alembic import command

    _migrate(engine, lambda config: command.upgrade(config, to))


def downgrade(engine: Engine, *, to: str) -> None:
    """Bring the schema back to a revision, or to nothing with `base`."""
    from alembic import command

    _migrate(engine, lambda config: command.downgrade(config, to))


def _migrate(engine: Engine, step: Callable[[Config], None]) -> None:
    from alembic.config import Config
    from alembic.util import CommandError
    from sqlalchemy.exc import DBAPIError

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    migration_engine = engine.migration_engine()
    try:
        with migration_engine.begin() as connection:
            config.attributes["connection"] = connection
            step(config)
    except DBAPIError as error:
        raise engine.translated(_cause(error)) from None
    except CommandError:
        raise StateError(f"the schema of {engine.place} is not one that this Lumos knows") from None
    finally:
        migration_engine.dispose()


def _cause(error: DBAPIError) -> Exception:
    return error.orig if isinstance(error.orig, Exception) else error
