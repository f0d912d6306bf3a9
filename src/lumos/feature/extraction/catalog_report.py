"""What a report says of a catalog: totals in full, lists cut to a length that people read."""

from __future__ import annotations

from datetime import datetime
from typing import Generic, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue

from lumos.core.models import Change, Urn

T = TypeVar("T")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LimitedList(_Part, Generic[T]):
    """The first items of a list, and how many there are in all."""

    total: int = Field(ge=0)
    items: tuple[T, ...]

    @property
    def more(self) -> int:
        """How many are not among the items."""
        return self.total - len(self.items)


class Share(_Part):
    """How many datasets are of one kind."""

    name: str
    datasets: int
    size_bytes: int = Field(description="Of the datasets whose size is known.")


class DatasetLine(_Part):
    """A dataset in one line."""

    urn: Urn
    name: str
    platform: str
    format: str | None = None
    columns: int = Field(description="Top-level columns.")
    rows: int | None = None
    size_bytes: int | None = None
    owners: tuple[str, ...] = ()
    described: bool = Field(description="Whether someone wrote what it is.")
    last_modified: AwareDatetime | None = None
    version: str | None = None


class Inventory(_Part):
    """What the catalog holds now."""

    datasets: int
    columns: int
    rows: int = Field(description="Of the datasets whose rows are known or estimated.")
    files: int
    size_bytes: int
    platforms: LimitedList[Share]
    formats: LimitedList[Share]
    without_owner: LimitedList[DatasetLine]
    without_description: LimitedList[DatasetLine]
    freshest: tuple[DatasetLine, ...]
    stalest: tuple[DatasetLine, ...]
    undated: int = Field(description="Datasets of which it is not known when they last changed.")
    listing: LimitedList[DatasetLine]


class SnapshotRef(_Part):
    """A stored snapshot."""

    id: str
    stored_at: AwareDatetime | None
    complete: bool | None


class ChangeSummary(_Part):
    """What changed between the two newest snapshots, the worst first."""

    previous: SnapshotRef
    latest: SnapshotRef
    levels: dict[str, int]
    added: LimitedList[Urn]
    removed: LimitedList[Urn]
    changed: int
    unobserved: int = Field(description="Datasets that the latest snapshot could not look at.")
    changes: LimitedList[Change]


class ReportedVersion(_Part):
    """A version that a dataset got in the period of the report."""

    dataset: Urn
    version: str
    previous_version: str | None
    timestamp: AwareDatetime
    change_type: str | None
    backward_compatible: bool | None
    author: str | None


class UnreadableEntry(_Part):
    """Something that the newest run of its kind could not handle."""

    item: str
    reason: str
    code: str | None
    hint: str | None
    operation: str
    at: AwareDatetime


class CatalogReport(_Part):
    """The state of a catalog for someone with little time."""

    generated_at: AwareDatetime
    lumos_version: str
    catalog: str
    inventory: Inventory
    changes: ChangeSummary | None = Field(description="None before there are two snapshots.")
    versions_since: AwareDatetime | None = Field(description="None for all versions so far.")
    versions: LimitedList[ReportedVersion]
    unreadable: LimitedList[UnreadableEntry]
    warnings: LimitedList[str]

    @property
    def breaking(self) -> int:
        """How many changes break those who use the data."""
        return self.changes.levels.get("BREAKING", 0) if self.changes else 0

    @property
    def since(self) -> datetime | None:
        """The time of the snapshot that changes are counted from."""
        return self.changes.previous.stored_at if self.changes else None

    def as_json(self) -> dict[str, JsonValue]:
        """Return the object that `lumos report --json` prints, with every key."""
        return self.model_dump(mode="json")
