"""What a sync did, or would do, counted as it goes."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.errors import notes_of
from lumos.core.platform.fidelity import FidelityCount

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lumos.core.errors import LumosError
    from lumos.core.platform.interface import MetadataPlatformInterface
    from lumos.core.run_report import RunRecorder
    from lumos.core.store.sync_states import SyncStates


@dataclass
class KindTally:
    """How many items of one kind were sent, unchanged, removed or failed."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    failed: int = 0
    removed: int = 0


@dataclass
class SyncTally:
    """What a sync did, or would do."""

    recorder: RunRecorder
    kinds: dict[str, KindTally] = field(default_factory=dict)
    fidelity: FidelityCount = field(default_factory=FidelityCount)
    writes: int = 0
    same_there: int = 0
    """What the catalog had already in the state that was to be sent."""
    conflicts: list[str] = field(default_factory=list)
    all_sent: bool = False
    """Whether only removals are left to do."""

    def of(self, kind: str) -> KindTally:
        return self.kinds.setdefault(kind, KindTally())

    def done(self, count: int) -> None:
        """Record that things were handled."""
        self.recorder.done_many(count)

    def refused(self, kind: str, name: str, error: LumosError) -> None:
        """Count and record what the catalog refused."""
        self.of(kind).failed += 1
        self.recorder.failed(self.item(kind, name), error)

    def item(self, kind: str, name: str) -> str:
        """Return what a report calls a thing."""
        return f"{kind} {name}"

    @property
    def failed(self) -> int:
        return sum(kind.failed for kind in self.kinds.values())


class Ends(NamedTuple):
    """Where a sync reads and writes, and what it remembers."""

    source: MetadataPlatformInterface
    target: MetadataPlatformInterface
    states: SyncStates


@contextmanager
def noting_how_far(tally: SyncTally) -> Iterator[None]:
    """Add to an error that ends a sync a note on how far it came, unless it has one."""
    try:
        yield
    except BaseException as error:
        if not notes_of(error):
            removed = sum(kind.removed for kind in tally.kinds.values())
            sent = f"everything was sent, and {removed:,} removed"
            error.add_note(f"{sent if tally.all_sent else 'nothing was sent'}; run again to go on")
        raise
