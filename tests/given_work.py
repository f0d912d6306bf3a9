"""A unit of work whose parts a test gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from typing_extensions import override

from lumos.core.errors import UnknownNameError
from lumos.core.models import Contributor
from lumos.core.platform.interface import MetadataPlatformInterface
from lumos.core.run_report import RunReport
from lumos.core.runtime.project import Project, utc_now
from lumos.core.runtime.runs import Run
from lumos.core.runtime.settings import LumosSettings
from lumos.core.runtime.unit_of_work import UnitOfWork
from lumos.core.store.database import StateDatabase
from unstored_runs import Unstored


@dataclass(frozen=True, kw_only=True)
class GivenProject(Project):
    """A project without a settings file."""

    given: LumosSettings

    @cached_property
    @override
    def settings(self) -> LumosSettings:
        return self.given


def given_project(
    state_dir: Path,
    settings: LumosSettings | None = None,
    *,
    clock: Callable[[], datetime] = utc_now,
) -> Project:
    """Return a project of these settings."""
    given = settings or LumosSettings()
    return GivenProject(given=given, given_state_dir=state_dir, environment={}, clock=clock)


class GivenWork(UnitOfWork):
    """Has the databases and catalogs that a test gives; reports of runs go to a list."""

    def __init__(
        self,
        project: Project,
        *,
        database: StateDatabase | None = None,
        platforms: Mapping[str | None, MetadataPlatformInterface] | None = None,
        reports: list[RunReport] | None = None,
    ) -> None:
        super().__init__(project)
        self._platforms = platforms
        self._reports = reports
        if database is not None:
            self.__dict__ |= {"reader": database, "writer": database}

    @override
    def platform(
        self, name: str | None = None, *, writing: bool = False, by: Contributor | None = None
    ) -> MetadataPlatformInterface:
        if self._platforms is None:
            return super().platform(name, writing=writing, by=by)
        if name not in self._platforms:
            raise UnknownNameError(f"nobody registered {name}")
        return self._platforms[name]

    @contextmanager
    @override
    def begin_run(self, operation: str) -> Iterator[Run]:
        if self._reports is None:
            with super().begin_run(operation) as run:
                yield run
        else:
            yield Unstored(self._reports)


def open_work(
    *,
    config: Path | None = None,
    state_dir: Path | None = None,
    environment: Mapping[str, str],
    clock: Callable[[], datetime] = utc_now,
) -> UnitOfWork:
    """Open a unit of work on a project."""
    return UnitOfWork(
        Project(config=config, given_state_dir=state_dir, environment=environment, clock=clock)
    )
