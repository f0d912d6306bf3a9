"""What commands answer: the shapes behind `--json`, each with a published JSON Schema."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from lumos.core.controllers.catalog_results import (
    ComparisonResult,
    ShownDataset,
    TrendResult,
)
from lumos.core.controllers.rules_controller import RuleListing
from lumos.core.models import (
    DatasetVersion,
    LumosDataset,
    SchemaHistory,
    SnapshotStatistics,
    Urn,
)
from lumos.core.models.profile import DatasetProfile
from lumos.core.platform.fidelity import FidelityReport
from lumos.core.platform.interface import SearchPage
from lumos.core.result_base import Result as _Result
from lumos.core.run_report import ItemOutcome, RunReport
from lumos.core.store.snapshots.manifest import SnapshotInfo, VerifyReport
from lumos.feature.alerting.results import (
    AlertListResult,
    AlertSendResult,
    AlertTestResult,
)
from lumos.feature.extraction.catalog_report import CatalogReport
from lumos.feature.ingestion.results import DatasetCounts, IngestedPartition, ScannedFiles
from lumos.feature.migration.results import MigrationCheck, UnlikeDataset
from lumos.feature.snapshot.results import PruneResult
from lumos.feature.sync.results import SyncResult
from lumos.feature.versioning.models import VersionUpdateResult
from lumos.feature.versioning.reported_change import ReportedChange
from lumos.feature.versioning.results import (
    BlameResult,
    VersionApplyResult,
    VersionScanResult,
    VersionsResult,
)


class InitResult(_Result):
    """What `lumos init` made."""

    settings_file: str
    settings_created: bool = Field(description="False where the file was there before.")
    state: str = Field(description="Where the state database is.")
    ignored: tuple[str, ...] = Field(
        default=(), description="What was added to `.gitignore`, where it was missing."
    )


class DoctorCheck(_Result):
    """One thing that Lumos needs, and whether it is there."""

    name: str
    status: Literal["ok", "warn", "fail"]
    detail: str
    hint: str | None = None


class DoctorReport(_Result):
    """Everything that Lumos needs here."""

    checks: tuple[DoctorCheck, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing failed; warnings are allowed."""
        return all(check.status != "fail" for check in self.checks)


class SnapshotListing(_Result):
    """The snapshots in the store, oldest first."""

    snapshots: tuple[SnapshotInfo, ...]
    warnings: tuple[str, ...] = Field(
        default=(), description="Snapshots that are dated in the future."
    )


class Verification(_Result):
    """The checks of one or of all snapshots."""

    reports: tuple[VerifyReport, ...]

    @property
    def ok(self) -> bool:
        """Whether every byte is what was written."""
        return not any(report.problems for report in self.reports)


class ExportResult(_Result):
    """What was written, and where to."""

    output: str
    source: str
    form: Literal["document", "folder"] = "document"
    content_hash: str = Field(description="Equal for equal content, in whatever form.")
    statistics: SnapshotStatistics
    report: RunReport = Field(description="It names what the catalog holds and was not readable.")


class ImportResult(_Result):
    """What an import did, or would do."""

    dry_run: bool
    created: tuple[Urn, ...]
    updated: tuple[Urn, ...]
    unchanged: int
    skipped: int
    resumed: int = Field(
        default=0, description="Datasets that the same import had done before it was interrupted."
    )
    breaking: int = Field(
        default=0,
        description="Datasets that got a version with a breaking change; 0 in a dry run.",
    )
    lineage_edges: int = Field(description="Edges written, or to be written.")
    lineage_edges_removed: int = Field(
        default=0, description="Edges that a complete snapshot lacks, when overwriting."
    )
    fidelity: FidelityReport | None = Field(
        default=None,
        description="What a catalog other than the embedded one keeps of each concept.",
    )
    report: RunReport

    @property
    def in_words(self) -> str:
        """Return one line with the counts of datasets and edges."""
        gone = f", {self.lineage_edges_removed:,} removed" if self.lineage_edges_removed else ""
        plural = "" if self.resumed == 1 else "s"
        broken = (
            f"; breaking changes in {self.breaking:,} dataset{'' if self.breaking == 1 else 's'}"
            if self.breaking
            else ""
        )
        before = f"; {self.resumed:,} dataset{plural} done before" if self.resumed else ""
        return (
            f"{len(self.created):,} new, {len(self.updated):,} changed, "
            f"{self.unchanged:,} unchanged, {self.skipped:,} skipped datasets; "
            f"{self.lineage_edges:,} lineage edges{gone}{before}{broken}"
        )


class CheckResult(_Result):
    """One check of a snapshot."""

    check: str
    status: Literal["ok", "warn", "fail"]
    message: str
    count: int
    details: tuple[str, ...]


class ValidationResult(_Result):
    """All checks of a snapshot."""

    name: str
    status: Literal["ok", "warn", "fail"]
    checks: tuple[CheckResult, ...]


