"""What `lumos diff` and `lumos migrate` say of a move from one catalog to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumos.entry.cli.output import print_badge

if TYPE_CHECKING:
    from collections.abc import Collection

    from lumos.feature.snapshot.diff import DiffTotals


def print_migration(totals: DiffTotals, unreadable: Collection[str] = ()) -> None:
    """Say how much of the source the target has, and what a person has to see to."""
    from lumos.core.controllers.migration_checks import migration_checks

    for check in migration_checks(totals, unreadable):
        print_badge(check.status, check.message)
