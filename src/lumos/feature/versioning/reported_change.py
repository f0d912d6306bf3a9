"""A change as commands print it."""

from __future__ import annotations

from pydantic import Field, JsonValue

from lumos.core.models import Change, PolicyEffect, Urn
from lumos.core.result_base import Result


class ReportedChange(Result):
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
