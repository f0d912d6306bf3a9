"""What the commands on stored snapshots answer."""

from __future__ import annotations

from pydantic import Field

from lumos.core.result_base import Result


class PruneResult(Result):
    """Which snapshots were removed, or would be."""

    dry_run: bool
    removed: tuple[str, ...] = Field(description="Oldest first.")
    bytes: int = Field(description="How much their parts took.")
    kept: int
    warnings: tuple[str, ...] = Field(
        default=(), description="Snapshots that are dated in the future."
    )
    unreadable: tuple[str, ...] = Field(
        default=(), description="Snapshots that cannot be read; they are kept."
    )
