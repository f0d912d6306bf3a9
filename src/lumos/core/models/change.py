"""What changed between two states of a dataset, and what that means to others."""

from __future__ import annotations

from datetime import date
from enum import StrEnum

from pydantic import Field, JsonValue

from lumos.core.models.base import CanonicalModel, Name, sha256_of
from lumos.core.models.urn import Urn


class ChangeLevel(StrEnum):
    """How much a change matters to those who use the dataset."""

    BREAKING = "BREAKING"
    NON_BREAKING = "NON_BREAKING"
    INFORMATIONAL = "INFORMATIONAL"

    @property
    def rank(self) -> int:
        """Higher is worse."""
        return {"BREAKING": 2, "NON_BREAKING": 1, "INFORMATIONAL": 0}[self.value]


class ChangeScope(StrEnum):
    """What part of a dataset a change touches."""

    DATASET = "DATASET"
    SCHEMA = "SCHEMA"
    LINEAGE = "LINEAGE"
    OWNERSHIP = "OWNERSHIP"
    GOVERNANCE = "GOVERNANCE"
    DOCUMENTATION = "DOCUMENTATION"
    QUALITY = "QUALITY"
    PROPERTIES = "PROPERTIES"


class Direction(StrEnum):
    """Which way a change moves what is promised of the data and demanded of it."""

    TIGHTENS = "TIGHTENS"
    LOOSENS = "LOOSENS"
    BOTH = "BOTH"
    NEITHER = "NEITHER"

    @property
    def mirrored(self) -> Direction:
        """The direction of the way back."""
        turned = {"TIGHTENS": Direction.LOOSENS, "LOOSENS": Direction.TIGHTENS}
        return turned.get(self.value, self)


class Bump(StrEnum):
    """Which part of a semantic version a change raises."""

    NONE = "NONE"
    PATCH = "PATCH"
    MINOR = "MINOR"
    MAJOR = "MAJOR"

    @property
    def rank(self) -> int:
        """Higher raises more."""
        return ("NONE", "PATCH", "MINOR", "MAJOR").index(self.value)


class PolicyEffect(CanonicalModel):
    """What a project's change policy made of a change, and which of its lines did."""

    source: Name = Field(description="The key in the settings: `change_policy.exceptions[0]`.")
    original_level: ChangeLevel = Field(description="The level before that key was looked at.")
    reason: str | None = None
    owner: str | None = None
    expires: date | None = None
    ignored: bool = Field(default=False, description="It is reported, and has no effect.")
    expired: bool = Field(
        default=False, description="It would have applied, and no longer does: the level stays."
    )


class Change(CanonicalModel):
    """One difference between two states of a dataset, classified by one rule."""

    dataset: Urn
    path: str = Field(description="Where: `a.b`, `a[]`, `a{value}`; empty for the dataset itself.")
    rule: Name
    level: ChangeLevel
    scope: ChangeScope
    bump: Bump
    old: JsonValue = None
    new: JsonValue = None
    caution: bool = Field(default=False, description="Allowed, but worth a second look.")
    widening: bool = Field(default=False, description="The new type holds every old value.")
    direction: Direction = Field(
        default=Direction.NEITHER,
        description="`TIGHTENS`: fewer values are valid; `LOOSENS`: more are; `BOTH` or `NEITHER`.",
    )
    possible_rename_of: str | None = Field(
        default=None, description="The path of what may have been renamed to or from this."
    )
    rename_confidence: float | None = Field(
        default=None, ge=0, le=1, description="How likely the rename is, from 0 to 1."
    )
    passes_under: tuple[str, ...] = Field(
        default=(), description="For a breaking change: profiles under which it is not breaking."
    )
    policy: PolicyEffect | None = Field(
        default=None, description="What the project's change policy made of it, if anything."
    )
    message: str
    payload: JsonValue = Field(
        default=None,
        description="What applying the change to the old state needs beside `new`; never compared.",
    )

    @property
    def fingerprint(self) -> str:
        """What identifies the finding across runs, independent of its wording."""
        return sha256_of([self.rule, self.dataset, self.path, self.old, self.new])


class Compatibility(StrEnum):
    """Whether a downstream dataset survives a change."""

    BREAKING = "BREAKING"
    COMPATIBLE = "COMPATIBLE"
    UNKNOWN = "UNKNOWN"


class DownstreamImpact(CanonicalModel):
    """What a change means for one downstream dataset."""

    name: Name
    compatibility: Compatibility
    reason: str
    owner: str | None = None
    urn: Urn | None = None


class ImpactAnalysis(CanonicalModel):
    """Who is affected by a change, and what to do before it ships."""

    downstream_datasets: tuple[DownstreamImpact, ...] = ()
    recommendations: tuple[str, ...] = ()


class SchemaChange(CanonicalModel):
    """A change in one line, as an impact report names it."""

    dataset: Name
    change: str


class ImpactReport(CanonicalModel):
    """A schema change together with its impact."""

    schema_change: SchemaChange
    impact_analysis: ImpactAnalysis = ImpactAnalysis()
