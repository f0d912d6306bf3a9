"""What an import counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lumos.core.models import Urn
from lumos.feature.importing.plan import PlannedAction

if TYPE_CHECKING:
    from lumos.core.run_report import RunRecorder
    from lumos.feature.importing.buckets import EdgeChange


@dataclass
class ImportTally:
    """What an import did to datasets and edges."""

    recorder: RunRecorder
    created: list[Urn] = field(default_factory=list)
    updated: list[Urn] = field(default_factory=list)
    unchanged: int = 0
    skipped: int = 0
    resumed: int = 0
    failed: int = 0
    breaking: int = 0
    edges: int = 0
    removed_edges: int = 0

    def count(self, urn: str, action: PlannedAction) -> None:
        if action is PlannedAction.KEEP:
            self.unchanged += 1
        elif action is PlannedAction.SKIP:
            self.skipped += 1
            self.recorder.skipped(urn, reason="the catalog has it already")
        else:
            written = self.created if action is PlannedAction.CREATE else self.updated
            written.append(Urn(urn))
            self.recorder.done(urn)

    def count_edges(self, changes: Iterable[EdgeChange]) -> None:
        for change in changes:
            if change.removed:
                self.removed_edges += 1
            else:
                self.edges += 1
