"""What `show`, `history`, `compare` and `trends` answer.

A module of its own: reads of one dataset are to start fast, and need no other shape.
"""

from __future__ import annotations

from datetime import datetime

from pydantic import Field, JsonValue

from lumos.core.controllers.result_base import Result as _Result
from lumos.core.models import Change, LumosDataset, ObservationKind, PolicyEffect, Urn


class ReportedChange(_Result):
    """A change as commands print it: the change itself and its fingerprint."""

    dataset: Urn
    path: str
    rule: str
    level: str
    scope: str
    bump: str
    old: JsonValue
    new: JsonValue
    caution: bool
    widening: bool
    direction: str = Field(default="NEITHER", description="TIGHTENS, LOOSENS, BOTH or NEITHER.")
    possible_rename_of: str | None = Field(
        default=None, description="The path of what may have been renamed to or from this."
    )
    rename_confidence: float | None = Field(
        default=None, description="How likely that is, from 0 to 1."
    )
    passes_under: tuple[str, ...] = Field(
        default=(), description="For a breaking change: profiles under which it is not breaking."
    )
    policy: PolicyEffect | None = Field(
        default=None, description="What the project's change policy made of it, if anything."
    )
    message: str
    fingerprint: str

    @classmethod
    def of(cls, change: Change) -> ReportedChange:
        """Report a change."""
        told = change.model_dump(mode="json", include={*cls.model_fields})
        return cls(**told, fingerprint=change.fingerprint)


class ComparisonResult(_Result):
    """How two versions of a dataset differ."""

    dataset: Urn
    from_version: str
    to_version: str
    changes: tuple[ReportedChange, ...]


class ShownContribution(_Result):
    """That one contributor speaks of one facet of a dataset."""

    facet: str = Field(description="Its path in the JSON of the dataset.")
    contributor: str = Field(description="Such as source:lake, declared:dbt or people:datahub.")
    at: datetime = Field(description="When it last said anything new of it.")
    confidence: float = Field(description="1 for what is not guessed.")


class ShownDataset(LumosDataset):
    """A dataset, and who says what of it."""

    contributions: tuple[ShownContribution, ...] = Field(
        default=(),
        description="By facet; where several speak of one, the one whose word counts comes first.",
    )


class TrendPoint(_Result):
    """What was measured of a dataset at one time, in a few figures."""

    kind: ObservationKind
    at: datetime
    contributor: str = Field(description="Who measured it.")
    rows: int | None = None
    rows_estimated: bool = False
    size_bytes: int | None = None
    files: int | None = None
    quality_score: float | None = Field(default=None, description="In percent.")
    failed_checks: int | None = None
    cost: str | None = Field(default=None, description="Amount and currency.")
    change: float | None = Field(
        default=None,
        description="Against the one before of the same contributor: in rows, in percentage points "
        "of the score, or in the amount of money.",
    )


class TrendResult(_Result):
    """What was measured of a dataset over time."""

    dataset: str
    urn: Urn
    observations: tuple[TrendPoint, ...] = Field(
        default=(), description="By kind, the newest of each kind last."
    )
    damaged: int = Field(default=0, description="Measurements that are damaged and left out.")
