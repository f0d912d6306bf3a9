"""What is told of a move from one catalog to another."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lumos.core.controllers.result_base import Result as _Result
from lumos.core.models import Urn


class MigrationCheck(_Result):
    """One thing that was compared after a move from one catalog to another."""

    status: Literal["ok", "warn"]
    message: str


class UnlikeDataset(_Result):
    """A dataset that is not the same in the catalog that it moved to."""

    urn: Urn
    parts: tuple[str, ...] = Field(description="What of it is not the same.")
