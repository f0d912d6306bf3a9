"""The content of a snapshot as streams, on its way into parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.models import (
    Domain,
    GlossaryTerm,
    Group,
    Job,
    LineageEdge,
    LumosDataset,
    Snapshot,
    SnapshotStatistics,
    Tag,
    User,
)
from lumos.core.models.base import CanonicalModel, canonical_json, sha256_of
from lumos.core.models.dataset import contract_of
from lumos.core.store.snapshots.manifest import SnapshotHeader, StatisticsCounter
from lumos.core.store.snapshots.part_format import KEY_OF, item_line

if TYPE_CHECKING:
    from pydantic import JsonValue


MAP_SECTIONS: Mapping[str, tuple[str, str]] = {
    "identity_map": ("urn", "ids"),
    "extensions": ("name", "value"),
}
"""Sections that are objects in a document, and what their keys and values are called in lines."""


MODEL_OF: Mapping[str, type[CanonicalModel]] = {
    "datasets": LumosDataset,
    "jobs": Job,
    "lineage_edges": LineageEdge,
    "glossary": GlossaryTerm,
    "tags": Tag,
    "domains": Domain,
    "users": User,
    "groups": Group,
}
"""The model of each section whose items are a list."""


class SectionLine(NamedTuple):
    """A line of a part, and what it is sorted by."""

    section: str
    key: bytes
    line: bytes


@dataclass(frozen=True, kw_only=True)
class SnapshotContent:
    """All that a stored snapshot is made of; what is called is asked for after the last line."""

    header: SnapshotHeader
    lines: Iterable[SectionLine]
    statistics: Callable[[], SnapshotStatistics]
    seen_whole: Callable[[], bool] = lambda: True
    """Whether nothing had to be left out because it could not be read."""

    def final_header(self) -> SnapshotHeader:
        """Return the header as it holds for the lines that came."""
        if self.seen_whole():
            return self.header
        return self.header.model_copy(update={"complete": False})


@dataclass(frozen=True, kw_only=True)
class SnapshotSections:
    """The content of a snapshot as streams; each is read once and never held as a whole."""

    datasets: Iterable[LumosDataset] = ()
    jobs: Iterable[Job] = ()
    lineage_edges: Iterable[LineageEdge] = ()
    glossary: Iterable[GlossaryTerm] = ()
    tags: Iterable[Tag] = ()
    domains: Iterable[Domain] = ()
    users: Iterable[User] = ()
    groups: Iterable[Group] = ()
    identity_map: Iterable[tuple[str, Mapping[str, str]]] = ()
    extensions: Iterable[tuple[str, JsonValue]] = ()

    @classmethod
    def of(cls, snapshot: Snapshot) -> SnapshotSections:
        return cls(
            datasets=snapshot.datasets,
            jobs=snapshot.jobs,
            lineage_edges=snapshot.lineage_edges,
            glossary=snapshot.glossary,
            tags=snapshot.tags,
            domains=snapshot.domains,
            users=snapshot.users,
            groups=snapshot.groups,
            identity_map=snapshot.identity_map.items(),
            extensions=snapshot.extensions.items(),
        )

    def content(self, header: SnapshotHeader) -> SnapshotContent:
        """Return what is stored of the sections; they are read when its lines are."""
        counter = StatisticsCounter()
        return SnapshotContent(header=header, lines=self.lines(counter), statistics=counter.result)

    def lines(self, counter: StatisticsCounter) -> Iterator[SectionLine]:
        """Yield the lines of all sections, counting what they hold: edges before jobs."""
        for dataset in self.datasets:
            counter.add_dataset(dataset)
            yield dataset_section_line(dataset.to_json())
        for urn, ids in self.identity_map:
            yield item_section_line("identity_map", {"urn": urn, "ids": dict(ids)})
        for name, value in self.extensions:
            yield item_section_line("extensions", {"name": name, "value": value})
        streams: dict[str, Iterable[CanonicalModel]] = {
            "lineage_edges": self.lineage_edges,
            "jobs": self.jobs,
            "glossary": self.glossary,
            "tags": self.tags,
            "domains": self.domains,
            "users": self.users,
            "groups": self.groups,
        }
        for section, models in streams.items():
            for model in models:
                tag = model.name if isinstance(model, Tag) else None
                counter.add_item(section, tag=tag)
                yield item_section_line(section, model.to_json())


def header_of(snapshot: Snapshot) -> SnapshotHeader:
    """Return what a snapshot says of itself beside its sections."""
    return SnapshotHeader(
        snapshot_schema_version=snapshot.snapshot_schema_version,
        lumos_version=snapshot.lumos_version,
        export_timestamp=snapshot.export_timestamp,
        source_platform=snapshot.source_platform,
        complete=snapshot.complete,
    )


def dataset_section_line(dataset: dict[str, JsonValue], spelt: bytes | None = None) -> SectionLine:
    """Return the line of a dataset that is given as `to_json` writes it.

    Args:
        dataset: the dataset.
        spelt: its canonical JSON, where that is known.
    """
    urn = canonical_json(dataset["urn"])
    line = b'{"urn":%b,"contract_hash":"%b","dataset":%b}' % (
        urn,
        sha256_of(contract_of(dataset)).encode(),
        canonical_json(dataset) if spelt is None else spelt,
    )
    return SectionLine("datasets", urn[1:-1], line)


def item_section_line(section: str, item: Mapping[str, JsonValue]) -> SectionLine:
    """Return the line of an item of any other section."""
    return SectionLine(section, KEY_OF[section](item).encode(), item_line(item))
