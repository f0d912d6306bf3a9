"""What was measured of a dataset at one time: a point of a series."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from lumos.core.models.base import CanonicalModel, Properties, UtcDatetime
from lumos.core.models.frozen import FrozenDict
from lumos.core.models.urn import Urn


class ObservationKind(StrEnum):
    """What was measured."""

    STATISTICS = "STATISTICS"
    PROFILE = "PROFILE"
    USAGE = "USAGE"
    QUALITY = "QUALITY"
    FRESHNESS = "FRESHNESS"
    COST = "COST"


class Observation(CanonicalModel):
    """One measurement of one dataset; it is never part of a contract or a version."""

    urn: Urn
    kind: ObservationKind
    at: UtcDatetime
    document: Properties = Field(
        default_factory=FrozenDict,
        description="The figures, in the shape of the dataset's part of that name.",
    )
