"""Carries out the requests on snapshots, and those that move a catalog."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lumos.core.controllers.snapshot_controller import SnapshotController
from lumos.core.requests.snapshots import (
    DiffRequest,
    ExportRequest,
    ImportRequest,
    MigrateRequest,
    SnapshotCreateRequest,
    SnapshotListRequest,
    SnapshotPruneRequest,
    SnapshotSignRequest,
    SnapshotVerifyRequest,
    ValidateRequest,
)
from lumos.feature.snapshot.scratch import scratch_folder
from lumos.feature.snapshot.selection import ExportedPart, Selection

if TYPE_CHECKING:
    from lumos.bootstrap.dispatcher import Call
    from lumos.core.controllers.diff_controller import ComparedSnapshots
    from lumos.core.controllers.results import (
        DiffResult,
        ExportResult,
        ImportResult,
        MigrationResult,
        SnapshotListing,
        ValidationResult,
        Verification,
    )
    from lumos.core.store.snapshots.manifest import SnapshotInfo, VerifyReport
    from lumos.feature.snapshot.results import PruneResult


def create(call: Call, request: SnapshotCreateRequest) -> SnapshotInfo:
    return SnapshotController(call.work).create(request.platform, unread=call.listener.on_interim)


def list_(call: Call, _request: SnapshotListRequest) -> SnapshotListing:
    return SnapshotController(call.work).list()


def verify(call: Call, request: SnapshotVerifyRequest) -> Verification:
    return SnapshotController(call.work).verify(request.snapshot, key=request.key)


def sign(call: Call, request: SnapshotSignRequest) -> VerifyReport:
    return SnapshotController(call.work).sign(request.snapshot, request.key)


def prune(call: Call, request: SnapshotPruneRequest) -> PruneResult:
    return SnapshotController(call.work).prune(request.rules, dry_run=request.dry_run)


def export(call: Call, request: ExportRequest) -> ExportResult:
    return SnapshotController(call.work, edited=request.edited).export(
        request.output,
        _exported(request),
        form=request.form,
        pretty=request.pretty,
        progress=call.listener.progress,
    )


@contextmanager
def stream_export(call: Call, request: ExportRequest) -> Iterator[Iterator[bytes]]:
    """Yield the document in pieces; what was not readable goes to the listener."""
    with scratch_folder() as folder:
        yield SnapshotController(call.work, edited=request.edited).export_chunks(
            folder,
            _exported(request),
            pretty=request.pretty,
            progress=call.listener.progress,
            unread=call.listener.on_interim,
        )


def validate(call: Call, request: ValidateRequest) -> ValidationResult:
    return SnapshotController(call.work, edited=request.edited).validate(request.snapshot)


def import_(call: Call, request: ImportRequest) -> ImportResult:
    from lumos.core.controllers.import_controller import ImportController

    return ImportController(
        call.work, request.platform, key=request.key, edited=request.edited
    ).run(
        request.snapshot,
        mode=request.mode,
        dry_run=request.dry_run,
        batch_size=request.batch_size,
        restart=request.restart,
        planned=call.listener.on_interim if request.fidelity else None,
        progress=call.listener.progress,
    )


def diff(call: Call, request: DiffRequest) -> DiffResult:
    from lumos.core.controllers.diff_controller import DiffController

    return DiffController(call.work, edited=request.edited).diff(
        request.source,
        request.target,
        profile=request.profile,
        observations=request.observations,
    )


@contextmanager
def stream_diff(call: Call, request: DiffRequest) -> Iterator[ComparedSnapshots]:
    """Yield the changes without holding all of them, and how much of a catalog another has."""
    from lumos.core.controllers.diff_controller import DiffController

    with DiffController(call.work, edited=request.edited).compared(
        request.source,
        request.target,
        profile=request.profile,
        observations=request.observations,
        progress=call.listener.progress,
    ) as found:
        yield found


def migrate(call: Call, request: MigrateRequest) -> MigrationResult:
    from lumos.core.controllers.migration_controller import MigrationController

    return MigrationController(call.work).migrate(
        request.source,
        request.target,
        mode=request.mode,
        dry_run=request.dry_run,
        restart=request.restart,
        batch_size=request.batch_size,
        planned=call.listener.on_interim,
        progress=call.listener.progress,
    )


def _exported(request: ExportRequest) -> ExportedPart:
    selection = Selection(
        patterns=request.datasets,
        platforms=request.dataset_platforms,
        tags=request.tags,
        owners=request.owners,
    )
    return ExportedPart(platform=request.platform, snapshot=request.snapshot, selection=selection)


OPERATIONS = {
    SnapshotCreateRequest: create,
    SnapshotListRequest: list_,
    SnapshotVerifyRequest: verify,
    SnapshotSignRequest: sign,
    SnapshotPruneRequest: prune,
    ExportRequest: export,
    ValidateRequest: validate,
    ImportRequest: import_,
    DiffRequest: diff,
    MigrateRequest: migrate,
}
STREAMS = {ExportRequest: stream_export, DiffRequest: stream_diff}
