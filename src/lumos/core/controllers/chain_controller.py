"""Chains of operations, each written `operation:argument`; each step dispatches one request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, Self, TypeVar

from lumos.core.controllers.results import (
    ChainResult,
    ExportResult,
    ImportResult,
    IngestResult,
    ValidationResult,
)
from lumos.core.errors import GateFailedError, UsageError
from lumos.core.requests.people import (
    EnrichRequest,
    OwnershipAssignRequest,
    OwnershipGroupsRequest,
    OwnershipUsersRequest,
)
from lumos.core.requests.project import ReportRequest
from lumos.core.requests.snapshots import (
    ExportRequest,
    ImportRequest,
    SnapshotCreateRequest,
    ValidateRequest,
)
from lumos.core.requests.sources import IngestRequest, SyncRequest
from lumos.core.run_report import RunRecorder, RunReport
from lumos.core.store.snapshots.manifest import SnapshotInfo
from lumos.feature.sync.results import SyncResult

if TYPE_CHECKING:
    from lumos.core.requests.base import Request
    from lumos.core.runtime.project import Project

R = TypeVar("R")


class Dispatch(Protocol):
    """Carries out requests of one project."""

    @property
    def project(self) -> Project: ...

    def of(self, file: Path | None) -> Self:
        """Return what carries out the requests of another settings file."""
        ...

    def dispatch(self, request: Request[R]) -> R: ...


class _Step(NamedTuple):
    """One thing that a chain can do."""

    argument: str | None
    """What its argument is, such as FILE; None where it takes none."""
    request: Callable[[str], Request[object]]


_INGEST: Final = "ingest"
STEPS: Final = {
    _INGEST: _Step("FILE", lambda _: IngestRequest()),
    "report": _Step("FILE", lambda file: ReportRequest(output=Path(file))),
    "sync": _Step("CATALOG", lambda name: SyncRequest(output=name)),
    "import": _Step("FILE", lambda file: ImportRequest(snapshot=file)),
    "export": _Step("FILE", lambda file: ExportRequest(output=Path(file))),
    "validate": _Step("FILE", lambda file: ValidateRequest(snapshot=file)),
    "snapshot": _Step(None, lambda _: SnapshotCreateRequest()),
    "create-users": _Step("FILE", lambda file: OwnershipUsersRequest(file=Path(file))),
    "create-groups": _Step("FILE", lambda file: OwnershipGroupsRequest(file=Path(file))),
    "assign-ownership": _Step("FILE", lambda file: OwnershipAssignRequest(file=Path(file))),
    "enrich": _Step("FILE", lambda file: EnrichRequest(file=Path(file))),
}
"""The steps of chains, by name."""


class ChainController:
    """What `lumos run` does."""

    def __init__(self, dispatcher: Dispatch) -> None:
        self._dispatcher = dispatcher

    def run(self, steps: Sequence[str], *, on_step: Callable[[RunReport], None]) -> ChainResult:
        """Carry out the steps in order; an error ends the chain, a failed item does not.

        `ingest:FILE` opens the project of FILE, and the steps after it work on that project.

        Raises:
            UsageError: a step is unknown or lacks its argument; nothing has run then.
        """
        planned = [_planned(step) for step in steps]
        dispatcher = self._dispatcher
        reports: list[RunReport] = []
        for name, argument in planned:
            if name == _INGEST:
                dispatcher = self._dispatcher.of(Path(argument))
            reports.append(_done(dispatcher, name, argument))
            on_step(reports[-1])
        return ChainResult(steps=tuple(reports))


def _planned(step: str) -> tuple[str, str]:
    name, _, argument = step.partition(":")
    operation = STEPS.get(name)
    if operation is None:
        close = get_close_matches(name, STEPS, n=1)
        known = f"did you mean {close[0]}?" if close else f"known: {', '.join(STEPS)}"
        raise UsageError(f"there is no operation {name}", hint=known)
    if operation.argument and not argument:
        raise UsageError(f"{name} needs an argument", hint=f"{name}:{operation.argument}")
    if argument and not operation.argument:
        raise UsageError(f"{name} takes no argument", hint=f"write just {name}")
    return name, argument


def _done(dispatcher: Dispatch, name: str, argument: str) -> RunReport:
    """Carry out one step, and return its report: of the run, or of the one item that it names."""
    clock = dispatcher.project.clock
    recorder = RunRecorder(name, started_at=clock(), keep_done=True)
    result = dispatcher.dispatch(STEPS[name].request(argument))
    match result:
        case IngestResult():
            return result.as_run_report()
        case RunReport():
            return result
        case SyncResult() | ImportResult():
            return result.report
        case ExportResult() if result.report.failed:
            return result.report
        case ExportResult():
            recorder.done(result.output)
        case ValidationResult():
            _require_valid(result, argument)
            recorder.done(argument)
        case SnapshotInfo():
            recorder.done(result.id)
        case _:
            recorder.done(argument)
    return recorder.finish(at=clock())


def _require_valid(result: ValidationResult, reference: str) -> None:
    problems = [check.message for check in result.checks if check.status == "fail"]
    if problems:
        raise GateFailedError(
            f"{reference} is not valid: {problems[0]}",
            hint=f"see all with lumos validate --input {reference}",
        )
