"""What an ingestion counts, and what it says of the partition of a run timestamp."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from lumos.core.models import Urn
from lumos.core.result_base import Result
from lumos.feature.versioning.reported_change import ReportedChange


class ScannedFiles(Result):
    """What happened to the files of a run."""

    listed: int
    opened: int
    unchanged: int
    unreadable: int


class DatasetCounts(Result):
    """What happened to the datasets of a run."""

    found: int
    created: int
    updated: int
    unchanged: int
    removed: int


class IngestedPartition(Result):
    """The partition of a dataset that a run with a timestamp is about."""

    dataset: Urn
    partition: str = Field(description="Its folders.")
    state: Literal["on_time", "late", "missing", "not_due"]
    due: datetime = Field(description="When its time, and the delay allowed, are over.")
    written: datetime | None = Field(description="When its first file was written.")
    files: int
    newest: str = Field(description="The last partition of the dataset that there is.")
    changes: tuple[ReportedChange, ...] = Field(
        default=(), description="How its schema differs from that of the dataset so far."
    )
