"""The engine: a Spark that is kept warm on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumos.core.controllers.results import EngineResult, RunningEngine
from lumos.core.errors import UsageError

if TYPE_CHECKING:
    from lumos.core.runtime.unit_of_work import UnitOfWork
    from lumos.spark.engine_record import EngineRecord

_LONGEST_IDLE_MINUTES = 7 * 24 * 60


class EngineController:
    """What `lumos engine` does."""

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work
        self._environment = work.environment

    def start(self, idle_minutes: float) -> EngineResult:
        """Have an engine run that fits the settings.

        Raises:
            EngineError: it did not start.
            UsageError: the settings want Spark elsewhere, or the time makes no sense.
        """
        from lumos.spark.engine import start_engine
        from lumos.spark.engine_record import EngineFolder
        from lumos.spark.java import cache_folder

        if not 0 < idle_minutes <= _LONGEST_IDLE_MINUTES:
            raise UsageError(
                f"an engine cannot be idle for {idle_minutes:g} minutes",
                hint=f"use a number above 0 and up to {_LONGEST_IDLE_MINUTES:,}",
            )
        record, is_new = start_engine(
            self._work.settings.spark,
            EngineFolder.of(self._environment),
            environment=self._environment,
            cache_dir=cache_folder(self._environment),
            idle_minutes=idle_minutes,
        )
        return EngineResult(running=True, changed=is_new, engine=_shown(record, unfit=None))

    def stop(self) -> EngineResult:
        """Have no engine run.

        Raises:
            EngineError: it does not end.
        """
        from lumos.spark.engine import stop_engine
        from lumos.spark.engine_record import EngineFolder

        stopped = stop_engine(EngineFolder.of(self._environment))
        return EngineResult(running=False, changed=stopped)

    def status(self) -> EngineResult:
        """Return whether an engine runs, and whether commands of this project use it."""
        from lumos.spark.engine import find_engine
        from lumos.spark.engine_record import EngineFolder

        settings = self._work.settings.spark
        found = find_engine(settings, EngineFolder.of(self._environment))
        if found is None:
            return EngineResult(running=False, changed=False)
        never = "spark.engine is never" if settings.engine == "never" else None
        shown = _shown(found.record, unfit=never or found.unfit)
        return EngineResult(running=True, changed=False, engine=shown)


def _shown(record: EngineRecord, *, unfit: str | None) -> RunningEngine:
    return RunningEngine(
        pid=record.pid,
        port=record.port,
        lumos=record.lumos,
        spark=record.spark,
        java=record.java,
        master=record.master,
        started_at=record.started_at,
        idle_minutes=record.idle_minutes,
        log=record.log,
        unfit=unfit,
    )
