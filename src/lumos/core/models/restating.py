"""Finds what a contributor has to say so that a dataset becomes what it is to be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from pydantic import JsonValue

from lumos.core.json_reading import Json, as_object, list_at, object_at
from lumos.core.models.column_words import paths_of
from lumos.core.models.contribution import (
    ABSENT,
    FACETS_OF_DATASETS,
    Contribution,
    Facets,
    Said,
    folded,
    has_members,
    members_of,
    speakers,
    statements_of,
)
from lumos.core.models.contributor import Contributor
from lumos.core.models.facets import COLUMN_FACETS, FIELDS, Facet, FacetClass


def restated(
    contributions: Sequence[Contribution], *, by: Contribution, wanted: Mapping[str, JsonValue]
) -> list[Contribution]:
    """Return contributions of which the fold is a given state, where one contributor wants it so.

    Whatever does not follow from what the others say, it says itself. Where others outrank it,
    what they say of that facet is dropped: a source says it again when it is scanned next.

    Args:
        contributions: what is said so far.
        by: the contributor, with what it says so far.
        wanted: the dataset as it is to be, as `to_json` writes it.
    """
    others = [each for each in contributions if each.contributor != by.contributor]
    before = next((each for each in contributions if each.contributor == by.contributor), by)
    speaking = by._replace(said_at={})
    every = [*others, before]
    said = {each.contributor: _copied(each.facets) for each in every}
    aims = statements_of(wanted)
    measured: list[str] = []
    for slot in _slots(said.values(), aims):
        facet, aim = slot.facet, slot.read(aims)
        goal = folded(facet, [(by, aim)])
        if _same(facet, folded(facet, slot.statements(speakers(facet, every), said)), goal):
            continue
        statements = slot.statements(speakers(facet, [*others, speaking]), said)
        for contributor, value in _restated(facet, statements, by=speaking, goal=goal):
            slot.write(said[contributor], value)
        if facet.kind is FacetClass.OBSERVED:
            measured.append(facet.path)
    changed = [each.saying(said[each.contributor], at=by.at) for each in every]
    changed[-1] = _measured_anew(changed[-1], measured, at=by.at)
    return [each for each in changed if each.facets or each.contributor != by.contributor]


def _measured_anew(
    contribution: Contribution, paths: Sequence[str], *, at: datetime
) -> Contribution:
    """Return a contribution whose measurements are of this time, also where they are as before."""
    for path in paths:
        if path in contribution.facets:
            contribution = contribution.measuring(path, contribution.facets[path], at=at)
    return contribution


class _Slot(NamedTuple):
    """A facet of the dataset, or of one of its columns."""

    facet: Facet
    column: str | None = None

    def read(self, facets: Facets) -> JsonValue:
        value = facets.get(self.facet.path, ABSENT)
        if self.column is None or value is ABSENT:
            return value
        return as_object(value, self.facet.path).get(self.column, ABSENT)

    def statements(
        self, ranked: Iterable[Contribution], said: Mapping[Contributor, Facets]
    ) -> list[Said]:
        return [(each, self.read(said[each.contributor])) for each in ranked]

    def write(self, facets: Facets, value: JsonValue) -> None:
        if self.column is None:
            _put(facets, self.facet.path, value)
            return
        columns = object_at(facets, self.facet.path)
        _put(columns, self.column, value)
        _put(facets, self.facet.path, columns or ABSENT)


def _slots(said: Iterable[Facets], aims: Facets) -> Iterator[_Slot]:
    yield from map(_Slot, FACETS_OF_DATASETS)
    every = [*said, aims]
    known = paths_of(list_at(aims, FIELDS))
    for facet in COLUMN_FACETS.values():
        spoken_of = {path for each in every for path in object_at(each, facet.path)}
        yield from (_Slot(facet, path) for path in known if path in spoken_of)


def _copied(facets: Facets) -> Facets:
    columns = {facet.path for facet in COLUMN_FACETS.values()}
    return {
        path: dict(as_object(value, path)) if path in columns else value
        for path, value in facets.items()
    }


def _put(mapping: Json, key: str, value: JsonValue) -> None:
    if value is ABSENT:
        mapping.pop(key, None)
    else:
        mapping[key] = value


def _restated(
    facet: Facet, statements: Sequence[Said], *, by: Contribution, goal: JsonValue
) -> Iterator[tuple[Contributor, JsonValue]]:
    """Yield the statements to change so that they come to the goal."""
    place = next(at for at, (each, _) in enumerate(statements) if each is by)
    higher, before, lower = statements[:place], statements[place][1], statements[place + 1 :]
    own = _own_statement(facet, goal, others=[*higher, *lower], lower=lower, before=before)
    if not _same(facet, folded(facet, [*higher, (by, own), *lower]), goal):
        yield from ((each.contributor, ABSENT) for each, _ in higher)
        own = _own_statement(facet, goal, others=lower, lower=lower, before=before)
    yield by.contributor, own


def _own_statement(
    facet: Facet,
    goal: JsonValue,
    *,
    others: Sequence[Said],
    lower: Sequence[Said],
    before: JsonValue,
) -> JsonValue:
    """Return what one contributor has to say so that the goal follows."""
    if _same(facet, folded(facet, others), goal):
        return ABSENT
    if not has_members(facet):
        return None if goal is ABSENT else goal
    wanted = _members(facet, goal)
    rest, below = (_members(facet, folded(facet, each)) for each in (others, lower))
    said = _members(facet, before.get("add", ABSENT) if isinstance(before, dict) else ABSENT)
    add = {
        key: value
        for key, value in wanted.items()
        if rest.get(key, ABSENT) != value or said.get(key, ABSENT) == value
    }
    statement: Json = {}
    if add:
        statement["add"] = dict(add) if isinstance(goal, dict) else [*add.values()]
    if gone := [key for key in below if key not in wanted]:
        statement["remove"] = [*gone]
    return statement or ABSENT


def _members(facet: Facet, value: JsonValue) -> dict[str, JsonValue]:
    return {} if value is ABSENT else members_of(facet, value)


def _same(facet: Facet, one: JsonValue, other: JsonValue) -> bool:
    if has_members(facet):
        return _members(facet, one) == _members(facet, other)
    if one is ABSENT or other is ABSENT:
        return one is other
    return one == other
