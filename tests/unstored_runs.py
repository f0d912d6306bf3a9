"""A run whose report goes into a list, and not into a database."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from lumos.core.run_report import RunReport


class Unstored(NamedTuple):
    """What a controller is given that writes to no state of a project."""

    reports: list[RunReport]

    def keep(self, report: RunReport) -> None:
        """Add a report to the list."""
        self.reports.append(report)
