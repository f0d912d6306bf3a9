"""What `lumos diff` and `lumos migrate` say of a move from one catalog to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumos.entry.cli.output import print_badge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lumos.feature.migration.results import MigrationCheck


def print_migration(checks: Iterable[MigrationCheck]) -> None:
    """Say how much of the source the target has, and what a person has to see to."""
    for check in checks:
        print_badge(check.status, check.message)
