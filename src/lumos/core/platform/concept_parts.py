"""What a dataset or an edge holds by concept, and in which concepts two states of one differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from pydantic import JsonValue

from lumos.core.models.base import canonical_json
from lumos.core.models.facets import COLUMN_FACETS, DATASET_FACETS, DERIVED, FACETS
from lumos.core.platform.fidelity import INNER_TYPES, NESTED_FIELD

if TYPE_CHECKING:
    from lumos.core.json_reading import Json

Things: TypeAlias = dict[str, JsonValue]
"""Things of one concept, each by what identifies it."""

COUNTED_BY_EACH: Final = "version"
"""What a catalog may count itself: only to have none where there was one is a loss."""
_OF_COLUMNS: Final = frozenset(facet.concept for facet in COLUMN_FACETS.values())
"""Concepts whose members stand in the order of the columns, which is compared for those alone."""
_INSIDE: Final = ("fields", "branches", *INNER_TYPES)
_IDENTITIES: Final = (
    *dict.fromkeys((key,) for facet in FACETS for key in facet.identity),
    ("upstream_column", "downstream_column"),
)
"""What may identify a member of a list, the first that it has."""
_DIVIDED: Final = frozenset(facet.part for facet in DATASET_FACETS if "." in facet.path)
"""Parts of a dataset that hold facets of several concepts."""
_OPEN: Final = frozenset({"property", "field_property", "extension"})
"""Concepts whose things are objects of anybody's making, which may get more in them."""
_THINGS_THEMSELVES: Final = ("dataset", "lineage_edge")
"""What both sides have: none is lacking, and what one does not write out is a value too."""


class Outcome(StrEnum):
    """How what arrived of a concept differs from what was sent."""

    LACKING = "lacking"
    """Something of it is not there."""
    DIFFERING = "differing"
    """All is there, but not the same or not in the same order."""
    MORE = "more"
    """All is there, and more of it."""


def dataset_outcomes(old: Json, new: Json) -> dict[str, Outcome]:
    """Return by concept how a dataset differs from what it was, both as `to_json` writes them.

    Nothing that differs is left out, apart from the lineage, which follows from the edges, and
    from a version where there was none.
    """
    found = _outcomes(_parts(old), _parts(new))
    if not found and _canonical(old) != _canonical(new):
        return {"dataset": Outcome.DIFFERING}
    if found.get(COUNTED_BY_EACH) is Outcome.MORE:
        del found[COUNTED_BY_EACH]
    return found


def edge_outcomes(old: Json, new: Json) -> dict[str, Outcome]:
    """Return by concept how an edge differs from what it was, both as `to_json` writes them."""
    return _outcomes(_edge_parts(old), _edge_parts(new))


def item_outcome(old: JsonValue, new: JsonValue) -> Outcome | None:
    """Return how anything else differs from what it was; None where it is the same."""
    if canonical_json(old) == canonical_json(new):
        return None
    return Outcome.MORE if _holds(new, old) else Outcome.DIFFERING


def _holds(whole: JsonValue, part: JsonValue) -> bool:
    """Return whether something has all that another has."""
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(name in whole and _holds(whole[name], part[name]) for name in part)
    if isinstance(whole, list) and isinstance(part, list):
        known = {canonical_json(member) for member in whole}
        return all(canonical_json(member) in known for member in part)
    return canonical_json(whole) == canonical_json(part)


def _outcomes(old: Mapping[str, Things], new: Mapping[str, Things]) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    for concept in dict.fromkeys((*old, *new)):
        before, after = old.get(concept, {}), new.get(concept, {})
        is_open, of_columns = concept in _OPEN, concept in _OF_COLUMNS
        outcome = _outcome(before, after, is_open=is_open, of_columns=of_columns)
        if outcome is not None:
            found[concept] = Outcome.DIFFERING if concept in _THINGS_THEMSELVES else outcome
    return found


