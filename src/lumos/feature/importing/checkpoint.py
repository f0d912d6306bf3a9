"""Where an interrupted import goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from lumos.core.models.base import sha256_of
from lumos.feature.snapshot.source import StoredSource

if TYPE_CHECKING:
    from datetime import datetime

    from pydantic import JsonValue

    from lumos.core.run_report import Clock
    from lumos.feature.importing.plan import ImportMode
    from lumos.feature.snapshot.source import SnapshotSource


class Checkpoints(Protocol):
    """What keeps checkpoints together with what was written up to them."""

    def load(self, name: str) -> dict[str, JsonValue] | None: ...

    def save(self, name: str, document: dict[str, JsonValue], *, at: datetime) -> None: ...

    def forget_all(self) -> None: ...


class Done(NamedTuple):
    """All buckets before a place, and the first lines of the bucket at that place."""

    place: int = 0
    lines: int = 0
    datasets: int = 0

    def of_bucket(self, place: int) -> int | None:
        """Return how many lines of a bucket are done, or None where all of it is."""
        if place < self.place:
            return None
        return self.lines if place == self.place else 0

    def after_lines(self, place: int, lines: int, *, new: int) -> Done:
        return Done(place, lines, self.datasets + new)

    def after_bucket(self, place: int) -> Done:
        return Done(place + 1, 0, self.datasets)


class ImportCheckpoint:
    """The checkpoint of one snapshot on its way into the state in one mode."""

    def __init__(self, checkpoints: Checkpoints, name: str, *, clock: Clock) -> None:
        self._checkpoints = checkpoints
        self._name = name
        self._clock = clock

    @classmethod
    def of(
        cls,
        checkpoints: Checkpoints,
        source: SnapshotSource,
        *,
        mode: ImportMode,
        clock: Clock,
    ) -> ImportCheckpoint | None:
        """Return the checkpoint of an import; a snapshot that has no content id has none."""
        if not isinstance(source, StoredSource):
            return None
        name = sha256_of([source.content_hash, source.bucket_count(), mode.value])
        return cls(checkpoints, name, clock=clock)

    def load(self) -> Done:
        """Return what an earlier run has done, or that nothing is done."""
        kept = self._checkpoints.load(self._name)
        if kept is None:
            self._checkpoints.forget_all()  # of other imports, which this one may undo
            return Done()
        done = Done(*(int(str(kept[name])) for name in Done._fields))
        self.save(done)  # it counts for the run after this one, should this one be cut short
        return done

    def save(self, done: Done) -> None:
        """Keep what is done, as part of the transaction that does it."""
        self._checkpoints.save(self._name, {**done._asdict()}, at=self._clock())

    def clear(self) -> None:
        """Forget it: the import has come to its end."""
        self._checkpoints.forget_all()
