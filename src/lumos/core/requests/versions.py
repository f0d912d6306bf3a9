"""Requests on versions of datasets, and on the alerts that breaking ones store."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from lumos.core.models.version import AlertState
from lumos.core.requests.base import Request

if TYPE_CHECKING:
    from lumos.feature.alerting.results import (
        AlertListResult,
        AlertSendResult,
        AlertTestResult,
    )
    from lumos.feature.versioning.models import VersionUpdateResult
    from lumos.feature.versioning.results import (
        VersionApplyResult,
        VersionScanResult,
        VersionsResult,
    )

_SOURCE = "The snapshot to compare with; the history if not given."
_TARGET = "The snapshot whose datasets are versioned; the state if not given."
_EDITED = "Accept documents whose content does not match its checksum."
_RETIRE = "Also give versions to datasets that are gone."
_LIMIT = "How many versions to list; all if 0."


class VersionShowRequest(Request["VersionsResult"]):
    """Show the versions that datasets have now, with their cloud versions."""

    operation: ClassVar[str] = "version-show"
    result: ClassVar[str] = "version-show"

    dataset: str | None = Field(default=None, description="A URN or name; all if not given.")
    limit: int = Field(default=500, description="How many to show.")
    after: str = Field(default="", description="Go on after this URN, the last one shown.")


class VersionComputeRequest(Request["VersionScanResult"]):
    """Compute the versions that datasets would get; nothing is written."""

    operation: ClassVar[str] = "version-compute"
    result: ClassVar[str] = "version-compute"

    source: str | None = Field(default=None, description=_SOURCE)
    target: str | None = Field(default=None, description=_TARGET)
    retire: bool = Field(default=False, description=_RETIRE)
    edited: bool = Field(default=False, description=_EDITED)
    limit: int = Field(default=1_000, description=_LIMIT)


class VersionApplyRequest(Request["VersionApplyResult"]):
    """Write the versions that datasets get; running it again writes nothing twice."""

    operation: ClassVar[str] = "version-apply"
    result: ClassVar[str] = "version-apply"

    source: str | None = Field(default=None, description=_SOURCE)
    target: str | None = Field(default=None, description=_TARGET)
    retire: bool = Field(default=False, description=_RETIRE)
    edited: bool = Field(default=False, description=_EDITED)
    limit: int = Field(default=1_000, description=_LIMIT)
    batch_size: int = Field(default=500, description="How many are written in a transaction.")
    alert: bool | None = Field(
        default=None,
        description="Whether owners are alerted of breaking changes; by default not of snapshots.",
    )


class VersionIncrementRequest(Request["VersionUpdateResult"]):
    """Add a version to a dataset by declaration."""

    operation: ClassVar[str] = "version-increment"
    result: ClassVar[str] = "version-increment"

    dataset: str = Field(description="A URN, or a name that only one dataset has.")
    change_type: str = Field(description="SCHEMA_CHANGE, BREAKING_SCHEMA_CHANGE, DATA_UPDATE, ….")
    author: str | None = Field(default=None, description="Who declares it.")


class AlertsListRequest(Request["AlertListResult"]):
    """List alerts, newest first."""

    operation: ClassVar[str] = "alerts-list"
    result: ClassVar[str] = "alerts-list"

    state: AlertState | None = Field(default=None, description="Only alerts in this state.")
    dataset: str | None = Field(default=None, description="Only alerts of this dataset.")
    limit: int = Field(default=100, description="How many to list.")


class AlertsSendRequest(Request["AlertSendResult"]):
    """Send the alerts that are due."""

    operation: ClassVar[str] = "alerts-send"
    result: ClassVar[str] = "alerts-send"

    everything: bool = Field(
        default=False, description="Also those that wait for a retry or were given up."
    )


class AlertsTestRequest(Request["AlertTestResult"]):
    """Send a test message through a channel of the settings."""

    operation: ClassVar[str] = "alerts-test"
    result: ClassVar[str] = "alerts-test"

    channel: str = Field(description="The name of the channel.")
