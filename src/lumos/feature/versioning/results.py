"""What commands on versions answer: the shapes behind `--json`."""

from __future__ import annotations

from pydantic import Field

from lumos.core.models import Change, DatasetVersion, Urn, VersionMapping
from lumos.core.models.base import UtcDatetime
from lumos.core.result_base import Result
from lumos.core.run_report import ItemOutcome, RunReport
from lumos.feature.versioning.blame import FieldBlame


class BlameResult(Result):
    """Which version brought each column of a dataset in, and which one changed it last."""

    dataset: str = Field(description="The name of the dataset.")
    urn: Urn
    version: str | None = Field(description="The newest version, whose columns are listed.")
    columns: tuple[FieldBlame, ...]


class CurrentVersion(Result):
    """The version that a dataset has now."""

    dataset: Urn
    version: str
    cloud_version: str | None
    previous_version: str | None
    timestamp: UtcDatetime
    author: str | None
    change_type: str | None
    category: str | None
    backward_compatible: bool | None

    @classmethod
    def of(cls, dataset: str, version: DatasetVersion) -> CurrentVersion:
        """Return the result for the newest version of a dataset."""
        told = version.model_dump(include={*cls.model_fields})
        return cls.model_validate({**told, "dataset": dataset})


class VersionsResult(Result):
    """The versions that datasets have now, in ascending order of URN."""

    datasets: tuple[CurrentVersion, ...]
    total: int = Field(description="How many datasets have a version.")
    mapping: tuple[VersionMapping, ...] = Field(
        default=(), description="Of one dataset: which cloud version stands for which version."
    )


class ComputedVersion(Result):
    """The version that a dataset gets, and why."""

    dataset: Urn
    version: str
    previous_version: str | None = Field(description="Absent for the first version.")
    cloud_version: str | None
    bump: str = Field(description="MAJOR, MINOR or PATCH; NONE for the first version.")
    change_type: str | None
    category: str | None
    backward_compatible: bool | None
    changes: int = Field(description="How many changes make it.")


class VersionCounts(Result):
    """How many datasets get which kind of version."""

    first: int = Field(default=0, description="Datasets that had none.")
    major: int = 0
    minor: int = 0
    patch: int = 0
    unchanged: int = 0

    @property
    def new(self) -> int:
        """How many versions there are to write, or were written."""
        return self.first + self.major + self.minor + self.patch


class VersionScanResult(Result):
    """The versions that a scan found, or wrote."""

    source: str = Field(description="What was compared with: the history, or a snapshot.")
    target: str = Field(description="Whose datasets are versioned: a catalog or a snapshot.")
    dry_run: bool
    counts: VersionCounts
    gone: int = Field(description="Datasets of the source that the target lacks.")
    outdated: int = Field(description="Datasets whose history is newer than the snapshot.")
    versions: tuple[ComputedVersion, ...] = Field(description="As many as --limit allows.")
    omitted: int = Field(description="Versions that are not listed.")
    declared: tuple[Change, ...] = Field(
        description="Declared versions that are too low for what changed."
    )
    failed: tuple[ItemOutcome, ...] = Field(
        default=(), description="What could not be read, and so got no version."
    )


class VersionApplyResult(VersionScanResult):
    """The versions that were written, and the report of the run."""

    report: RunReport

    def as_scan(self) -> VersionScanResult:
        """Return the versions alone, without the report."""
        return VersionScanResult(
            **{name: getattr(self, name) for name in VersionScanResult.model_fields}
        )
