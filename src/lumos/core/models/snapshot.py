"""The snapshot: all metadata at one time, portable between catalogs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Self, TypeGuard

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from lumos.core.models.base import CanonicalModel, Count, Properties, UtcDatetime
from lumos.core.models.dataset import LumosDataset, with_parts
from lumos.core.models.governance import Domain, GlossaryTerm, Tag
from lumos.core.models.lineage import DatasetLineage, Job, LineageEdge
from lumos.core.models.ownership import Group, User
from lumos.core.models.urn import Urn

SNAPSHOT_SCHEMA_VERSION = 1


class SnapshotStatistics(CanonicalModel):
    """How much a snapshot holds."""

    datasets: Count = 0
    fields: Count = 0
    jobs: Count = 0
    lineage_edges: Count = 0
    owners: Count = 0
    tags: Count = 0
    glossary: Count = 0
    domains: Count = 0
    users: Count = 0
    groups: Count = 0


class Snapshot(CanonicalModel):
    """All metadata of one place at one time."""

    snapshot_schema_version: int = Field(ge=1, le=SNAPSHOT_SCHEMA_VERSION)
    lumos_version: str
    export_timestamp: UtcDatetime
    source_platform: str
    complete: bool = Field(
        default="true",  # validated to True, so that it is always written out
        validate_default=True,
        json_schema_extra={"default": True},
        description="False when part of the source could not be seen: what is missing may exist.",
    )
    statistics: SnapshotStatistics = SnapshotStatistics()
    datasets: tuple[LumosDataset, ...] = ()
    jobs: tuple[Job, ...] = ()
    lineage_edges: tuple[LineageEdge, ...] = ()
    glossary: tuple[GlossaryTerm, ...] = ()
    tags: tuple[Tag, ...] = ()
    domains: tuple[Domain, ...] = ()
    users: tuple[User, ...] = ()
    groups: tuple[Group, ...] = ()
    identity_map: dict[Urn, dict[str, str]] = Field(default_factory=dict)
    extensions: Properties = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _in_stable_order(cls, document: object) -> object:
        if not isinstance(document, Mapping):
            return document
        return {
            name: sorted(value, key=_sort_key) if name in _SECTIONS and _is_list(value) else value
            for name, value in document.items()
        }

    @model_validator(mode="after")
    def _urns_are_unique(self) -> Self:
        for earlier, later in pairwise(self.datasets):
            if earlier.urn == later.urn:
                raise PydanticCustomError(
                    "duplicate_urn", "two datasets have the URN {urn}", {"urn": str(later.urn)}
                )
        return self

    def with_derived_parts(self) -> Self:
        """Return the snapshot with statistics counted and datasets' lineage taken from edges."""
        datasets = with_lineage_from(self.lineage_edges, self.datasets)
        derived = self.model_copy(update={"datasets": tuple(datasets)})
        return derived.model_copy(update={"statistics": derived.counted()})

    def counted(self) -> SnapshotStatistics:
        """Count what the snapshot holds, whatever its `statistics` say."""
        owners = {
            (owner.category, owner.name)
            for dataset in self.datasets
            for owner in dataset.ownership.owners
        }
        used_tags = {tag for dataset in self.datasets for tag in dataset.tags}
        return SnapshotStatistics(
            datasets=len(self.datasets),
            fields=sum(len(dataset.schema.fields) for dataset in self.datasets),
            jobs=len(self.jobs),
            lineage_edges=len(self.lineage_edges),
            owners=len(owners),
            tags=len(used_tags | {tag.name for tag in self.tags}),
            glossary=len(self.glossary),
            domains=len(self.domains),
            users=len(self.users),
            groups=len(self.groups),
        )


def with_lineage_from(
    edges: Iterable[LineageEdge], datasets: Iterable[LumosDataset]
) -> Iterator[LumosDataset]:
    """Yield the datasets with their neighbours as the edges, which are the truth, have them."""
    upstream: defaultdict[str, list[Urn]] = defaultdict(list)
    downstream: defaultdict[str, list[Urn]] = defaultdict(list)
    for edge in edges:
        upstream[edge.downstream_urn].append(edge.upstream_urn)
        downstream[edge.upstream_urn].append(edge.downstream_urn)
    for dataset in datasets:
        lineage = DatasetLineage(
            upstream=tuple(upstream.get(dataset.urn, ())),
            downstream=tuple(downstream.get(dataset.urn, ())),
        )
        yield dataset if lineage == dataset.lineage else with_parts(dataset, lineage=lineage)


_SECTIONS = frozenset(
    {"datasets", "jobs", "lineage_edges", "glossary", "tags", "domains", "users", "groups"}
)
_IDENTITY = ("urn", "upstream_urn", "downstream_urn", "job_urn", "username", "name")


def _is_list(value: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    return isinstance(value, list | tuple)


def _sort_key(item: object) -> tuple[str, ...]:
    """Order by what identifies an item, whether it is a model or still a mapping."""
    get = item.get if isinstance(item, Mapping) else lambda name, _=None: getattr(item, name, None)
    return tuple(str(get(name) or "") for name in _IDENTITY)
