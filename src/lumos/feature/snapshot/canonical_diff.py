"""Comparing two snapshots in all that they hold, concept by concept; nothing is ignored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import TYPE_CHECKING, Final

from pydantic import Field

from lumos.core.models import Urn
from lumos.core.models.base import CanonicalModel, Count
from lumos.core.platform.concept_parts import (
    Outcome,
    dataset_outcomes,
    edge_outcomes,
    item_outcome,
)
from lumos.core.platform.fidelity import CONCEPTS
from lumos.core.store.snapshots.part_format import (
    dataset_item_of,
    differing_lines,
    item_of,
    key_of_line,
    lines_of,
    urn_of_line,
)
from lumos.feature.snapshot.diff import differing_pairs
from lumos.feature.snapshot.fidelity_count import SECTION_CONCEPTS

if TYPE_CHECKING:
    from lumos.feature.snapshot.pairs import BucketPair
    from lumos.feature.snapshot.source import SnapshotSource

MOST_EXAMPLES: Final = 3
MOST_NAMED: Final = 1_000

_Found = tuple[str, str, dict[str, Outcome]]
"""A section, the name of an item of it, and in which concepts it is not the same."""


class ConceptDifference(CanonicalModel):
    """In how many datasets, edges or other things a concept is not the same."""

    concept: str
    lacking: Count = Field(default=0, description="Where something of it is not there.")
    differing: Count = Field(default=0, description="Where all is there, but not the same.")
    more: Count = Field(default=0, description="Where all is there, and more.")
    examples: tuple[str, ...] = Field(
        default=(), description="Some of those that lack or differ, by name."
    )


class UnlikeItem(CanonicalModel):
    """A dataset of both sides that is not the same."""

    urn: Urn
    concepts: tuple[str, ...] = Field(description="Of which it lacks some, or has other or more.")


class CanonicalDiff(CanonicalModel):
    """Everything in which two snapshots differ, by concept."""

    concepts: tuple[ConceptDifference, ...] = ()
    datasets: Count = Field(default=0, description="Datasets of both that are not the same.")
    unlike: tuple[UnlikeItem, ...] = Field(default=(), description="The first 1,000 of them.")

    def of(self, concept: str) -> ConceptDifference:
        """Return what differs in a concept, if anything."""
        empty = ConceptDifference(concept=concept)
        return next((each for each in self.concepts if each.concept == concept), empty)


def canonical_diff(old: SnapshotSource, new: SnapshotSource) -> CanonicalDiff:
    """Count by concept what of one snapshot another lacks or has differently.

    Parts with equal checksums are not read, lines that are equal are not parsed, and no more than
    some names of what differs is held. Heads of snapshots are not compared: when and where each
    was made is its own.

    Raises:
        CorruptSnapshotError: a stored snapshot is damaged.
    """
    gathered = _Gathered()
    for pair in differing_pairs(old, new):
        gathered.join(_pair_differences(pair))
    return gathered.result()


@dataclass(slots=True)
class _Gathered:
    """What was found so far: numbers, and some names."""

    datasets: int = 0
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    unlike: dict[str, list[str]] = field(default_factory=dict)

    def add(self, section: str, name: str, outcomes: dict[str, Outcome]) -> None:
        missing = outcomes.get(SECTION_CONCEPTS[section]) is Outcome.LACKING
        if section == "datasets" and outcomes and not missing:
            self.datasets += 1
            if len(self.unlike) < MOST_NAMED:  # those of a bucket come in order
                self.unlike[name] = sorted(outcomes)
        for concept, outcome in outcomes.items():
            self.counts[concept, outcome.value] += 1
            if outcome is not Outcome.MORE:
                self._name(concept, [name])

    def join(self, other: _Gathered) -> None:
        self.datasets += other.datasets
        self.counts.update(other.counts)
        for concept, names in other.examples.items():
            self._name(concept, names)
        both = {**self.unlike, **other.unlike}
        self.unlike = {urn: both[urn] for urn in nsmallest(MOST_NAMED, both)}

    def result(self) -> CanonicalDiff:
        found = {concept for concept, _ in self.counts}
        rows = [
            ConceptDifference(
                concept=concept,
                **{outcome.value: self.counts[concept, outcome.value] for outcome in Outcome},
                examples=tuple(self.examples.get(concept, ())),
            )
            for concept in CONCEPTS
            if concept in found
        ]
        unlike = (
            UnlikeItem(urn=Urn(urn), concepts=tuple(found)) for urn, found in self.unlike.items()
        )
        return CanonicalDiff(concepts=tuple(rows), datasets=self.datasets, unlike=tuple(unlike))

    def _name(self, concept: str, names: Iterable[str]) -> None:
        known = self.examples.get(concept, [])
        self.examples[concept] = nsmallest(MOST_EXAMPLES, (*known, *names))


def _pair_differences(pair: BucketPair) -> _Gathered:
    """Compare the buckets of a pair; only what differs is parsed."""
    found = _Gathered()
    for old, new in pair.differing():
        items = (
            _datasets(old, new) if pair.section == "datasets" else _items(pair.section, old, new)
        )
        for section, name, outcomes in items:
            found.add(section, name, outcomes)
    return found


def _datasets(old: bytes, new: bytes) -> Iterator[_Found]:
    for line, other in differing_lines(old, new, observations=True):
        if line is None:
            continue  # what the other has besides is its own
        name = urn_of_line(line).decode()
        if other is None:
            yield "datasets", name, {"dataset": Outcome.LACKING}
        else:
            before, after = (dataset_item_of(each) for each in (line, other))
            yield "datasets", name, dataset_outcomes(before, after)


def _items(section: str, old: bytes, new: bytes) -> Iterator[_Found]:
    before, after = set(lines_of(old)), set(lines_of(new))
    come = {key_of_line(section, line): line for line in after - before}
    concept = SECTION_CONCEPTS[section]
    for line in before - after:
        key = key_of_line(section, line)
        name = _name_of(section, key)
        if key not in come:
            yield section, name, {concept: Outcome.LACKING}
            continue
        sides = item_of(line), item_of(come[key])
        if section == "lineage_edges":
            yield section, name, edge_outcomes(*sides)
        elif outcome := item_outcome(*sides):
            yield section, name, {concept: outcome}


def _name_of(section: str, key: bytes) -> str:
    name = key.decode()
    return " → ".join(name.split("\n")[:2]) if section == "lineage_edges" else name
