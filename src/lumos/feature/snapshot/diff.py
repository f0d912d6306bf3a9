"""Comparing two snapshots: only what differs is parsed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from pydantic import Field, JsonValue

from lumos.core.models import Change, ChangeLevel, DatasetLineage, LumosDataset, Urn, with_parts
from lumos.core.models.base import CanonicalModel, Count
from lumos.core.store.part_format import SECTIONS, dataset_of, key_of_line, merge_parts, urn_of
from lumos.feature.snapshot.source import SnapshotSource, aligned_buckets

DiffDatasets = Callable[[LumosDataset | None, LumosDataset | None], tuple[Change, ...]]


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


def diff_snapshots(
    old: SnapshotSource, new: SnapshotSource, *, diff_datasets: DiffDatasets
) -> SnapshotDiff:
    """Compare two snapshots of any form.

    Datasets that an incomplete new snapshot lacks may still exist: they are listed as unobserved,
    not as removed. Neither is lineage removed that it lacks.

    Raises:
        CorruptSnapshotError: a stored snapshot is damaged.
    """
    pairs = _DatasetPairs(diff_datasets, new_is_complete=new.header.complete)
    for old_lines, new_lines in aligned_buckets(old, new, section="datasets"):
        for old_line, new_line in merge_parts(old_lines, new_lines):
            pairs.add(old_line, new_line)
    sections = {name: _diff_section(old, new, section=name) for name in SECTIONS[1:]}
    return SnapshotDiff(
        old=old.name,
        new=new.name,
        changes=tuple(sorted(pairs.changes, key=lambda each: (each.dataset, each.path, each.rule))),
        added=tuple(sorted(pairs.added)),
        removed=tuple(sorted(pairs.removed)),
        changed=tuple(sorted(pairs.changed)),
        unobserved=tuple(sorted(pairs.unobserved)),
        sections={
            "datasets": SectionDiff(
                old=old.statistics.datasets,
                new=new.statistics.datasets,
                added=len(pairs.added),
                removed=len(pairs.removed),
                changed=len(pairs.changed),
                unobserved=len(pairs.unobserved),
            ),
            **{name: section for name, section in sections.items() if section != SectionDiff()},
        },
    )


class _DatasetPairs:
    """Sorts differing pairs of dataset lines by what happened to the dataset."""

    def __init__(self, diff_datasets: DiffDatasets, *, new_is_complete: bool) -> None:
        self._diff_datasets = diff_datasets
        self._new_is_complete = new_is_complete
        self.changes: list[Change] = []
        self.added: list[Urn] = []
        self.removed: list[Urn] = []
        self.changed: list[Urn] = []
        self.unobserved: list[Urn] = []

    def add(self, old_line: bytes | None, new_line: bytes | None) -> None:
        if new_line is None and old_line is not None and not self._new_is_complete:
            self.unobserved.append(Urn(urn_of(old_line).decode()))
            return
        old = dataset_of(old_line) if old_line is not None else None
        new = dataset_of(new_line) if new_line is not None else None
        if old and new and not self._new_is_complete:
            new = _with_unobserved_lineage(old, new)
        changes = self._diff_datasets(old, new)
        self.changes.extend(changes)
        if old is None and new is not None:
            self.added.append(new.urn)
        elif old is not None and new is None:
            self.removed.append(old.urn)
        # Without changes the stored hashes may only be of another formula; it costs to know.
        elif old and new and (changes or old.contract_hash != new.contract_hash):
            self.changed.append(new.urn)


def _with_unobserved_lineage(old: LumosDataset, new: LumosDataset) -> LumosDataset:
    """Keep the neighbours that were not seen again: not to be seen is not to be gone."""
    lineage = DatasetLineage(
        upstream=(*old.lineage.upstream, *new.lineage.upstream),
        downstream=(*old.lineage.downstream, *new.lineage.downstream),
    )
    return new if lineage == new.lineage else with_parts(new, lineage=lineage)


def _diff_section(old: SnapshotSource, new: SnapshotSource, *, section: str) -> SectionDiff:
    added = removed = changed = 0
    for old_lines, new_lines in aligned_buckets(old, new, section=section):
        before, after = set(old_lines), set(new_lines)
        gone = {key_of_line(section, line) for line in before - after}
        come = {key_of_line(section, line) for line in after - before}
        changed += len(gone & come)
        removed += len(gone - come)
        added += len(come - gone)
    complete = new.header.complete
    return SectionDiff(
        old=old.section_count(section),
        new=new.section_count(section),
        added=added,
        changed=changed,
        removed=removed if complete else 0,
        unobserved=0 if complete else removed,
    )
