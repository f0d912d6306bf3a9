"""Moving the state database to another place."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lumos.core.controllers.results import MovedTable, StateMoveResult
from lumos.core.errors import StateError, UsageError
from lumos.core.progress import SILENT, Progress
from lumos.core.store.database import StateDatabase, engine_for
from lumos.core.store.same_database import same_database
from lumos.core.store.state_folder import DATABASE_FILE, FILE_INDEX, MIGRATIONS, SNAPSHOTS
from lumos.core.store.state_move import StateCopy, copy_state

if TYPE_CHECKING:
    from lumos.core.runtime.unit_of_work import UnitOfWork
    from lumos.core.store.engine import Engine

URL_VARIABLE: Final = "LUMOS_DATABASE_URL"
_LEFT_IN_PLACE: Final = (SNAPSHOTS, FILE_INDEX, MIGRATIONS)


class StateController:
    """What `lumos state` does."""

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work

    def move(self, to: str, progress: Progress = SILENT) -> StateMoveResult:
        """Copy the state database to an empty one elsewhere, and compare both.

        The state database of the settings is not changed, and stays in use until the settings
        name the other one.

        Raises:
            UsageError: `to` is empty or the database that is in use.
            StateLockedError: another process is writing.
            StateError: the destination is not empty, or cannot hold what the state holds.
        """
        if not to.strip():
            raise UsageError("--to is empty", hint="give a path or postgresql://…")
        engine = engine_for(to)
        source = self._work.existing_state()
        with self._work.exclude_writers("state move"):
            if engine.exists() and same_database(self._work.project.state_address, to):
                raise UsageError(f"{source.place} is where the state is already")
            copied = _copied(source, to, engine=engine, progress=progress)
            return self._result(copied, source=source.place, engine=engine)

    def _result(self, copied: StateCopy, *, source: str, engine: Engine) -> StateMoveResult:
        folder = self._work.state_dir
        return StateMoveResult(
            source=source,
            destination=engine.place,
            tables=tuple(MovedTable(**table._asdict()) for table in copied.tables),
            damaged=copied.damaged,
            damaged_rows=tuple(f"{each.kind} {each.name}" for each in copied.named),
            left_in_place=tuple(
                str(folder / name) for name in _LEFT_IN_PLACE if (folder / name).exists()
            ),
            next_step=self._next_step(engine),
        )

    def _next_step(self, engine: Engine) -> str:
        path = _file_of(engine)
        by_variable = bool(self._work.environment.get(URL_VARIABLE))
        if path is not None and path == (self._work.state_dir / DATABASE_FILE).absolute():
            what = URL_VARIABLE if by_variable else "database_url in the settings"
            return f"remove {what}: this is where the state is without it"
        address = "the URL given with --to" if path is None else f"sqlite:///{path}"
        if by_variable:
            return f"set {URL_VARIABLE} to {address}"
        return f"set database_url in the settings, or {URL_VARIABLE}, to {address}"


def _copied(source: StateDatabase, to: str, *, engine: Engine, progress: Progress) -> StateCopy:
    is_new = not engine.exists()
    with ExitStack() as undo:
        path = _file_of(engine)
        if is_new and path is not None:
            undo.callback(_remove, path)
        with StateDatabase.open(to) as target:
            copied = copy_state(source, target, progress=progress)
        undo.pop_all()
    return copied


def _file_of(engine: Engine) -> Path | None:
    from lumos.core.store.sqlite_engine import SqliteEngine

    return engine.path if isinstance(engine, SqliteEngine) else None


def _remove(path: Path) -> None:
    """Remove a database file that was made for a copy that failed."""
    try:
        for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
            path.with_name(name).unlink(missing_ok=True)
    except OSError as error:
        raise StateError(f"cannot remove {path}: {error.strerror}") from None
