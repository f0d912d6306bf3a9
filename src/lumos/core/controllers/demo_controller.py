"""The demo: a lake that a person recognises, ingested, changed, and ingested again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.core.controllers.ingestion_controller import IngestionController
from lumos.core.controllers.report_controller import ReportController
from lumos.core.controllers.results import DemoResult
from lumos.core.errors import UsageError
from lumos.core.events import running
from lumos.core.runtime.project import Project
from lumos.core.runtime.unit_of_work import UnitOfWork
from lumos.core.settings import SETTINGS_FILE
from lumos.core.store.snapshots.snapshot_files import storing
from lumos.feature.demo.lake import evolve_lake, write_lake
from lumos.feature.extraction.wording import verdict

if TYPE_CHECKING:
    from lumos.core.progress import Progress

_MARKER = ".lumos-demo"
_SETTINGS = """\
# The settings of the Lumos demo.
sources:
  - type: local
    name: shop
    path: {lake}
"""


class DemoController:
    """What `lumos demo` does."""

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work

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
        project = Project(
            config=folder / SETTINGS_FILE,
            given_state_dir=folder / ".lumos",
            environment=self._work.environment,
            clock=self._work.clock,
        )
        with self._work.spark_session(progress.note), UnitOfWork(project) as work:
            first = IngestionController(work).ingest(progress=progress)
            progress.stage("changing the lake")
            evolve_lake(lake)
            second = IngestionController(work).ingest(progress=progress)
            summary = ReportController(work).write(report)
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