class MigrationResult(_Result):
    """What a migration did and found, or would do."""

    source: str
    target: str
    dry_run: bool
    resumed: bool = Field(description="Whether it went on with the export of an earlier run.")
    snapshot: str = Field(description="The folder with all that the source held.")
    validation: ValidationResult
    fidelity: FidelityReport = Field(description="What the target keeps of each concept.")
    imported: ImportResult | None = Field(
        default=None, description="What was brought into the target, or would be."
    )
    checks: tuple[MigrationCheck, ...] = ()
    differing: int = Field(default=0, description="Datasets that are not the same in the target.")
    unlike: tuple[UnlikeDataset, ...] = Field(default=(), description="The first 1,000 of them.")
    missing: tuple[Urn, ...] = Field(
        default=(), description="The first 1,000 datasets that the target does not have."
    )
    verified: bool = Field(
        default=False, description="Whether all datasets and lineage edges are in the target."
    )
    unreadable: tuple[ItemOutcome, ...] = Field(
        default=(), description="What the source holds and was not readable; it did not arrive."
    )
    arrived: bool = Field(
        default=False,
        description="Whether all is in the target and the same, but what it says it drops.",
    )
    reports: tuple[str, ...] = Field(default=(), description="The files of the final report.")


class DiffSummary(_Result):
    """A diff in numbers."""

    changes: int
    levels: dict[str, int]
    worst_level: str | None
    cautions: int = Field(default=0, description="Changes that are allowed, with caution.")
    ignored: int = Field(default=0, description="Changes that the project's policy ignores.")
    datasets: dict[str, int]
    sections: dict[str, dict[str, int]]


class DiffResult(_Result):
    """How two snapshots differ."""

    source: str
    target: str
    changes: tuple[ReportedChange, ...]
    added: tuple[Urn, ...]
    removed: tuple[Urn, ...]
    changed: tuple[Urn, ...]
    unobserved: tuple[Urn, ...]
    summary: DiffSummary
    unreadable: tuple[ItemOutcome, ...] = Field(
        default=(), description="What a catalog holds and was not readable, on either side."
    )
    checks: tuple[MigrationCheck, ...] = Field(
        default=(), description="Of two catalogs: how much of the first the second has."
    )


class ErrorDetail(_Result):
    """An error as `--json` prints it."""

    code: str
    message: str
    hint: str | None = None
    retryable: bool = False
    problems: tuple[str, ...] = Field(
        default=(), description="Every problem with its file and line, where there are several."
    )


class NewVersion(_Result):
    """A version that a run gave to a dataset."""

    dataset: Urn
    version: str
    previous_version: str | None
    change_type: str | None
    backward_compatible: bool | None

    @classmethod
    def of(cls, dataset: Urn, version: DatasetVersion) -> NewVersion:
        return cls(
            dataset=dataset,
            version=version.version,
            previous_version=version.previous_version,
            change_type=version.change_type,
            backward_compatible=version.backward_compatible,
        )


class IngestResult(RunReport):
    """The report of an ingestion, with what it found and what changed."""

    files: ScannedFiles
    datasets: DatasetCounts
    formats: dict[str, int] = Field(
        default_factory=dict, description="How many datasets were found in each format."
    )
    snapshot: str | None = Field(default=None, description="The snapshot stored; none if dry.")
    changes: tuple[ReportedChange, ...] = ()
    versions: tuple[NewVersion, ...] = ()
    found: tuple[LumosDataset, ...] = Field(
        default=(), description="The datasets themselves, where nothing was written."
    )
    partitions: tuple[IngestedPartition, ...] = Field(
        default=(), description="The partition of each dataset, where a run timestamp was given."
    )
    sync: SyncResult | None = Field(
        default=None,
        description="What the catalog of the settings was sent, where it is not the embedded one.",
    )
    sync_error: ErrorDetail | None = Field(
        default=None, description="Why that catalog could not be brought up to date."
    )

    @classmethod
    def of(
        cls, report: RunReport, *, files: ScannedFiles, datasets: DatasetCounts, **parts: object
    ) -> IngestResult:
        """Add what was found to a run report."""
        values = {**dict(report), "files": files, "datasets": datasets, **parts}
        return cls.model_validate(values)

    def as_run_report(self) -> RunReport:
        """Return the run report alone, as it is kept."""
        return RunReport(**{name: getattr(self, name) for name in RunReport.model_fields})


class ProfiledDataset(_Result):
    """A dataset and what its data showed."""

    dataset: Urn
    profile: DatasetProfile


class ProfileResult(RunReport):
    """The report of a profiling, with the profiles."""

    profiles: tuple[ProfiledDataset, ...]

    @classmethod
    def of(cls, report: RunReport, *, profiles: tuple[ProfiledDataset, ...]) -> ProfileResult:
        """Add profiles to a run report."""
        return cls.model_validate({**dict(report), "profiles": profiles})


