"""An alert on a change: the finding, whom it concerns, and whether it was sent."""

from __future__ import annotations

from pydantic import Field

from lumos.core.models.base import CanonicalModel, Count, Name, NameSet, UtcDatetime
from lumos.core.models.change import ChangeLevel
from lumos.core.models.urn import Urn
from lumos.core.models.version import AlertState, VersionText


class AffectedDataset(CanonicalModel):
    """A dataset that is made from one that changed."""

    urn: Urn
    name: Name
    owners: NameSet = ()


class AlertFinding(CanonicalModel):
    """One change as alerts show it; names in it are as the sources spell them."""

    fingerprint: Name
    dataset: Urn
    name: Name
    version: VersionText
    previous_version: VersionText | None = None
    timestamp: UtcDatetime
    author: str | None = None
    rule: Name
    level: ChangeLevel
    path: str = ""
    message: str
    owners: NameSet = ()
    affected: tuple[AffectedDataset, ...] = Field(
        default=(), description="Datasets downstream, the nearest first; not more than fifty."
    )
    affected_count: Count = Field(default=0, description="How many there are downstream.")


class Alert(CanonicalModel):
    """A finding on its way through one channel."""

    id: Name
    channel: Name
    state: AlertState = Field(default=AlertState.PENDING, validate_default=True)
    attempts: Count = 0
    created_at: UtcDatetime
    next_attempt_at: UtcDatetime | None = None
    sent_at: UtcDatetime | None = None
    error: str | None = Field(default=None, description="Why the last attempt failed.")
    finding: AlertFinding
