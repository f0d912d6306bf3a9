"""Brings what a scan found into the state, and takes out what is surely gone."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, Protocol

import orjson

from lumos.core.errors import DamagedDocumentError, InvalidModelError, LumosError
from lumos.core.models import (
    Change,
    Contributor,
    DatasetLineage,
    LineageEdge,
    LumosDataset,
    Observation,
    Urn,
    with_parts,
)
from lumos.core.models.contribution import Contribution, fold
from lumos.core.models.dataset_contributions import DatasetContributions
from lumos.core.models.facets import OBSERVED_PARTS
from lumos.core.platform.refusals import REFUSALS, ends_run
from lumos.feature.discovery.building import FILE_LIST
from lumos.feature.ingestion.results import DatasetCounts
from lumos.spark.stages.rows import BuiltDataset

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from lumos.core.store.catalog.catalog_tables import CatalogTables
    from lumos.feature.ingestion.state_writer import StateWriter


Judge = Callable[[LumosDataset | None, LumosDataset | None], tuple[Change, ...]]


class Scanned(Protocol):
    """What a pipeline found."""

    def differing(self, states: Iterable[tuple[str, str]]) -> Iterator[BuiltDataset | str]:
        """Yield the datasets that differ from states, and the URNs of those not found."""


class Evidence(Protocol):
    """What a scan could see."""

    def whole(
        self, found: LumosDataset, present: LumosDataset | None, *, source: str
    ) -> LumosDataset | None:
        """Return a dataset with what could not be seen of it; None where it is to stay as it is."""

    def is_gone(self, dataset: LumosDataset, *, source: str) -> bool:
        """Return whether a dataset that was not found is surely not there any more."""


class Compared(NamedTuple):
    """What differs from the state, in a file with a line for each dataset."""

    file: Path

    def keep(self, differing: Iterable[BuiltDataset | str]) -> None:
        """Write the file."""
        with self.file.open("xb") as stream:
            for each in differing:
                stream.write(orjson.dumps(each if isinstance(each, str) else list(each)) + b"\n")

    def differing(self, states: Iterable[tuple[str, str]]) -> Iterator[BuiltDataset | str]:
        """Yield what was kept; the states are those that it was compared with."""
        with self.file.open("rb") as stream:
            for line in stream:
                each = orjson.loads(line)
                yield each if isinstance(each, str) else BuiltDataset(*each)


class Speaker(NamedTuple):
    """As what a source of the settings contributes."""

    contributor: Contributor
    rank: int = 0
    """Its place in the settings."""


class Find(NamedTuple):
    """What one scan found, and what it could see."""

    scanned: Scanned
    evidence: Evidence
    sources: Sequence[str]


class _Step(NamedTuple):
    """What is to be done with one dataset."""

    said: DatasetContributions
    """All that is said of it afterwards."""
    dataset: LumosDataset
    """As it is to be; as it was, where it is gone."""
    is_news: bool
    is_known: bool
    """Whether the state has it."""
    is_said_by_others: bool
    """Whether its contributors changed, or are several."""
    changes: tuple[Change, ...]
    found: Mapping[Contributor, str]
    """By contributor, the hash of what it says now, where it was found."""


@dataclass
class FoundDatasets:
    """The datasets of one run against those of the state.

    Only datasets that differ from what their sources last said are looked at one by one. What
    several sources say of one dataset is brought together first, so that it gets one version.
    """

    speakers: Mapping[str, Speaker]
    """By the name of each source that was scanned."""
    judge: Judge
    """Says what changed, as the policy of the project sees it."""
    at: datetime
    state: CatalogTables | None = None
    """None where there is no state yet."""
    created: int = 0
    updated: int = 0
    removed: int = 0
    changes: list[Change] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    failures: list[tuple[str, LumosError]] = field(default_factory=list)
    """The datasets that are left as they are, by URN, and why.

    The state cannot hold what was found, or what is stored of them is damaged.
    """
    taken_out: Sequence[Contributor] = ()
    """Those that the settings named before: what only they said is withdrawn."""
    touched: set[Urn] = field(default_factory=set)
    lineage_before: dict[Urn, DatasetLineage] = field(default_factory=dict)
    """The neighbours that datasets had whose lineage this run changed."""

    def compare(self, finds: Sequence[Find], folder: Path) -> list[Find]:
        """Return finds that are compared with the state already, so that Spark has nothing to do.

        What differs is kept in files: a transaction that writes it waits for no job of Spark.

        Args:
            finds: what the scans found.
            folder: where the files are made; it is the caller's to remove.
        """
        compared = []
        for number, find in enumerate(finds):
            states = {
                urn: digest
                for source in find.sources
                for urn, digest in self._states(self.speakers[source].contributor)
            }
            differing = Compared(folder / f"differing-{number}.jsonl")
            differing.keep(find.scanned.differing(states.items()))
            compared.append(find._replace(scanned=differing))
        return compared

    def plan(self, finds: Sequence[Find]) -> None:
        """Find out what a run would do, and do nothing."""
        for step in self._planned(finds):
            self._count(step)

    def publish(self, finds: Sequence[Find], writer: StateWriter) -> None:
        """Write what differs and retire what is gone; the caller holds the transaction."""
        for contributor in self.taken_out:
            self.put_edges(writer, contributor, (), is_gone=lambda _: True)
        seen: dict[Contributor, list[tuple[str, str]]] = {}
        for step in self._planned(finds):
            if not self._written(step, writer):
                continue
            self._count(step)
            for contributor, digest in step.found.items():
                seen.setdefault(contributor, []).append((step.said.urn, digest))
        for contributor, states in seen.items():
            writer.keep_found_states(contributor, states)
        for urn in sorted(self.lineage_before.keys() - self.touched):
            self._refresh(urn, writer)

    def _refresh(self, urn: Urn, writer: StateWriter) -> None:
        """Version a dataset of which nothing but its lineage changed."""
        dataset = writer.tables.dataset(urn)
        if dataset is None:
            return
        writer.refresh(urn)
        changes = self.judge(self._as_before(dataset), dataset)
        if changes:
            self.updated += 1
            self.changes.extend(changes)

    def _as_before(self, present: LumosDataset) -> LumosDataset:
        """Return a dataset with the neighbours that it had before this run."""
        lineage = self.lineage_before.get(present.urn)
        return present if lineage is None else with_parts(present, lineage=lineage)

    def put_edges(
        self,
        writer: StateWriter,
        contributor: Contributor,
        edges: Sequence[LineageEdge],
        *,
        is_gone: Callable[[Urn], bool],
    ) -> None:
        """Write the edges that a contributor says, before the datasets that they lead to."""
        tables = writer.tables

        def note(urn: Urn) -> None:
            if urn not in self.lineage_before:
                self.lineage_before[urn] = tables.lineage_of(urn)

        tables.edge_contributions.replace(
            contributor, edges, is_gone=is_gone, note=note, at=self.at
        )

    def put_observations(
        self,
        writer: StateWriter,
        contributor: Contributor,
        observations: Mapping[Urn, Sequence[Observation]],
    ) -> None:
        """Append what a contributor measured; the datasets themselves have been written."""
        for urn, measured in observations.items():
            try:
                writer.tables.observe(urn, contributor, measured, at=self.at)
            except REFUSALS as error:
                if ends_run(error):
                    raise
                self.warnings.append(f"{urn}: what {contributor} measured is left out: {error}")

    def counts(self, found: int) -> DatasetCounts:
        """Return what happened to the datasets, of which so many were found."""
        return DatasetCounts(
            found=found,
            created=self.created,
            updated=self.updated,
            unchanged=found - self.created - self.updated - len(self.failures),
            removed=self.removed,
        )

    def _written(self, step: _Step, writer: StateWriter) -> bool:
        """Carry out a step; where the state cannot hold the dataset, keep the reason."""
        try:
            if not step.said.is_alive:
                writer.retire(step.dataset, left=step.said)
            elif step.is_news or step.is_said_by_others:
                writer.write(step.said, step.dataset)
        except REFUSALS as error:
            if ends_run(error):
                raise
            self.failures.append((step.dataset.urn, error))
            return False
        return True

    def _planned(self, finds: Sequence[Find]) -> Iterator[_Step]:
        streams = [
            *(self._differing(find) for find in finds),
            *(self._taken_out(contributor) for contributor in self.taken_out),
            *(self._ranked(speaker) for speaker in self.speakers.values()),
        ]
        every = heapq.merge(*streams, key=lambda item: item.urn.encode("utf-8"))
        for urn, items in groupby(every, key=lambda item: item.urn):
            try:
                step = self._step(Urn(urn), [*items])
            except (InvalidModelError, DamagedDocumentError) as error:
                self.failures.append((urn, error))
                continue
            if step is not None:
                yield step

    def _differing(self, find: Find) -> Iterator[_Item]:
        """Yield what differs from what the sources of a scan last said, by URN."""
        states: dict[str, str] = {}
        known: dict[str, str] = {}
        for source in find.sources:
            for urn, digest in self._states(self.speakers[source].contributor):
                known[urn], states[urn] = source, digest
        for built in find.scanned.differing(states.items()):
            if isinstance(built, str):
                source = known[built]
                yield _Gone(built, self.speakers[source].contributor, source, find.evidence)
            else:
                speaker = self.speakers[built.source]
                yield _Found(built.urn, speaker.contributor, speaker.rank, built, find.evidence)

    def _taken_out(self, contributor: Contributor) -> Iterator[_Item]:
        for urn, _ in self._states(contributor):
            yield _TakenOut(urn, contributor)

    def _ranked(self, speaker: Speaker) -> Iterator[_Item]:
        if self.state is not None:
            for urn in self.state.contributions.outranked_otherwise(*speaker):
                yield _Ranked(urn, *speaker)

    def _states(self, contributor: Contributor) -> list[tuple[str, str]]:
        return self.state.contributions.found_states(contributor) if self.state else []

    def _step(self, urn: Urn, items: Sequence[_Item]) -> _Step | None:
        """Return what is to be done with a dataset, if anything."""
        present = self.state.dataset(urn) if self.state else None
        first = items[0]
        if isinstance(first, _Found) and len(items) == 1 and self._speaks_alone(first):
            seen = _stored_form(first.built)
            if _measures_as_before(seen, present):
                return self._step_of_one(first, seen, present)
        said = held = self._said_of(urn, items)
        alone: LumosDataset | None = None
        found: dict[Contributor, str] = {}
        for item in sorted(items, key=_order):
            match item:
                case _Found():
                    seen = _stored_form(item.built)
                    known = _as_said(held, item.contributor) or present
                    whole = item.evidence.whole(seen, known, source=item.built.source)
                    if whole is None:
                        continue
                    alone = whole if _measures_all(whole, held.by(item.contributor)) else None
                    found[item.contributor] = item.built.hash if whole is seen else ""
                    said = said.stating(
                        item.contributor,
                        whole.to_json(),
                        at=self.at,
                        hash=found[item.contributor],
                        rank=item.rank,
                    )
                case _Gone():
                    said = _withdrawn(said, item, present)
                case _TakenOut():
                    said = said.forgetting(item.contributor)
                case _Ranked():
                    said = said.ranked(item.contributor, item.rank)
        if said is held:
            return None
        if not said.is_alive:
            return self._removal(said, present, held=held)
        return self._step_to(
            said,
            alone if alone and said.sole else said.dataset(),
            present,
            found=found,
            is_said_by_others=_sole_of(said) is None or _sole_of(said) != _sole_of(held),
        )

    def _speaks_alone(self, item: _Found) -> bool:
        if self.state is None:
            return True
        return self.state.contributions.speaks_alone(item.urn, item.contributor)

    def _step_of_one(
        self, item: _Found, seen: LumosDataset, present: LumosDataset | None
    ) -> _Step | None:
        """Return what is to be done where nobody else ever spoke of a dataset, as mostly."""
        whole = item.evidence.whole(seen, present, source=item.built.source)
        if whole is None:
            return None
        contributor, digest = item.contributor, item.built.hash if whole is seen else ""
        said = DatasetContributions.alone(whole.urn, contributor, at=self.at, hash=digest)
        return self._step_to(said, whole, present, found={contributor: digest})

    def _step_to(
        self,
        said: DatasetContributions,
        dataset: LumosDataset,
        present: LumosDataset | None,
        *,
        found: Mapping[Contributor, str],
        is_said_by_others: bool = False,
    ) -> _Step:
        wanted = _kept_here(present, dataset)
        before = self._as_before(present) if present is not None else None
        is_news = wanted != before
        return _Step(
            said,
            wanted,
            is_news=is_news,
            is_known=present is not None,
            is_said_by_others=is_said_by_others,
            changes=self.judge(before, wanted) if is_news else (),
            found=found,
        )

    def _said_of(self, urn: Urn, items: Sequence[_Item]) -> DatasetContributions:
        if self.state is None:
            return DatasetContributions(urn)
        replaced = {item.contributor for item in items if isinstance(item, _Found | _TakenOut)}
        return self.state.contributions.of(urn, replacing=replaced)

    def _removal(
        self,
        said: DatasetContributions,
        present: LumosDataset | None,
        *,
        held: DatasetContributions,
    ) -> _Step:
        for declarer in said.declared_by:
            self.warnings.append(f"{said.urn}: declared by {declarer}, and no source finds it")
        return _Step(
            said,
            present or held.dataset(),
            is_news=present is not None,
            is_known=True,
            is_said_by_others=True,
            changes=self.judge(present, None) if present is not None else (),
            found={},
        )

    def _count(self, step: _Step) -> None:
        if not step.is_news:
            return
        self.touched.add(step.dataset.urn)
        self.changes.extend(step.changes)
        if not step.said.is_alive:
            self.removed += 1
        elif step.is_known:
            self.updated += 1
        else:
            self.created += 1


class _Found(NamedTuple):
    """A dataset that a source describes anew."""

    urn: str
    contributor: Contributor
    rank: int
    built: BuiltDataset
    evidence: Evidence


class _Gone(NamedTuple):
    """A dataset that a source did not find."""

    urn: str
    contributor: Contributor
    source: str
    evidence: Evidence


class _TakenOut(NamedTuple):
    """A dataset of a source that the settings do not name any more."""

    urn: str
    contributor: Contributor


class _Ranked(NamedTuple):
    """A dataset of a source that has another place in the settings."""

    urn: str
    contributor: Contributor
    rank: int


_Item = _Found | _Gone | _TakenOut | _Ranked
_ORDER = (_Ranked, _TakenOut, _Gone, _Found)


def _stored_form(built: BuiltDataset) -> LumosDataset:
    """Return a dataset without the list of its files, which changes with every file that comes."""
    dataset = LumosDataset.from_json(orjson.loads(built.document))
    if FILE_LIST not in dataset.extensions:
        return dataset
    kept = {name: value for name, value in dataset.extensions.items() if name != FILE_LIST}
    return with_parts(dataset, extensions=kept)


def _order(item: _Item) -> int:
    return _ORDER.index(type(item))


def _withdrawn(
    said: DatasetContributions, item: _Gone, present: LumosDataset | None
) -> DatasetContributions:
    """Return what is said of a dataset without a source that surely has it no more."""
    seen = present or (said.dataset() if said.said else None)
    if seen is None or not item.evidence.is_gone(seen, source=item.source):
        return said
    return said.without(item.contributor)


def _sole_of(said: DatasetContributions) -> Contributor | None:
    return said.sole.contributor if said.sole else None


def _as_said(held: DatasetContributions, contributor: Contributor) -> LumosDataset | None:
    """Return the dataset as one of several contributors describes it; None if there is one."""
    before = held.by(contributor)
    if before is None or not before.facets or held.sole is not None:
        return None
    return LumosDataset.from_json(fold(held.urn, [before]))


def _measures_as_before(found: LumosDataset, present: LumosDataset | None) -> bool:
    """Return whether all is measured anew that the state has of a dataset."""
    if present is None:
        return True
    measured = (part for part in OBSERVED_PARTS if getattr(present, part) is not None)
    return all(getattr(found, part) is not None for part in measured)


def _measures_all(found: LumosDataset, before: Contribution | None) -> bool:
    """Return whether all is measured anew that a contributor measured before."""
    return before is None or all(getattr(found, path) is not None for path in before.measured)


def _kept_here(present: LumosDataset | None, wanted: LumosDataset) -> LumosDataset:
    """Return a dataset with the version and the neighbours that the state knows."""
    if present is None:
        return wanted
    return with_parts(wanted, version=present.version, lineage=present.lineage)