def _outcome(old: Things, new: Things, *, is_open: bool, of_columns: bool) -> Outcome | None:
    if old.keys() - new.keys():
        return Outcome.LACKING
    changed = [name for name in old if canonical_json(old[name]) != canonical_json(new[name])]
    if not all(is_open and _holds(new[name], old[name]) for name in changed):
        return Outcome.DIFFERING
    if not of_columns and [name for name in new if name in old] != [*old]:
        return Outcome.DIFFERING
    return Outcome.MORE if changed or len(new) > len(old) else None


def _canonical(document: Json) -> bytes:
    return canonical_json({name: document[name] for name in document if name != DERIVED})


def _edge_parts(edge: Json) -> dict[str, Things]:
    rest = {name: value for name, value in edge.items() if name != "column_mappings"}
    return {"lineage_edge": _members(rest), "column_lineage": _members(edge.get("column_mappings"))}


def _parts(document: Json) -> dict[str, Things]:
    """Return all that a dataset holds, by concept; what is of no other is of `dataset`."""
    left = {name: value for name, value in document.items() if name not in ("urn", DERIVED)}
    inner = {
        name: dict(value)
        for name, value in left.items()
        if isinstance(value, dict) and name in _DIVIDED
    }
    parts: dict[str, Things] = {}
    for facet in DATASET_FACETS:
        if facet.concept in ("dataset", "field"):
            continue
        inside = inner.get(facet.part, {}) if facet.part in _DIVIDED else left
        value = inside.pop(facet.name, None)
        if facet.has_members:
            parts[facet.concept] = _members(value)
        elif value is not None:
            _things(parts, facet.concept)[facet.name] = value
    _add_fields(parts, inner.get("schema", {}).pop("fields", None), above="")
    rest = {name: value for name, value in left.items() if name not in inner}
    for name, inside in inner.items():
        rest.update({f"{name}.{each}": value for each, value in inside.items()})
    return {**parts, "dataset": _members(rest)}


def _add_fields(parts: dict[str, Things], nodes: JsonValue, *, above: str) -> None:
    """Add columns, or the types inside one, each under its path."""
    for place, node in _members(nodes).items():
        if not isinstance(node, dict):
            continue
        path = f"{above}{place}"
        _things(parts, NESTED_FIELD if above else "field")[path] = {
            name: value
            for name, value in node.items()
            if name not in COLUMN_FACETS and name not in _INSIDE
        }
        for name, facet in COLUMN_FACETS.items():
            if facet.has_members:
                for key, value in _members(node.get(name)).items():
                    _things(parts, facet.concept)[f"{path}\n{key}"] = value
            elif name in node:
                _things(parts, facet.concept)[path] = node[name]
        for name in INNER_TYPES:
            _add_fields(parts, [node[name]] if name in node else None, above=f"{path}\n{name}\n")
        _add_fields(parts, node.get("branches"), above=f"{path}\n|\n")
        _add_fields(parts, node.get("fields"), above=f"{path}\n.\n")


def _things(parts: dict[str, Things], concept: str) -> Things:
    return parts.setdefault(concept, {})


def _members(value: JsonValue) -> Things:
    """Return the members of a list or an object, each by what identifies it."""
    if isinstance(value, dict):
        return dict(sorted(value.items()))
    if not isinstance(value, list):
        return {}
    members: Things = {}
    for key, member in zip(_keys(value), value, strict=True):
        while key in members:
            key += "\n+"  # noqa: PLW2901 - the second of a name
        members[key] = member
    return members


def _keys(members: Iterable[JsonValue]) -> Iterator[str]:
    for number, member in enumerate(members):
        if not isinstance(member, dict):
            yield canonical_json(member).decode()
            continue
        names = next(
            (names for names in _IDENTITIES if all(name in member for name in names)), None
        )
        known = f"#{number}" if names is None else [member[name] for name in names]
        yield canonical_json(known).decode()