class WatchRefresh(_Result):
    """One refresh of the catalog by `lumos watch`, or what kept it from one."""

    reason: Literal["start", "events", "listing"] = Field(
        description="What led to it: the beginning, events, or a listing of everything."
    )
    started_at: datetime
    finished_at: datetime
    events: int = Field(description="How many events were gathered for it.")
    folders: dict[str, tuple[str, ...]] = Field(
        description="The folders looked into, by source; `/` is all of it."
    )
    files: ScannedFiles | None = None
    datasets: DatasetCounts | None = None
    changes: tuple[ReportedChange, ...] = ()
    versions: tuple[NewVersion, ...] = ()
    snapshot: str | None = Field(
        default=None, description="The snapshot stored, where a contract changed."
    )
    failed: tuple[ItemOutcome, ...] = Field(
        default=(), description="Files and sources that could not be read, and were not named yet."
    )
    warnings: tuple[str, ...] = Field(default=(), description="What people should know besides.")
    error: ErrorDetail | None = Field(
        default=None, description="Why the refresh failed; nothing was changed by it."
    )
    retry_seconds: float | None = Field(
        default=None, description="After how long a failed refresh is tried again."
    )


class WatchResult(_Result):
    """What a watch did until it was stopped."""

    refreshes: int = Field(description="How often the catalog was refreshed.")


class DemoCleanResult(_Result):
    """Whether there was a demo to remove."""

    removed: bool


class DemoResult(_Result):
    """What the demo did, and where it lies."""

    folder: str
    lake: str
    first: IngestResult
    second: IngestResult
    verdict: str
    report: str


class RunningEngine(_Result):
    """A Spark that is kept warm on this machine."""

    pid: int
    port: int
    lumos: str
    spark: str
    java: str
    master: str
    started_at: datetime
    idle_minutes: float = Field(description="It ends itself after so long without use.")
    log: str
    unfit: str | None = Field(
        default=None, description="Why commands of this project do not use it, if they do not."
    )


class EngineResult(_Result):
    """What a command on the engine found or did."""

    running: bool
    changed: bool = Field(description="Whether the command started or stopped it.")
    engine: RunningEngine | None = None


class MovedTable(_Result):
    """A table of the state that is equal in both databases."""

    name: str
    rows: int
    checksum: str = Field(description="SHA-256 over all values of all rows, equal in both.")


class StateMoveResult(_Result):
    """What `lumos state move` copied."""

    source: str
    destination: str
    tables: tuple[MovedTable, ...]
    damaged: int = Field(
        description="Rows that did not match their checksums before; copied unchanged."
    )
    damaged_rows: tuple[str, ...] = Field(description="The first of them.")
    left_in_place: tuple[str, ...] = Field(
        description="What belongs to the state and stays in the state folder."
    )
    next_step: str = Field(description="What to change in the settings.")


class ChainResult(_Result):
    """What the steps of a chain did, in order."""

    steps: tuple[RunReport, ...]
    error: ErrorDetail | None = Field(
        default=None, description="What ended the chain early; else absent."
    )


class ErrorResult(_Result):
    """What is printed in place of an answer."""

    error: ErrorDetail


JSON_OUTPUTS: dict[str, type[BaseModel]] = {
    "init": InitResult,
    "demo": DemoResult,
    "demo-clean": DemoCleanResult,
    "doctor": DoctorReport,
    "engine": EngineResult,
    "state-move": StateMoveResult,
    "search": SearchPage,
    "show": ShownDataset,
    "show-trend": TrendResult,
    "history": SchemaHistory,
    "history-blame": BlameResult,
    "compare": ComparisonResult,
    "version-show": VersionsResult,
    "version-compute": VersionScanResult,
    "version-apply": VersionApplyResult,
    "version-increment": VersionUpdateResult,
    "alerts-list": AlertListResult,
    "alerts-send": AlertSendResult,
    "alerts-test": AlertTestResult,
    "snapshot-create": SnapshotInfo,
    "snapshot-list": SnapshotListing,
    "snapshot-verify": Verification,
    "snapshot-prune": PruneResult,
    "snapshot-sign": VerifyReport,
    "export": ExportResult,
    "validate": ValidationResult,
    "import": ImportResult,
    "diff": DiffResult,
    "migrate": MigrationResult,
    "ingest": IngestResult,
    "sync": SyncResult,
    "fidelity": FidelityReport,
    "profile": ProfileResult,
    "watch": WatchRefresh,
    "watch-end": WatchResult,
    "report": CatalogReport,
    "rules": RuleListing,
    "run-report": RunReport,
    "run": ChainResult,
    "error": ErrorResult,
}
"""The model behind each command's `--json`; `ownership` and `enrich` print a run report."""
