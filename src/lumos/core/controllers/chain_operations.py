"""The operations that a chain can be made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from lumos.core.controllers.chain_controller import Operation
from lumos.core.errors import GateFailedError
from lumos.core.run_report import RunRecorder, RunReport

if TYPE_CHECKING:
    from lumos.core.controllers.import_controller import ImportController
    from lumos.core.controllers.ingestion_controller import IngestionController
    from lumos.core.controllers.people_controller import PeopleController
    from lumos.core.controllers.report_controller import ReportController
    from lumos.core.controllers.snapshot_controller import SnapshotController
    from lumos.core.controllers.sync_controller import SyncController
    from lumos.core.run_report import Clock


class ChainProject(Protocol):
    """The project that the steps of a chain work on."""

    @property
    def snapshots(self) -> SnapshotController: ...

    @property
    def ingestion(self) -> IngestionController: ...

    @property
    def people(self) -> PeopleController: ...

    @property
    def reports(self) -> ReportController: ...

    @property
    def sync(self) -> SyncController: ...

    def importer(self) -> ImportController: ...

    def project_of(self, file: Path) -> Self:
        """Return the project of another settings file."""
        ...


class ChainOperations:
    """Every operation of a chain.

    `ingest:FILE` opens the project of FILE, and the steps after it work on that project.
    """

    def __init__(self, project: ChainProject, *, clock: Clock) -> None:
        self._first = project
        self._project = project
        self._clock = clock

    def by_name(self) -> dict[str, Operation]:
        return {
            "ingest": Operation("FILE", self._ingest),
            "report": Operation("FILE", self._reported("report", self._report_page)),
            "sync": Operation("CATALOG", lambda name: self._project.sync.sync(name).report),
            "import": Operation("FILE", lambda file: self._project.importer().run(file).report),
            "export": Operation("FILE", self._export),
            "validate": Operation("FILE", self._reported("validate", self._validate)),
            "snapshot": Operation(None, self._reported("snapshot", self._snapshot)),
            "create-users": Operation(
                "FILE", lambda file: self._project.people.create_users(Path(file))
            ),
            "create-groups": Operation(
                "FILE", lambda file: self._project.people.create_groups(Path(file))
            ),
            "assign-ownership": Operation(
                "FILE", lambda file: self._project.people.assign(Path(file))
            ),
            "enrich": Operation("FILE", lambda file: self._project.people.enrich(Path(file))),
        }

    def _ingest(self, file: str) -> RunReport:
        self._project = self._first.project_of(Path(file))
        return self._project.ingestion.ingest().as_run_report()

    def _report_page(self, file: str) -> str:
        self._project.reports.write(Path(file))
        return file

    def _export(self, file: str) -> RunReport:
        result = self._project.snapshots.export(Path(file))
        if result.report.failed:
            return result.report
        return self._reported("export", lambda _: result.output)(file)

    def _validate(self, reference: str) -> str:
        result = self._project.snapshots.validate(reference)
        problems = [check.message for check in result.checks if check.status == "fail"]
        if problems:
            raise GateFailedError(
                f"{reference} is not valid: {problems[0]}",
                hint=f"see all with lumos validate --input {reference}",
            )
        return reference

    def _snapshot(self, _argument: str) -> str:
        return self._project.snapshots.create().id

    def _reported(self, name: str, act: Callable[[str], str]) -> Callable[[str], RunReport]:
        """Return an operation that reports the one item that an action names."""

        def run(argument: str) -> RunReport:
            recorder = RunRecorder(name, started_at=self._clock(), keep_done=True)
            recorder.done(act(argument))
            return recorder.finish(at=self._clock())

        return run
