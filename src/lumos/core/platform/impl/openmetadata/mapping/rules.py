"""What the default rules of a server let an entity have, and what of an entity is its own.

A server refuses a whole entity that breaks a rule. So what a rule does not allow is left out of
the request, and travels in the stash: what the server shows already goes before what it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from lumos.core.json_reading import Json
from lumos.core.platform.impl.openmetadata.mapping.names import fqn, path_of

if TYPE_CHECKING:
    from pydantic import JsonValue

Labels = list[Json]
_DERIVED: Final = "Derived"
_WITHIN: Final = ("columns", "children", "dataModel")
_OF_DATA: Final = frozenset({"profile", "sampleData", "joins"})
"""What may hold values of the data; Lumos asks for none of it here, and keeps none."""


def own_parts(entity: Json) -> Json:
    """Return an entity without what it inherits, and without labels that follow from its terms."""
    found: Json = {}
    for name, value in entity.items():
        if name in {"owners", "domains", "dataProducts"}:
            found[name] = [each for each in _objects(value) if not each.get("inherited")]
        elif name == "tags" and isinstance(value, list):
            found[name] = [each for each in value if not _is_derived(each)]
        elif name in _WITHIN and isinstance(value, list):
            found[name] = [own_parts(each) if isinstance(each, dict) else each for each in value]
        elif name in _WITHIN and isinstance(value, dict):
            found[name] = own_parts(value)
        elif name not in _OF_DATA:
            found[name] = value
    return found


def allowed_owners(wanted: list[Json], held: JsonValue) -> list[Json]:
    """Return several users or one team: the team that owns it now, or else all users."""
    users = [each for each in wanted if each.get("type") == "user"]
    teams = [each for each in wanted if each.get("type") != "user"]
    if not teams or (not users and len(teams) == 1):
        return wanted
    now = _ids(held)
    if any(each.get("id") in now for each in users):
        return users
    owning = [each for each in teams if each.get("id") in now]
    return owning[:1] or users or teams[:1]


def allowed_domains(wanted: list[Json], held: JsonValue) -> list[Json]:
    """Return one domain: that of now, or else the first."""
    now = _ids(held)
    return ([each for each in wanted if each.get("id") in now] or wanted)[:1]


def allowed_labels(
    wanted: Labels, held: JsonValue, *, excludes: Callable[[str, str], bool]
) -> Labels:
    """Return labels without those that exclude one which is there, or which comes first.

    Args:
        wanted: the labels of one thing.
        held: those that it has now.
        excludes: returns, by source and full name, whether a thing may have one label below that.
    """
    now = {str(each.get("tagFQN")) for each in _objects(held)}
    groups: dict[tuple[str, str], Labels] = {}
    for label in wanted:
        groups.setdefault(_above(label), []).append(label)
    dropped = {
        id(label)
        for above, labels in groups.items()
        if len(labels) > 1 and excludes(*above)
        for label in sorted(labels, key=lambda each: str(each.get("tagFQN")) not in now)[1:]
    }
    return [label for label in wanted if id(label) not in dropped]


def with_labels(
    wire: Json, held: Mapping[str, JsonValue], *, chosen: Callable[[Labels, JsonValue], Labels]
) -> Json:
    """Return an entity, or a column, with those of its labels that are chosen, at every level."""
    found: Json = {}
    for name, value in wire.items():
        if name == "tags":
            found[name] = [*chosen(_objects(value), held.get("tags"))]
        elif name in _WITHIN and isinstance(value, dict):
            inner = held.get(name)
            model = inner if isinstance(inner, dict) else {}
            found[name] = with_labels(value, model, chosen=chosen)
        elif name in _WITHIN:
            known = {str(each.get("name")): each for each in _objects(held.get(name))}
            found[name] = [
                with_labels(each, known.get(str(each.get("name")), {}), chosen=chosen)
                for each in _objects(value)
            ]
        else:
            found[name] = value
    return found


def _above(label: Json) -> tuple[str, str]:
    return str(label.get("source")), fqn(path_of(str(label.get("tagFQN")))[:-1])


def _is_derived(label: JsonValue) -> bool:
    return isinstance(label, dict) and label.get("labelType") == _DERIVED


def _ids(references: JsonValue) -> set[JsonValue]:
    return {each.get("id") for each in _objects(references)}


def _objects(value: JsonValue) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
