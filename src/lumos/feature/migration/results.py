"""The result of a migration from one catalog to another."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lumos.core.models import Urn
from lumos.core.result_base import Result as _Result


class MigrationCheck(_Result):
    """One thing that was compared after a move from one catalog to another."""

    status: Literal["ok", "warn"]
    message: str
    concept: str | None = Field(default=None, description="The concept that it is about.")
    count: int = Field(
        default=0, description="How many things lack it, have it differently or are missing."
    )
    declared: bool = Field(
        default=False, description="Whether the target says beforehand that it drops the concept."
    )
    examples: tuple[str, ...] = Field(default=(), description="Some of these things, by name.")


class UnlikeDataset(_Result):
    """A dataset that is not the same in the catalog that it moved to."""

    urn: Urn
    concepts: tuple[str, ...] = Field(description="The concepts of which it has not the same.")
