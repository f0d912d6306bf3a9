"""The demo: a lake that a person recognises, ingested, changed, and ingested again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lumos.core.controllers.results import DemoResult
from lumos.core.errors import UsageError
from lumos.core.events import running
from lumos.core.settings import SETTINGS_FILE
from lumos.core.store.snapshots.snapshot_files import storing
from lumos.feature.demo.lake import evolve_lake, write_lake
from lumos.feature.extraction.wording import verdict

if TYPE_CHECKING:
    from lumos.core.controllers.ingestion_controller import IngestionController
    from lumos.core.controllers.report_controller import ReportController
    from lumos.core.progress import Progress
    from lumos.spark.lazy_session import OpenSession

_MARKER = ".lumos-demo"
_SETTINGS = """\
# The settings of the Lumos demo.
sources:
  - type: local
    name: shop
    path: {lake}
"""


class DemoProject(Protocol):
    """The project of the demo, put together."""

    @property
    def ingestion(self) -> IngestionController: ...

    @property
    def reports(self) -> ReportController: ...


class DemoController:
    """What `lumos demo` does."""

    def __init__(
        self,
        *,
        open_project: Callable[[Path], AbstractContextManager[DemoProject]],
        open_session: OpenSession,
    ) -> None:
        self._open_project = open_project
        self._open_session = open_session

    @running("demo")
    def run(self, folder: Path, *, progress: Progress) -> DemoResult:
        """Make the lake in a new folder and show what Lumos does with it.

        Raises:
            UsageError: the folder holds something that is not a demo.
        """
        folder = folder.absolute()
        self.clean(folder)
        lake, report = folder / "lake", folder / "report.html"
        progress.stage("writing the lake")
        with storing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / _MARKER).touch()
        write_lake(lake)
        path = json.dumps(str(lake)).replace("${", "$${")
        (folder / SETTINGS_FILE).write_text(_SETTINGS.format(lake=path), encoding="utf-8")
        with self._open_session(progress.note), self._open_project(folder) as project:
            first = project.ingestion.ingest(progress=progress)
            progress.stage("changing the lake")
            evolve_lake(lake)
            second = project.ingestion.ingest(progress=progress)
            summary = project.reports.write(report)
        return DemoResult(
            folder=str(folder),
            lake=str(lake),
            first=first,
            second=second,
            verdict=verdict(summary),
            report=str(report),
        )

    def clean(self, folder: Path) -> bool:
        """Remove an earlier demo and return whether there was one.

        Raises:
            UsageError: the folder holds something that is not a demo.
        """
        if folder.exists() and (folder.is_symlink() or not folder.is_dir()):
            raise UsageError(f"{folder} is not a folder", hint="give another path with --path")
        if not folder.exists() or not any(folder.iterdir()):
            return False
        if not (folder / _MARKER).exists():
            raise UsageError(
                f"{folder} is not empty and holds no demo", hint="give another folder with --path"
            )
        shutil.rmtree(folder)
        return True
