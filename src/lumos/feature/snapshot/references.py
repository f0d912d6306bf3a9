"""What the items of a snapshot refer to, and whether it is there."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING

from lumos.core.models import Group, Job, LineageEdge, LumosDataset, User

if TYPE_CHECKING:
    from lumos.core.models.base import CanonicalModel

_URN_SCHEME = "lumos://"


class ReferenceKind(Enum):
    """Who refers; the value is how a report says that one, or many, of the others are missing."""

    LINEAGE = (
        "end of lineage edges is outside the snapshot",
        "ends of lineage edges are outside the snapshot",
    )
    LISTED_LINEAGE = (
        "neighbour that a dataset lists has no lineage edge and is not taken over",
        "neighbours that datasets list have no lineage edge and are not taken over",
    )
    JOBS = (
        "input or output of jobs is outside the snapshot",
        "inputs and outputs of jobs are outside the snapshot",
    )
    EDGE_JOBS = (
        "job of lineage edges is not among the jobs",
        "jobs of lineage edges are not among the jobs",
    )
    OWNERS = (
        "owner is not among the users and groups",
        "owners are not among the users and groups",
    )
    FOREIGN_KEYS = (
        "dataset that foreign keys refer to is outside the snapshot",
        "datasets that foreign keys refer to are outside the snapshot",
    )


class References:
    """Collects names and references in any order, then tells which lead nowhere."""

    def __init__(self) -> None:
        self._datasets: set[str] = set()
        self._dataset_names: set[str] = set()
        self._jobs: set[str] = set()
        self._people: dict[str, set[str]] = {"user": set(), "group": set()}
        self._wanted: dict[ReferenceKind, set[str]] = {kind: set() for kind in ReferenceKind}
        self._owners: set[tuple[str, str]] = set()
        self._listed: set[tuple[str, str]] = set()
        self._edges: set[tuple[str, str]] = set()

    @property
    def count(self) -> int:
        """How many different things are referred to."""
        return sum(len(names) for names in self._wanted.values()) + len(self._owners)

    def add(self, model: CanonicalModel) -> None:
        match model:
            case LumosDataset():
                self._add_dataset(model)
            case LineageEdge():
                self._want(ReferenceKind.LINEAGE, (model.upstream_urn, model.downstream_urn))
                self._edges.add((model.upstream_urn, model.downstream_urn))
                if model.job_urn is not None:
                    self._want(ReferenceKind.EDGE_JOBS, (model.job_urn,))
            case Job():
                self._jobs.add(model.urn)
                self._want(ReferenceKind.JOBS, (*model.inputs, *model.outputs))
            case User():
                self._people["user"].add(model.username)
            case Group():
                self._people["group"].add(model.name)
            case _:
                pass

    def unresolved(self) -> dict[ReferenceKind, tuple[str, ...]]:
        """Return what each kind of reference does not find; kinds that find all are left out.

        People and jobs are looked for only where the snapshot lists any.
        """
        missing = {
            ReferenceKind.LINEAGE: self._wanted[ReferenceKind.LINEAGE]
            - self._datasets
            - self._jobs,
            ReferenceKind.LISTED_LINEAGE: {
                f"{upstream} -> {downstream}" for upstream, downstream in self._listed - self._edges
            },
            ReferenceKind.JOBS: self._wanted[ReferenceKind.JOBS] - self._datasets,
            ReferenceKind.EDGE_JOBS: (
                self._wanted[ReferenceKind.EDGE_JOBS] - self._jobs if self._jobs else set()
            ),
            ReferenceKind.OWNERS: {
                f"{category} {name}"
                for category, name in self._owners
                if self._people[category] and name not in self._people[category]
            },
            ReferenceKind.FOREIGN_KEYS: {
                name
                for name in self._wanted[ReferenceKind.FOREIGN_KEYS]
                if not self._has_dataset(name)
            },
        }
        return {kind: tuple(sorted(names)) for kind, names in missing.items() if names}

    def _add_dataset(self, dataset: LumosDataset) -> None:
        self._datasets.add(dataset.urn)
        self._dataset_names.update((dataset.name, dataset.urn.name))
        self._want(
            ReferenceKind.FOREIGN_KEYS,
            (key.references for key in dataset.schema.foreign_keys),
        )
        self._listed.update((source, dataset.urn) for source in dataset.lineage.upstream)
        self._listed.update((dataset.urn, target) for target in dataset.lineage.downstream)
        self._owners.update((owner.category, owner.name) for owner in dataset.ownership.owners)

    def _has_dataset(self, reference: str) -> bool:
        """Find a dataset by URN, or by a name that may be qualified, as `public.customers`."""
        if reference.startswith(_URN_SCHEME):
            return reference in self._datasets
        return (
            reference in self._dataset_names or reference.rpartition(".")[2] in self._dataset_names
        )

    def _want(self, kind: ReferenceKind, names: Iterable[str]) -> None:
        self._wanted[kind].update(names)
