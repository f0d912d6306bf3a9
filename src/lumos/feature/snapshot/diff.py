"""Comparing two snapshots: only what differs is parsed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import partial

from pydantic import Field, JsonValue

from lumos.core.models import Change, ChangeLevel, DatasetLineage, LumosDataset, Urn, with_parts
from lumos.core.models.base import CanonicalModel, Count
from lumos.core.store.part_format import SECTIONS, dataset_of, key_of_line, merge_parts, urn_of
from lumos.feature.snapshot.bucket_work import LOCAL, BucketEngine, BucketWork, Codec
from lumos.feature.snapshot.pairs import PAIRS, BucketPair, aligned_buckets
from lumos.feature.snapshot.source import SnapshotSource, in_parts

DiffDatasets = Callable[[LumosDataset | None, LumosDataset | None], tuple[Change, ...]]


class Fate(StrEnum):
    """What happened to a dataset that differs."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    UNOBSERVED = "unobserved"


class SectionDiff(CanonicalModel):
    """How one section of a snapshot differs, in numbers."""

    old: Count = 0
    new: Count = 0
    added: Count = 0
    removed: Count = 0
    changed: Count = 0
    unobserved: Count = 0


class SnapshotDiff(CanonicalModel):
    """What changed from one snapshot to another."""

    old: str
    new: str
    changes: tuple[Change, ...] = ()
    added: tuple[Urn, ...] = ()
    removed: tuple[Urn, ...] = ()
    changed: tuple[Urn, ...] = ()
    unobserved: tuple[Urn, ...] = ()
    sections: dict[str, SectionDiff] = Field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether the snapshots agree in all that was observed by both."""
        return not self.changes and not any(
            section.added or section.removed or section.changed
            for section in self.sections.values()
        )

    @property
    def counts_by_level(self) -> dict[ChangeLevel, int]:
        counted = Counter(change.level for change in self.changes)
        return {level: counted[level] for level in ChangeLevel}

    @property
    def worst_level(self) -> ChangeLevel | None:
        levels = {change.level for change in self.changes}
        return max(levels, key=lambda level: level.rank) if levels else None

    def as_json(self) -> dict[str, JsonValue]:
        """Return the object that `lumos diff --json` prints."""
        datasets = self.sections.get("datasets", SectionDiff())
        unchanged = datasets.new - len(self.added) - len(self.changed)
        return {
            "source": self.old,
            "target": self.new,
            "changes": [change_as_json(change) for change in self.changes],
            "added": [*self.added],
            "removed": [*self.removed],
            "changed": [*self.changed],
            "unobserved": [*self.unobserved],
            "summary": {
                "changes": len(self.changes),
                "levels": {level.value: count for level, count in self.counts_by_level.items()},
                "worst_level": self.worst_level.value if self.worst_level else None,
                "datasets": {**datasets.model_dump(), "unchanged": unchanged},
                "sections": {
                    name: section.model_dump()
                    for name, section in self.sections.items()
                    if name != "datasets"
                },
            },
        }


def change_as_json(change: Change) -> dict[str, JsonValue]:
    """Return a change with every field, also the empty ones, and its fingerprint."""
    return {**change.model_dump(mode="json"), "fingerprint": change.fingerprint}


class DatasetDifference(CanonicalModel):
    """What happened to one dataset; without a fate it is as it was to those who use it."""

    urn: Urn
    fate: Fate | None = None
    changes: tuple[Change, ...] = ()


class ItemDifferences(CanonicalModel):
    """How many items of a section differ in some buckets."""

    section: str
    added: Count = 0
    removed: Count = 0
    changed: Count = 0


def diff_work(
    diff_datasets: DiffDatasets, *, new_is_complete: bool
) -> BucketWork[BucketPair, DatasetDifference | ItemDifferences]:
    """Return the comparison of one pair of buckets, as every engine carries it out."""
    kernel = partial(diff_pair, diff_datasets=diff_datasets, new_is_complete=new_is_complete)
    return BucketWork(kernel, PAIRS, Codec(_encoded, _decoded))


def diff_tasks(old: SnapshotSource, new: SnapshotSource) -> list[BucketPair]:
    """Return the pairs of buckets, of all sections, that have to be compared."""
    return [pair for section in SECTIONS for pair in aligned_buckets(old, new, section=section)]


def diff_snapshots(
    old: SnapshotSource,
    new: SnapshotSource,
    *,
    diff_datasets: DiffDatasets,
    engine: BucketEngine = LOCAL,
) -> SnapshotDiff:
    """Compare two snapshots of any form.

    Datasets that an incomplete new snapshot lacks may still exist: they are listed as unobserved,
    not as removed. Neither is lineage removed that it lacks.

    Raises:
        CorruptSnapshotError: a stored snapshot is damaged.
    """
    gathered = _Gathered()
    work = diff_work(diff_datasets, new_is_complete=new.header.complete)
    with in_parts(old, engine) as older, in_parts(new, engine) as newer:
        for found in engine.run(work, diff_tasks(older, newer)):
            gathered.add(found)
    urns = {fate: tuple(sorted(gathered.urns[fate])) for fate in Fate}
    sections = {
        name: _section(old, new, section=name, counts=gathered.items[name]) for name in SECTIONS[1:]
    }
    return SnapshotDiff(
        old=old.name,
        new=new.name,
        changes=tuple(
            sorted(gathered.changes, key=lambda each: (each.dataset, each.path, each.rule))
        ),
        added=urns[Fate.ADDED],
        removed=urns[Fate.REMOVED],
        changed=urns[Fate.CHANGED],
        unobserved=urns[Fate.UNOBSERVED],
        sections={
            "datasets": SectionDiff(
                old=old.statistics.datasets,
                new=new.statistics.datasets,
                **{fate.value: len(urns[fate]) for fate in Fate},
            ),
            **{name: section for name, section in sections.items() if section != SectionDiff()},
        },
    )


def diff_pair(
    pair: BucketPair, *, diff_datasets: DiffDatasets, new_is_complete: bool
) -> Iterator[DatasetDifference | ItemDifferences]:
    """Compare the buckets of a pair; only what differs is parsed.

    Raises:
        CorruptSnapshotError: a part is damaged.
    """
    for old_lines, new_lines in pair.lines():
        if pair.section != "datasets":
            yield _diff_items(pair.section, old_lines, new_lines=new_lines)
            continue
        for old_line, new_line in merge_parts(old_lines, new_lines):
            if new_line is None and old_line is not None and not new_is_complete:
                urn = Urn(urn_of(old_line).decode())
                yield DatasetDifference(urn=urn, fate=Fate.UNOBSERVED)
                continue
            old = dataset_of(old_line) if old_line is not None else None
            new = dataset_of(new_line) if new_line is not None else None
            if old and new and not new_is_complete:
                new = _with_unobserved_lineage(old, new)
            yield _difference(old, new, diff_datasets=diff_datasets)


def _difference(
    old: LumosDataset | None, new: LumosDataset | None, *, diff_datasets: DiffDatasets
) -> DatasetDifference:
    changes = diff_datasets(old, new)
    if new is None:
        fate: Fate | None = Fate.REMOVED
    elif old is None:
        fate = Fate.ADDED
    else:
        # Without changes the stored hashes may only be of another formula; it costs to know.
        differs = changes or old.contract_hash != new.contract_hash
        fate = Fate.CHANGED if differs else None
    return DatasetDifference(urn=_either(old, new).urn, fate=fate, changes=changes)


def _either(old: LumosDataset | None, new: LumosDataset | None) -> LumosDataset:
    dataset = new or old
    if dataset is None:
        raise ValueError("a pair has at least one side")
    return dataset


def _diff_items(section: str, old_lines: list[bytes], *, new_lines: list[bytes]) -> ItemDifferences:
    before, after = set(old_lines), set(new_lines)
    gone = {key_of_line(section, line) for line in before - after}
    come = {key_of_line(section, line) for line in after - before}
    return ItemDifferences(
        section=section,
        added=len(come - gone),
        removed=len(gone - come),
        changed=len(gone & come),
    )


class _Gathered:
    """What the pairs of buckets gave, put together."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.urns: dict[Fate, list[Urn]] = {fate: [] for fate in Fate}
        self.items: dict[str, Counter[str]] = {name: Counter() for name in SECTIONS}

    def add(self, found: DatasetDifference | ItemDifferences) -> None:
        if isinstance(found, ItemDifferences):
            counts = {"added": found.added, "removed": found.removed, "changed": found.changed}
            self.items[found.section].update(counts)
            return
        self.changes.extend(found.changes)
        if found.fate is not None:
            self.urns[found.fate].append(found.urn)


def _with_unobserved_lineage(old: LumosDataset, new: LumosDataset) -> LumosDataset:
    """Keep the neighbours that were not seen again: not to be seen is not to be gone."""
    lineage = DatasetLineage(
        upstream=(*old.lineage.upstream, *new.lineage.upstream),
        downstream=(*old.lineage.downstream, *new.lineage.downstream),
    )
    return new if lineage == new.lineage else with_parts(new, lineage=lineage)


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


def _encoded(found: DatasetDifference | ItemDifferences) -> bytes:
    mark = b"d" if isinstance(found, DatasetDifference) else b"i"
    return mark + found.model_dump_json().encode()


def _decoded(content: bytes) -> DatasetDifference | ItemDifferences:
    kind = DatasetDifference if content[:1] == b"d" else ItemDifferences
    return kind.model_validate_json(content[1:])
