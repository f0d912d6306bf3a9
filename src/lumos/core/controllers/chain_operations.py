"""The operations that a chain can be made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.core.controllers.chain_controller import Operation
from lumos.core.errors import GateFailedError
from lumos.core.run_report import RunRecorder, RunReport

if TYPE_CHECKING:
    from lumos.core.controllers.import_controller import ImportController
    from lumos.core.controllers.people_controller import PeopleController
    from lumos.core.controllers.publishing import Clock
    from lumos.core.controllers.report_controller import ReportController
    from lumos.core.controllers.snapshot_controller import SnapshotController
    from lumos.core.controllers.sync_controller import SyncController


def chain_operations(
    *,
    snapshots: Callable[[], SnapshotController],
    importer: Callable[[], ImportController],
    people: Callable[[], PeopleController],
    ingest: Callable[[Path], RunReport],
    reports: Callable[[], ReportController],
    sync: Callable[[], SyncController],
    clock: Clock,
) -> dict[str, Operation]:
    """Return every operation by name; the parts are asked for when an operation runs."""

    def reported(name: str, act: Callable[[str], str]) -> Callable[[str], RunReport]:
        def run(argument: str) -> RunReport:
            recorder = RunRecorder(name, started_at=clock(), keep_done=True)
            recorder.done(act(argument))
            return recorder.finish(at=clock())

        return run

    def validated(reference: str) -> str:
        result = snapshots().validate(reference)
        problems = [check.message for check in result.checks if check.status == "fail"]
        if problems:
            raise GateFailedError(
                f"{reference} is not valid: {problems[0]}",
                hint=f"see all with lumos validate --input {reference}",
            )
        return reference

    def exported(file: str) -> RunReport:
        result = snapshots().export(Path(file))
        if result.report.failed:
            return result.report
        return reported("export", lambda _: result.output)(file)

    def reported_page(file: str) -> str:
        reports().write(Path(file))
        return file

    return {
        "ingest": Operation("FILE", lambda file: ingest(Path(file))),
        "report": Operation("FILE", reported("report", reported_page)),
        "sync": Operation("CATALOG", lambda name: sync().sync(name).report),
        "import": Operation("FILE", lambda file: importer().run(file).report),
        "export": Operation("FILE", exported),
        "validate": Operation("FILE", reported("validate", validated)),
        "snapshot": Operation(None, reported("snapshot", lambda _: snapshots().create().id)),
        "create-users": Operation("FILE", lambda file: people().create_users(Path(file))),
        "create-groups": Operation("FILE", lambda file: people().create_groups(Path(file))),
        "assign-ownership": Operation("FILE", lambda file: people().assign(Path(file))),
        "enrich": Operation("FILE", lambda file: people().enrich(Path(file))),
    }
