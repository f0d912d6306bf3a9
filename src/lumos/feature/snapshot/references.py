"""What the items of a snapshot refer to, and whether it is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.models import Group, Job, LineageEdge, LumosDataset
from lumos.core.store.snapshots.part_format import KEY_OF

if TYPE_CHECKING:
    from lumos.core.models.base import CanonicalModel

_URN_SCHEME = "lumos://"
_NAMES = "names"
_ENDS = "ends"
_PEOPLE = {"user": "users", "group": "groups"}


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
    MEMBERS = (
        "member or administrator of groups is not among the users",
        "members and administrators of groups are not among the users",
    )
    FOREIGN_KEYS = (
        "dataset that foreign keys refer to is outside the snapshot",
        "datasets that foreign keys refer to are outside the snapshot",
    )


class Fact(NamedTuple):
    """A name that is there, or one that is referred to and may be found under any of its places.

    A name that is there has a place only; one that is referred to says of which kind it is.
    """

    space: str
    key: str
    kind: str = ""
    name: str = ""


class FactIndex:
    """The facts of all items of a snapshot."""

    def __init__(self) -> None:
        self._there: dict[str, set[str]] = {}
        self._repeated: set[tuple[str, str]] = set()
        self._wanted: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {}

    def add(self, fact: Fact) -> None:
        place = (fact.space, fact.key)
        if fact.kind:
            wanted = (fact.kind, fact.name)
            places = self._wanted.get(wanted, ())
            if place not in places:
                self._wanted[wanted] = (*places, place)
            return
        there = self._there.setdefault(fact.space, set())
        if fact.key in there:
            self._repeated.add(place)
        there.add(fact.key)

    def repeated(self, spaces: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield the places, as space and key, that more than one item has, in no order."""
        return (place for place in self._repeated if place[0] in spaces)

    def missing(self) -> Iterator[tuple[str, str]]:
        """Yield what is referred to, as kind and name, and found nowhere, in no order."""
        nothing: set[str] = set()
        for wanted, places in self._wanted.items():
            if not any(key in self._there.get(space, nothing) for space, key in places):
                yield wanted

    def wanted(self) -> Counter[str]:
        """Return how many different names of each kind are referred to."""
        return Counter(kind for kind, _ in self._wanted)


def facts_of(section: str, model: CanonicalModel) -> Iterator[Fact]:
    """Yield under which names an item can be found, and which it refers to itself."""
    yield Fact(section, _key(section, model))
    match model:
        case LumosDataset():
            yield from _facts_of_dataset(model)
        case LineageEdge():
            ends = (model.upstream_urn, model.downstream_urn)
            yield Fact(_ENDS, "\n".join(ends))
            for urn in ends:
                yield from _wanted(ReferenceKind.LINEAGE, urn, spaces=("datasets", "jobs"))
            if model.job_urn is not None:
                yield from _wanted(ReferenceKind.EDGE_JOBS, model.job_urn, spaces=("jobs",))
        case Job():
            for urn in (*model.inputs, *model.outputs):
                yield from _wanted(ReferenceKind.JOBS, urn, spaces=("datasets",))
        case Group():
            for member in (*model.members, *model.admins):
                yield from _wanted(ReferenceKind.MEMBERS, member, spaces=("users", "groups"))
        case _:
            pass


def unresolved(
    facts: FactIndex, present: Mapping[str, int]
) -> dict[ReferenceKind, tuple[str, ...]]:
    """Return what each kind of reference does not find; kinds that find all are left out.

    Jobs are looked for only where the snapshot lists any, owners where it lists users or groups.

    Args:
        facts: those of all items.
        present: how many items each section has.
    """
    missing: dict[ReferenceKind, set[str]] = {}
    lists_people = bool(present.get("users") or present.get("groups"))
    for kind_name, name in facts.missing():
        kind = ReferenceKind[kind_name]
        if kind is ReferenceKind.EDGE_JOBS and not present.get("jobs"):
            continue
        if kind is ReferenceKind.OWNERS:
            if not lists_people:
                continue
            missing.setdefault(kind, set()).add(name.replace("\n", " ", 1))
            continue
        shown = name.replace("\n", " -> ") if kind is ReferenceKind.LISTED_LINEAGE else name
        missing.setdefault(kind, set()).add(shown)
    return {kind: tuple(sorted(missing[kind])) for kind in ReferenceKind if kind in missing}


def reference_count(facts: FactIndex) -> int:
    """Return how many different things are referred to."""
    counts = facts.wanted()
    return sum(counts.values()) - counts[ReferenceKind.LISTED_LINEAGE.name]


def _key(section: str, model: CanonicalModel) -> str:
    if isinstance(model, LumosDataset | Job):
        return model.urn
    return KEY_OF[section](model.to_json())


def _facts_of_dataset(dataset: LumosDataset) -> Iterator[Fact]:
    for name in {dataset.name, dataset.urn.name}:
        yield Fact(_NAMES, name)
    for key in dataset.schema.foreign_keys:
        yield from _wanted_dataset(key.references)
    listed = [(source, dataset.urn) for source in dataset.lineage.upstream]
    listed += [(dataset.urn, target) for target in dataset.lineage.downstream]
    for ends in listed:
        yield from _wanted(ReferenceKind.LISTED_LINEAGE, "\n".join(ends), spaces=(_ENDS,))
    for owner in dataset.ownership.owners:
        name = f"{owner.category}\n{owner.name}"
        yield Fact(_PEOPLE[owner.category], owner.name, ReferenceKind.OWNERS.name, name)


def _wanted_dataset(reference: str) -> Iterator[Fact]:
    """Ask for a dataset by URN, or by a name that may be qualified, as `public.customers`."""
    kind = ReferenceKind.FOREIGN_KEYS
    if reference.startswith(_URN_SCHEME):
        yield from _wanted(kind, reference, spaces=("datasets",))
        return
    for name in {reference, reference.rpartition(".")[2]}:
        yield Fact(_NAMES, name, kind.name, reference)


def _wanted(kind: ReferenceKind, name: str, *, spaces: tuple[str, ...]) -> Iterator[Fact]:
    for space in spaces:
        yield Fact(space, name, kind.name, name)
