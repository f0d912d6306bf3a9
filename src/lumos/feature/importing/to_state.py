"""One import into the state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from lumos.core.json_reading import named_texts_at
from lumos.core.platform.abilities import ExtensionAbility
from lumos.core.platform.batch import Batch, Identity
from lumos.core.platform.batches import batches
from lumos.core.platform.refusals import REFUSALS, ends_run
from lumos.core.progress import SILENT, Progress
from lumos.core.store.snapshots.part_format import item_of, urn_of_line
from lumos.feature.importing.checkpoint import Done
from lumos.feature.importing.comparison import compared_buckets
from lumos.feature.importing.entities import planned_entities
from lumos.feature.importing.plan import ImportMode, PlannedAction
from lumos.feature.importing.steps import ImportSteps, Step, extensions_in
from lumos.feature.snapshot.source import section_lines
from lumos.feature.versioning.publishing import PublishOutcome

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.errors import LumosError
    from lumos.feature.importing.buckets import EdgeChange, ImportBucket
    from lumos.feature.importing.checkpoint import ImportCheckpoint
    from lumos.feature.importing.tally import ImportTally
    from lumos.feature.snapshot.source import SnapshotSource
    from lumos.feature.versioning.publishing import StateTarget

_SHOWN_EVERY = 10


class StateImport:
    """One import into the state that is under way.

    Each batch is one transaction together with how far the import came, and everything written is
    an upsert: an interrupted import is finished by running it again.
    """

    def __init__(
        self,
        target: StateTarget,
        mode: ImportMode,
        *,
        tally: ImportTally,
        checkpoint: ImportCheckpoint | None = None,
        progress: Progress = SILENT,
    ) -> None:
        self._progress = progress
        self._seen = 0
        self._platform, self._publisher, self._database = target
        self._mode = mode
        self._tally = tally
        self._steps = ImportSteps(refused=self._refuse)
        self._checkpoint = checkpoint
        self._done = Done()

    def apply(
        self,
        source: SnapshotSource,
        batch_size: int,
        *,
        restart: bool = False,
    ) -> None:
        """Write everything that can be stored; what cannot is named in the report."""
        before = self._checkpoint.load() if self._checkpoint and not restart else Done()
        self._done, self._tally.resumed = before, before.datasets
        passed_over = self._extensions_to_skip(source)
        self._seen = before.datasets
        total = source.section_count("datasets")
        self._progress.stage("writing datasets", total=total, unit="datasets")
        self._apply_entities(source)
        compared = compared_buckets(
            source,
            self._platform,
            mode=self._mode,
            own_versions=self._publisher.keeps_history,
        )
        with closing(compared) as buckets:
            for place, bucket in enumerate(buckets):
                done = before.of_bucket(place)
                if done is not None:
                    self._apply_bucket(bucket, batch_size, place=place, done=done)
        self._apply_rest(source, passed_over)
        if self._checkpoint:
            self._checkpoint.clear()

    def _apply_bucket(
        self, bucket: ImportBucket, batch_size: int, *, place: int, done: int
    ) -> None:
        for line in bucket.lines[:done]:
            bucket.changes.pop(urn_of_line(line).decode(), None)
        for lines in batches(bucket.lines[done:], batch_size):
            with self._database.transaction():
                for line in lines:
                    if step := self._steps.of_line(bucket, line):
                        self._attempt(step.name, partial(self._put, step))
                    self._advance()
                done += len(lines)
                self._came_to(self._done.after_lines(place, done, new=len(lines)))
        for steps in batches(self._steps.of_edges(bucket), batch_size):
            with self._database.transaction():
                for step in steps:
                    self._attempt(step.name, partial(self._put, step))
        self._came_to(self._done.after_bucket(place))

    def _put(self, step: Step) -> None:
        self._change_edges(step.changes)
        action = step.action
        if step.dataset is not None:
            outcome = self._publisher.publish(step.dataset)
            if outcome is PublishOutcome.UNCHANGED and not step.changes:
                action = PlannedAction.KEEP  # it takes no other version
        elif step.changes:
            self._publisher.refresh(step.urn)
        self._tally.breaking = len(self._publisher.breaking)
        self._tally.count_edges(step.changes)
        if action is not None:
            self._tally.count(step.urn, action)

    def _change_edges(self, changes: Sequence[EdgeChange]) -> None:
        removed = [change.edge for change in changes if change.removed]
        written = [change.edge for change in changes if not change.removed]
        if changes:
            self._platform.apply(Batch(edges=written, removed_edges=removed))

    def _apply_entities(self, source: SnapshotSource) -> None:
        with self._database.transaction():
            for name, entity in planned_entities(self._platform, source, mode=self._mode):
                self._attempt(name, partial(self._platform.apply, Batch(entities=(entity,))))

    def _extensions_to_skip(self, source: SnapshotSource) -> frozenset[str]:
        """Return the names of extensions that are there and are to stay as they are."""
        if self._mode is not ImportMode.SKIP_EXISTING or not source.section_count("extensions"):
            return frozenset()
        return frozenset(ExtensionAbility.of(self._platform).extensions())

    def _apply_rest(self, source: SnapshotSource, passed_over: frozenset[str]) -> None:
        with self._database.transaction():
            for name, value in extensions_in(source):
                if name not in passed_over:
                    write = partial(self._platform.apply, Batch(extensions={name: value}))
                    self._attempt(f"extension {name}", write)
            for line in section_lines(source, "identity_map"):
                item = item_of(line)
                self._attempt(f"identity of {item['urn']}", partial(self._name, item))

    def _name(self, item: dict[str, JsonValue]) -> None:
        ids = named_texts_at(item, "ids")
        named = [Identity(str(item["urn"]), catalog, ids[catalog]) for catalog in ids]
        self._platform.apply(Batch(identities=named))

    def _advance(self) -> None:
        self._seen += 1
        if not self._seen % _SHOWN_EVERY:
            self._progress.advance(self._seen)

    def _came_to(self, done: Done) -> None:
        """Keep how far it came, as long as nothing failed that the next run has to try again."""
        self._done = done
        if self._checkpoint and not self._tally.failed:
            self._checkpoint.save(done)

    def _attempt(self, item: str, act: Callable[[], None]) -> None:
        """Do one step whole or not at all; what is refused is recorded and the import goes on."""
        try:
            with self._database.transaction():
                act()
        except REFUSALS as error:
            self._refuse(item, error)

    def _refuse(self, item: str, error: LumosError) -> None:
        """Record what was refused; where nothing else would fare better, the run ends."""
        self._tally.failed += 1
        self._tally.recorder.failed(item, error)
        if ends_run(error):
            raise error
