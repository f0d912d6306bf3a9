"""Requests that look at data and bring catalogs up to date."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from lumos.core.requests.base import Request

if TYPE_CHECKING:
    from lumos.core.controllers.results import IngestResult, ProfileResult, WatchResult
    from lumos.feature.sync.results import SyncResult

_SOURCES = "Only these sources of the settings; all if there is none."


class IngestRequest(Request["IngestResult"]):
    """Scan the sources on Spark, version what changed and store a snapshot."""

    operation: ClassVar[str] = "ingest"
    result: ClassVar[str] = "ingest"

    sources: tuple[str, ...] = Field(default=(), description=_SOURCES)
    dry_run: bool = Field(default=False, description="Say what would change, write nothing.")
    full: bool = Field(default=False, description="Open every file, also unchanged ones.")
    run_timestamp: str | None = Field(
        default=None, description="Only the partition of this time, such as 2024-01-31."
    )


class DiscoverRequest(Request["IngestResult"]):
    """Find the datasets below a folder or an address; the catalog is not written."""

    operation: ClassVar[str] = "discover"
    result: ClassVar[str] = "ingest"

    address: str = Field(description="A folder, or an address such as s3://bucket/prefix.")
    instance: str | None = Field(
        default=None, description="The first part of the URNs, as the setting `instance`."
    )
    config: Path | None = Field(
        default=None, description="A new file for settings that find the same again."
    )


class ProfileRequest(Request["ProfileResult"]):
    """Measure the data of datasets on Spark, and keep the figures with them."""

    operation: ClassVar[str] = "profile"
    result: ClassVar[str] = "profile"

    datasets: tuple[str, ...] = Field(default=(), description="URNs, or names.")
    sources: tuple[str, ...] = Field(default=(), description="All datasets of these sources too.")
    sample: float | None = Field(default=None, description="The share of rows to look at.")
    rows: int | None = Field(default=None, description="About how many rows to look at.")
    seed: int = Field(default=0, description="Decides which rows a sample has.")
    values: bool = Field(
        default=True, description="Whether to keep smallest, largest, mean and quantiles."
    )


class SyncRequest(Request["SyncResult"]):
    """Send another catalog what changed since it was last brought up to date."""

    operation: ClassVar[str] = "sync"
    result: ClassVar[str] = "sync"
    interim: ClassVar[str | None] = "fidelity"

    output: str = Field(description="The catalog, or the address of another Lumos catalog.")
    sources: tuple[str, ...] = Field(
        default=(), description="Only datasets of these sources, and nothing is removed."
    )
    full: bool = Field(default=False, description="Compare everything, not only what changed.")
    dry_run: bool = Field(default=False, description="Only say what would happen.")
    max_removals: int | None = Field(
        default=None, description="How many may be removed; else as the settings say."
    )


class WatchRequest(Request["WatchResult"]):
    """Keep the catalog current from events until it is stopped."""

    operation: ClassVar[str] = "watch"
    result: ClassVar[str] = "watch-end"
    interim: ClassVar[str | None] = "watch"

    sources: tuple[str, ...] = Field(default=(), description=_SOURCES)
    once: bool = Field(default=False, description="Do what is waiting, then end.")
    listing: bool = Field(
        default=True, description="List everything at the start, not only wait for events."
    )
