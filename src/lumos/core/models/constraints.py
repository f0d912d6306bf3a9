"""Conditions that every row has to meet."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from lumos.core.models.base import LARGEST_INTEGER, CanonicalModel, Count, Name

_Limit = Annotated[int, Field(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)] | float


class Check(CanonicalModel):
    """A condition on rows or on one column: limits, a pattern, or an expression of the source."""

    name: Name | None = None
    column: Name | None = None
    minimum: _Limit | None = None
    maximum: _Limit | None = None
    min_length: Count | None = None
    max_length: Count | None = None
    pattern: str | None = Field(default=None, description="A regular expression.")
    expression: str | None = Field(default=None, description="A condition as the source has it.")
