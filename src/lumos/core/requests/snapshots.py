"""Requests on snapshots, and those that move a catalog to another place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from lumos.core.requests.base import Request, StreamedRequest
from lumos.core.store.settings import RetentionSettings
from lumos.feature.importing.plan import ImportMode
from lumos.feature.snapshot.forms import SnapshotForm

if TYPE_CHECKING:
    from collections.abc import Iterator

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

_CATALOG = "The catalog; that of the settings if not given."
_SNAPSHOT = "A file, a snapshot folder, an id or `latest`."
_EDITED = "Accept a document whose content does not match its checksum."
_BATCH = 500


class SnapshotCreateRequest(Request["SnapshotInfo"]):
    """Store what a catalog holds now."""

    operation: ClassVar[str] = "snapshot-create"
    result: ClassVar[str] = "snapshot-create"
    interim: ClassVar[str | None] = "run-report"

    platform: str | None = Field(default=None, description=_CATALOG)


class SnapshotListRequest(Request["SnapshotListing"]):
    """List the stored snapshots, oldest first."""

    operation: ClassVar[str] = "snapshot-list"
    result: ClassVar[str] = "snapshot-list"


class SnapshotVerifyRequest(Request["Verification"]):
    """Check every byte of a snapshot against its checksums."""

    operation: ClassVar[str] = "snapshot-verify"
    result: ClassVar[str] = "snapshot-verify"

    snapshot: str | None = Field(default=None, description=f"{_SNAPSHOT} All if not given.")
    key: Path | None = Field(
        default=None, description="The file of a public key that it has to be signed with."
    )


class SnapshotSignRequest(Request["VerifyReport"]):
    """Put a signature beside a snapshot, once every byte of it has been checked."""

    operation: ClassVar[str] = "snapshot-sign"
    result: ClassVar[str] = "snapshot-sign"

    snapshot: str = Field(description=_SNAPSHOT)
    key: Path = Field(description="The file of a private Ed25519 key.")


class SnapshotPruneRequest(Request["PruneResult"]):
    """Remove stored snapshots that no rule keeps; the newest always stays."""

    operation: ClassVar[str] = "snapshot-prune"
    result: ClassVar[str] = "snapshot-prune"

    rules: RetentionSettings = Field(
        default=RetentionSettings(), description="What to keep; else as the settings say."
    )
    dry_run: bool = Field(default=False, description="Only say what would happen.")


class ExportRequest(StreamedRequest["ExportResult", "Iterator[bytes]"]):
    """Write a catalog or a snapshot as one portable file or folder."""

    operation: ClassVar[str] = "export"
    result: ClassVar[str] = "export"

    output: Path = Field(description="The file or folder to write.")
    platform: str | None = Field(default=None, description=_CATALOG)
    snapshot: str | None = Field(default=None, description=f"Instead of a catalog: {_SNAPSHOT}")
    form: SnapshotForm = Field(
        default=SnapshotForm.DOCUMENT, description="One document, or a folder."
    )
    datasets: tuple[str, ...] = Field(
        default=(), description="Only datasets of these URNs or names; * stands for anything."
    )
    dataset_platforms: tuple[str, ...] = Field(
        default=(), description="Only datasets of these platforms, such as `s3`."
    )
    tags: tuple[str, ...] = Field(default=(), description="Only datasets with one of these tags.")
    owners: tuple[str, ...] = Field(default=(), description="Only datasets of these owners.")
    pretty: bool = Field(default=True, description="Indent the document.")
    edited: bool = Field(default=False, description=_EDITED)


class ValidateRequest(Request["ValidationResult"]):
    """Check a snapshot: shape, references, counts and checksums."""

    operation: ClassVar[str] = "validate"
    result: ClassVar[str] = "validate"

    snapshot: str = Field(description=_SNAPSHOT)
    edited: bool = Field(default=False, description=_EDITED)


class ImportRequest(Request["ImportResult"]):
    """Read a snapshot into a catalog; datasets that it lacks stay."""

    operation: ClassVar[str] = "import"
    result: ClassVar[str] = "import"
    interim: ClassVar[str | None] = "fidelity"

    snapshot: str = Field(description=_SNAPSHOT)
    platform: str | None = Field(default=None, description=_CATALOG)
    mode: ImportMode = Field(
        default=ImportMode.UPDATE, description="What happens to datasets that are there."
    )
    dry_run: bool = Field(default=False, description="Only say what would happen.")
    batch_size: int = Field(default=_BATCH, description="Datasets in one transaction.")
    restart: bool = Field(
        default=False, description="Begin anew, also where an import was interrupted."
    )
    key: Path | None = Field(
        default=None, description="The file of a public key that it has to be signed with."
    )
    edited: bool = Field(default=False, description=_EDITED)
    fidelity: bool = Field(
        default=False, description="Also count what another catalog keeps of each concept."
    )


class DiffRequest(StreamedRequest["DiffResult", "ComparedSnapshots"]):
    """Compare two snapshots or catalogs and classify every change."""

    operation: ClassVar[str] = "diff"
    result: ClassVar[str] = "diff"

    source: str = Field(
        description="The older side: a file, folder, id, `latest`, catalog or git:REVISION:PATH."
    )
    target: str = Field(description="The newer side, in the same form.")
    profile: str | None = Field(
        default=None, description="Whom the rules protect; else as the settings say."
    )
    observations: bool = Field(
        default=False, description="Also compare rows, sizes, checks and costs."
    )
    edited: bool = Field(default=False, description=_EDITED)


class MigrateRequest(Request["MigrationResult"]):
    """Bring all that one catalog holds into another, and compare both."""

    operation: ClassVar[str] = "migrate"
    result: ClassVar[str] = "migrate"
    interim: ClassVar[str | None] = "migrate"

    source: str = Field(description="The catalog to read.")
    target: str = Field(description="The catalog to fill.")
    mode: ImportMode = Field(
        default=ImportMode.UPDATE, description="What happens to datasets that the target has."
    )
    dry_run: bool = Field(default=False, description="Export and check, write nothing to it.")
    restart: bool = Field(
        default=False, description="Begin anew, also where a migration was interrupted."
    )
    batch_size: int = Field(default=_BATCH, description="Datasets in one transaction.")
