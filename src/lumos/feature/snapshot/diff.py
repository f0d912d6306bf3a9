"""Comparing two snapshots: only what differs is parsed, and what was found may exceed memory."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, groupby, takewhile
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
from pydantic import Field, JsonValue

from lumos.core.models import Change, ChangeLevel, Urn
from lumos.core.models.base import CanonicalModel, Count
from lumos.core.platform.unreadable import outcomes
from lumos.core.run_report import ItemOutcome
from lumos.core.store.snapshots.line_sorter import LineSorter
from lumos.core.store.snapshots.part_format import SECTIONS
from lumos.core.store.snapshots.snapshot_files import DurableFiles, storing_error
from lumos.feature.snapshot.pair_diff import (
    NOTHING_FURTHER,
    DatasetDifference,
    DiffDatasets,
    Fate,
    FurtherDiffs,
    ItemDifferences,
    diff_pair,
)
from lumos.feature.snapshot.pairs import BucketPair, aligned_buckets

if TYPE_CHECKING:
    from lumos.core.json_reading import Json
    from lumos.core.platform.unreadable import Unreadable
    from lumos.feature.snapshot.canonical_diff import CanonicalDiff
    from lumos.feature.snapshot.source import SnapshotSource

HELD_BYTES = 16 * 1024 * 1024
"""How much of what was found is held in memory; what is more waits in temporary files."""

_CHANGES = 0
_UNOBSERVED = "dataset.unobserved"
_RANKS = {Fate.ADDED: 1, Fate.REMOVED: 2, Fate.CHANGED: 3, Fate.UNOBSERVED: 4}


class SectionDiff(CanonicalModel):
    """How one section of a snapshot differs, in numbers."""

    old: Count = 0
    new: Count = 0
    added: Count = 0
    removed: Count = 0
    changed: Count = 0
    unobserved: Count = 0


class DiffTotals(CanonicalModel):
    """A diff in numbers; changes that a policy ignores are counted apart and weigh nothing."""

    levels: dict[ChangeLevel, Count] = Field(default_factory=dict)
    cautions: Count = Field(default=0, description="Changes that are allowed, with caution.")
    ignored: Count = Field(default=0, description="Changes that the project's policy ignores.")
    unobserved: Count = Field(
        default=0, description="Findings that say no more than that a dataset was not seen."
    )
    sections: dict[str, SectionDiff] = Field(default_factory=dict)

    @property
    def changes(self) -> int:
        return sum(self.levels.values())

    @property
    def weighed(self) -> int:
        """How many changes there are for sure that the policy does not ignore."""
        return self.changes - self.ignored - self.unobserved

    @property
    def worst_level(self) -> ChangeLevel | None:
        found = [level for level, count in self.levels.items() if count]
        return max(found, key=lambda level: level.rank) if found else None

    @property
    def datasets(self) -> SectionDiff:
        return self.sections.get("datasets", SectionDiff())

    @property
    def other_sections(self) -> dict[str, SectionDiff]:
        return {name: each for name, each in self.sections.items() if name != "datasets"}

    @property
    def is_empty(self) -> bool:
        """Whether the snapshots agree in all that was observed by both."""
        return self.changes == self.unobserved and not any(
            section.added or section.removed or section.changed
            for section in self.sections.values()
        )

    def as_json(self) -> Json:
        """Return the `summary` that `lumos diff --json` prints."""
        datasets = self.datasets
        unchanged = datasets.new - datasets.added - datasets.changed
        return {
            "changes": self.changes,
            "levels": {level.value: self.levels.get(level, 0) for level in ChangeLevel},
            "worst_level": self.worst_level.value if self.worst_level else None,
            "cautions": self.cautions,
            "ignored": self.ignored,
            "datasets": {**datasets.model_dump(), "unchanged": unchanged},
            "sections": {name: each.model_dump() for name, each in self.other_sections.items()},
        }


class StreamedDiff:
    """What changed from one snapshot to another, in order of URN, without holding it all."""

    def __init__(self, old: str, new: str, *, totals: DiffTotals, found: LineSorter) -> None:
        self.old = old
        self.new = new
        self.totals = totals
        self.unreadable_in_old: tuple[Unreadable, ...] = ()
        self.unreadable_in_new: tuple[Unreadable, ...] = ()
        self.canonical: CanonicalDiff | None = None
        """In which concepts they are not the same, if somebody looked."""
        self._found = found

    def changes(self) -> Iterator[Json]:
        """Yield the changes as JSON objects with fingerprints, by URN, path and rule."""
        lines = takewhile(lambda each: each.rank == _CHANGES, self._found)
        for _, group in groupby(lines, key=attrgetter("key")):
            first, *rest = (orjson.loads(line.line) for line in group)
            if rest:  # of the dataset itself, and of the steps of lineage that lead to it
                first = sorted(sum(rest, first), key=itemgetter("path", "rule"))
            yield from first

    def urns(self) -> Iterator[tuple[Fate, Urn]]:
        """Yield what happened to which dataset: those added, removed, changed, unobserved."""
        fates = {rank: fate for fate, rank in _RANKS.items()}
        for line in self._found:
            if line.rank != _CHANGES:
                yield fates[line.rank], Urn(line.key.decode())


def unreadable_outcomes(found: StreamedDiff) -> tuple[ItemOutcome, ...]:
    """Return what could not be read on either side, as reports show it."""
    return outcomes((*found.unreadable_in_old, *found.unreadable_in_new))


class SnapshotDiff(CanonicalModel):
    """What changed from one snapshot to another, held in memory."""

    old: str
    new: str
    totals: DiffTotals = DiffTotals()
    changes: tuple[Change, ...] = ()
    added: tuple[Urn, ...] = ()
    removed: tuple[Urn, ...] = ()
    changed: tuple[Urn, ...] = ()
    unobserved: tuple[Urn, ...] = ()
    unreadable: tuple[ItemOutcome, ...] = ()

    @property
    def sections(self) -> dict[str, SectionDiff]:
        return self.totals.sections

    @property
    def is_empty(self) -> bool:
        """Whether the snapshots agree in all that was observed by both."""
        return self.totals.is_empty

    @property
    def counts_by_level(self) -> dict[ChangeLevel, int]:
        return {level: self.totals.levels.get(level, 0) for level in ChangeLevel}

    @property
    def worst_level(self) -> ChangeLevel | None:
        return self.totals.worst_level

    def as_json(self) -> Json:
        """Return the object that `lumos diff --json` prints."""
        unreadable: list[JsonValue] = [each.model_dump(mode="json") for each in self.unreadable]
        return {
            "source": self.old,
            "target": self.new,
            "changes": [change_as_json(change) for change in self.changes],
            **{fate.value: [*getattr(self, fate.value)] for fate in Fate},
            "summary": self.totals.as_json(),
            **({"unreadable": unreadable} if unreadable else {}),
        }


def change_as_json(change: Change) -> Json:
    """Return a change as commands print it: every field, also an empty one, and its fingerprint.

    What applying the change would need is left out.
    """
    told = change.model_dump(mode="json", exclude={"payload"})
    return {**told, "fingerprint": change.fingerprint}


def differing_pairs(old: SnapshotSource, new: SnapshotSource) -> Iterator[BucketPair]:
    """Yield the pairs of buckets, of all sections, that have to be compared.

    Parts of which both manifests name the same checksum are not among them: they are equal
    without being read, and `lumos snapshot verify` says whether they are whole.
    """
    for section in SECTIONS:
        yield from aligned_buckets(old, new, section=section)


@contextmanager
def streamed_diff(
    old: SnapshotSource,
    new: SnapshotSource,
    *,
    diff_datasets: DiffDatasets,
    further: FurtherDiffs = NOTHING_FURTHER,
    held_bytes: int = HELD_BYTES,
) -> Iterator[StreamedDiff]:
    """Compare two snapshots of any form; all is compared before the first change is yielded.

    Datasets that an incomplete new snapshot lacks may still exist: they are reported as unobserved,
    not as removed. Neither is lineage removed that it lacks. However much changed, no more than
    `held_bytes` of it are held in memory; what is more waits in temporary files.

    Raises:
        CorruptSnapshotError: a stored snapshot is damaged.
        StorageFullError: there is no room for temporary files.
    """
    folder = Path(tempfile.gettempdir())
    compare = partial(
        diff_pair,
        diff_datasets=diff_datasets,
        new_is_complete=new.header.complete,
        further=further,
    )
    with LineSorter(folder, files=DurableFiles(), memory_bytes=held_bytes) as found:
        gathered = _Gathered(found)
        for each in chain.from_iterable(map(compare, differing_pairs(old, new))):
            try:
                gathered.add(each)
            except OSError as error:
                raise storing_error(error, folder) from error
        told = StreamedDiff(old.name, new.name, totals=gathered.totals(old, new), found=found)
        told.unreadable_in_old, told.unreadable_in_new = old.unreadable, new.unreadable
        yield told


def diff_snapshots(
    old: SnapshotSource,
    new: SnapshotSource,
    *,
    diff_datasets: DiffDatasets,
    further: FurtherDiffs = NOTHING_FURTHER,
) -> SnapshotDiff:
    """Compare two snapshots of any form, as `streamed_diff` does, and hold all that changed.

    The changes are yielded as commands print them, without what applying them would need.

    Raises:
        CorruptSnapshotError: a stored snapshot is damaged.
    """
    urns: dict[Fate, list[Urn]] = {fate: [] for fate in Fate}
    with streamed_diff(old, new, diff_datasets=diff_datasets, further=further) as found:
        changes = tuple(_change_of(change) for change in found.changes())
        for fate, urn in found.urns():
            urns[fate].append(urn)
        return SnapshotDiff(
            old=found.old,
            new=found.new,
            totals=found.totals,
            changes=changes,
            **{fate.value: tuple(urns[fate]) for fate in Fate},
            unreadable=unreadable_outcomes(found),
        )


def _change_of(document: Json) -> Change:
    return Change.from_json({name: document[name] for name in document if name != "fingerprint"})


class _Gathered:
    """What the pairs of buckets gave, put together."""

    def __init__(self, found: LineSorter) -> None:
        self._found = found
        self._levels: Counter[ChangeLevel] = Counter()
        self._cautions = 0
        self._ignored = 0
        self._unobserved = 0
        self._fates: Counter[str] = Counter()
        self._items: dict[str, Counter[str]] = {name: Counter() for name in SECTIONS}

    def add(self, found: DatasetDifference | ItemDifferences) -> None:
        if isinstance(found, ItemDifferences):
            counts = {"added": found.added, "removed": found.removed, "changed": found.changed}
            self._items[found.section].update(counts)
            return
        key = found.urn.encode()
        for change in found.changes:
            self._count(change)
        if found.changes:
            ordered = sorted(found.changes, key=attrgetter("path", "rule"))
            line = orjson.dumps([change_as_json(change) for change in ordered])
            # A copy: what orjson returns keeps the kilobytes that it was written into.
            self._found.add(_CHANGES, key, line=bytes(memoryview(line)))
        if found.fate is not None:
            self._fates[found.fate.value] += 1
            self._found.add(_RANKS[found.fate], key, line=b"")

    def totals(self, old: SnapshotSource, new: SnapshotSource) -> DiffTotals:
        sections = {
            name: _section(old, new, section=name, counts=self._items[name])
            for name in SECTIONS[1:]
        }
        datasets = SectionDiff(
            old=old.statistics.datasets, new=new.statistics.datasets, **self._fates
        )
        return DiffTotals(
            levels={level: self._levels[level] for level in ChangeLevel},
            cautions=self._cautions,
            ignored=self._ignored,
            unobserved=self._unobserved,
            sections={
                "datasets": datasets,
                **{name: section for name, section in sections.items() if section != SectionDiff()},
            },
        )

    def _count(self, change: Change) -> None:
        self._levels[change.level] += 1
        ignored = change.policy is not None and change.policy.ignored
        self._ignored += ignored
        self._cautions += change.caution and not ignored
        unseen = change.rule == _UNOBSERVED and change.level is ChangeLevel.INFORMATIONAL
        self._unobserved += unseen and not ignored


def _section(
    old: SnapshotSource, new: SnapshotSource, *, section: str, counts: Counter[str]
) -> SectionDiff:
    complete = new.header.complete
    return SectionDiff(
        old=old.section_count(section),
        new=new.section_count(section),
        added=counts["added"],
        changed=counts["changed"],
        removed=counts["removed"] if complete else 0,
        unobserved=0 if complete else counts["removed"],
    )
