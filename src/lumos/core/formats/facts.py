"""What a reader tells about one file, in the same words for every format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lumos.core.models import Schema


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Facts about one file; none of them is a value of its data."""

    format: str
    schema: Schema
    rows: int | None = None
    """Exact, where the file says so; None where only a full read could tell."""
    row_groups: int | None = None
    created_by: str | None = None
    """The program that wrote the file, as it calls itself."""
    description: str | None = None
    warnings: tuple[str, ...] = ()
    """What was adapted to fit the canonical model, such as a repeated column name."""
