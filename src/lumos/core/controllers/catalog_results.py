"""What `show`, `history`, `compare` and `trends` answer.

A separate module, because reads of one dataset must start fast and need no other result.
"""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from lumos.core.models import LumosDataset, Urn
from lumos.core.result_base import Result as _Result
from lumos.feature.extraction.trends import TrendPoint
from lumos.feature.versioning.reported_change import ReportedChange


class ComparisonResult(_Result):
    """How two versions of a dataset differ."""

    dataset: Urn
    from_version: str
    to_version: str
    changes: tuple[ReportedChange, ...]


class ShownContribution(_Result):
    """One contributor's statement on one facet of a dataset."""

    facet: str = Field(description="Its path in the JSON of the dataset.")
    contributor: str = Field(description="Such as source:lake, declared:dbt or people:datahub.")
    at: datetime = Field(description="When it last said anything new of it.")
    confidence: float = Field(description="1 for what is not guessed.")


class ShownDataset(LumosDataset):
    """A dataset, and who says what of it."""

    contributions: tuple[ShownContribution, ...] = Field(
        default=(),
        description="By facet; of several contributors, the one whose statement holds comes first.",
    )


class TrendResult(_Result):
    """What was measured of a dataset over time."""

    dataset: str
    urn: Urn
    observations: tuple[TrendPoint, ...] = Field(
        default=(), description="By kind, the newest of each kind last."
    )
    damaged: int = Field(default=0, description="Measurements that are damaged and left out.")
