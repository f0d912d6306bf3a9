"""Contributions: what each speaker says of a dataset, and the dataset that follows from it.

A contribution states facets. `fold` makes one dataset of all contributions to it, by precedence
alone: the order in which they came does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple, TypeVar, cast

from pydantic import JsonValue

from lumos.core.json_reading import Json, as_list, as_object, as_texts, object_at
from lumos.core.models.base import canonical_json
from lumos.core.models.column_words import paths_of, with_words, without_words
from lumos.core.models.contributor import Contributor, ContributorKind
from lumos.core.models.facets import (
    COLUMN_FACETS,
    DATASET_FACETS,
    FIELDS,
    OBSERVED_PARTS,
    Facet,
    FacetClass,
)

Facets = dict[str, JsonValue]
"""Statements by the path of their facet.

A text or a value stands for itself; None says that there is none. Sets and maps are
`{"add": …, "remove": …}`. A facet of columns has such a statement for each column path.
"""

OWNERS: Final = "ownership.owners"
_SOURCE, _DECLARED, _PEOPLE, _INFERRED, _ASSISTANT = (
    ContributorKind.SOURCE,
    ContributorKind.DECLARED,
    ContributorKind.PEOPLE,
    ContributorKind.INFERRED,
    ContributorKind.ASSISTANT,
)
TECHNICAL: Final = (_SOURCE, _DECLARED, _PEOPLE, _INFERRED, _ASSISTANT)
"""Whose word counts first on what a dataset is."""
HUMAN: Final = (_PEOPLE, _DECLARED, _SOURCE, _INFERRED, _ASSISTANT)
"""Whose word counts first on what people say of a dataset."""
_GUESSES: Final = frozenset({_INFERRED, _ASSISTANT})
FACETS_OF_DATASETS: Final = tuple(facet for facet in DATASET_FACETS if facet.path != "urn")


class Contribution(NamedTuple):
    """What one contributor says of one dataset."""

    contributor: Contributor
    facets: Facets
    at: datetime
    """When it last said anything new."""
    said_at: Mapping[str, datetime] = {}
    """When it said a facet, where that was before `at`."""
    confidence: float = 1.0
    rank: int = 0
    """Its place among the contributors of its kind: the order of `sources` in the settings."""

    def at_of(self, path: str) -> datetime:
        """Return when it said a facet."""
        return self.said_at.get(path, self.at)

    def saying(self, facets: Facets, *, at: datetime) -> Contribution:
        """Return the contribution with other statements; what it says as before keeps its time."""
        if facets == self.facets:
            return self
        same = {path for path, value in facets.items() if self.facets.get(path, ...) == value}
        return self._replace(
            facets=facets, at=at, said_at={path: self.at_of(path) for path in same}
        )

    def measuring(self, path: str, value: JsonValue, *, at: datetime) -> Contribution:
        """Return the contribution with a measurement in place of the one before it."""
        return self._replace(
            facets={**self.facets, path: value}, said_at={**self.said_at, path: at}
        )

    @property
    def measured(self) -> Facets:
        """What it measured, by the path of the facet."""
        return {path: self.facets[path] for path in OBSERVED_PARTS if path in self.facets}

    @property
    def only_measures(self) -> bool:
        """Whether it says nothing but what it measured."""
        return bool(self.facets) and len(self.measured) == len(self.facets)

    @property
    def stated(self) -> Contribution:
        """The contribution without what it measured, which is kept as a series."""
        return self._replace(
            facets=_without_measurements(self.facets), said_at=_without_measurements(self.said_at)
        )


def speakers(facet: Facet, contributions: Iterable[Contribution]) -> list[Contribution]:
    """Return contributions by what they count on a facet, the one that counts first at the front.

    Observations take the latest measurement of any contributor; all else goes by precedence.
    """
    ranked = ordered(contributions, precedence(facet))
    if facet.kind is FacetClass.OBSERVED:
        ranked.sort(key=lambda each: each.at_of(facet.path), reverse=True)
    return ranked


def precedence(facet: Facet) -> tuple[ContributorKind, ...]:
    """Return the kinds of contributors to a facet, the one that counts first at the front."""
    return HUMAN if facet.edited_by_people else TECHNICAL


def statements_of(document: Mapping[str, JsonValue]) -> Facets:
    """Return what a dataset, given as `to_json` writes it, says, facet by facet."""
    facets: Facets = {}
    for facet in FACETS_OF_DATASETS:
        value = _at(document, facet.path)
        if value is ABSENT:
            continue
        facets[facet.path] = {"add": value} if has_members(facet) else value
    fields, words = without_words(as_list(facets.pop(FIELDS, None), FIELDS))
    if fields:
        facets[FIELDS] = fields
    for path, said in words.items():
        for name, value in said.items():
            facet = COLUMN_FACETS[name]
            statement = {"add": value} if has_members(facet) else value
            as_object(facets.setdefault(facet.path, {}), facet.path)[path] = statement
    return facets


def fold(urn: str, contributions: Iterable[Contribution]) -> Json:
    """Return the dataset that follows from what all contributors say, in JSON."""
    every = [*contributions]
    by_kinds: dict[tuple[ContributorKind, ...], list[Contribution]] = {
        kinds: ordered(every, kinds) for kinds in (TECHNICAL, HUMAN)
    }
    document: Json = {"urn": urn}
    for facet in FACETS_OF_DATASETS:
        ranked = by_kinds[precedence(facet)]
        if facet.kind is FacetClass.OBSERVED:
            ranked = speakers(facet, ranked)
        value = folded(facet, [(each, each.facets.get(facet.path, ABSENT)) for each in ranked])
        if value is not ABSENT:
            _put(document, facet.path, value)
    fields = _at(document, FIELDS)
    if isinstance(fields, list):
        words = _folded_words(by_kinds[HUMAN], known=paths_of(fields))
        _put(document, FIELDS, with_words(fields, words))
    return document


def ordered(
    contributions: Iterable[Contribution], kinds: Sequence[ContributorKind]
) -> list[Contribution]:
    """Return contributions by precedence, the one that counts first at the front."""
    return sorted(contributions, key=lambda each: _weight(each, kinds))


T = TypeVar("T")


def _without_measurements(by_path: Mapping[str, T]) -> dict[str, T]:
    return {path: value for path, value in by_path.items() if path not in OBSERVED_PARTS}


class _Absent:
    """Stands for a facet that a contributor does not state."""


ABSENT = cast("JsonValue", _Absent())
"""A facet that one contributor, or none, states."""


def _weight(contribution: Contribution, kinds: Sequence[ContributorKind]) -> tuple[int, int, str]:
    kind, name = contribution.contributor
    return kinds.index(kind), contribution.rank, name


def has_members(facet: Facet) -> bool:
    return facet.has_members and facet.path != FIELDS


Said = tuple[Contribution, JsonValue]
"""A contribution, and what it says of one facet."""


def folded(facet: Facet, said: Sequence[Said]) -> JsonValue:
    """Return the value that statements, the one that counts first at the front, come to."""
    spoken = [(each, value) for each, value in said if value is not ABSENT]
    if not spoken:
        return ABSENT
    if not has_members(facet):
        value = spoken[0][1]
        return ABSENT if value is None else value
    if facet.path == OWNERS:
        spoken = _without_outdone_guesses(spoken)
    members: dict[str, JsonValue] = {}
    is_object = False
    for _, statement in reversed(spoken):
        given = as_object(statement, facet.path)
        if gone := given.get("remove"):
            for key in as_texts(gone, facet.path):
                members.pop(key, None)
        is_object = is_object or isinstance(given.get("add"), dict)
        members.update(members_of(facet, given.get("add")))
    if not members:
        return ABSENT
    return members if is_object else [*members.values()]


def members_of(facet: Facet, value: JsonValue) -> dict[str, JsonValue]:
    """Return the members of a set or map by what identifies each in a statement."""
    if isinstance(value, dict):
        return dict(value)
    members: dict[str, JsonValue] = {}
    for member in as_list(value, facet.path):
        key = _key(facet, member)
        while key in members:  # a list may hold one name twice
            key += "~"
        members[key] = member
    return members


def _key(facet: Facet, member: JsonValue) -> str:
    # A reference, such as an owner in a role, is nothing but its name: it has no other identity.
    if isinstance(member, dict) and facet.refers_to is None:
        name = next((member[key] for key in facet.identity if key in member), None)
        if name is not None:
            return canonical_json(name).decode()
    return canonical_json(member).decode()


def _without_outdone_guesses(spoken: list[Said]) -> list[Said]:
    """Leave out guesses at owners where anybody else names one."""
    stated = [(each, value) for each, value in spoken if each.contributor.kind not in _GUESSES]
    is_named = any(as_object(value, OWNERS).get("add") for _, value in stated)
    return stated if is_named else spoken


def _folded_words(
    speakers: Sequence[Contribution], *, known: Sequence[str]
) -> dict[str, dict[str, JsonValue]]:
    words: dict[str, dict[str, JsonValue]] = {}
    for name, facet in COLUMN_FACETS.items():
        by_speaker = [
            (each, said) for each in speakers if (said := object_at(each.facets, facet.path))
        ]
        spoken_of = {path for _, said in by_speaker for path in said}
        for path in (path for path in known if path in spoken_of):
            value = folded(facet, [(each, said.get(path, ABSENT)) for each, said in by_speaker])
            if value is not ABSENT:
                words.setdefault(path, {})[name] = value
    return words


def _at(document: Mapping[str, JsonValue], path: str) -> JsonValue:
    first, *rest = path.split(".")
    value = document.get(first, ABSENT)
    for name in rest:
        if not isinstance(value, dict) or name not in value:
            return ABSENT
        value = value[name]
    return value


def _put(document: Json, path: str, value: JsonValue) -> None:
    *parents, last = path.split(".")
    for name in parents:
        document = as_object(document.setdefault(name, {}), name)
    document[last] = value
