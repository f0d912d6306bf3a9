"""What one document has and another lacks, so that the first can be had back from the second.

A residue remembers what stood in the place of each difference. Where somebody has changed that
place since, the change is kept and the residue of the place is void: an edit is never undone.

A stash (`core/platform/stash.py`) keeps marks of what stood there, and only Lumos reads it. A
residue says in the clear what a DataHub has beyond Lumos, aspect by aspect: as `extensions.datahub`
it is read by people, and by the adapter one aspect at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

import orjson

if TYPE_CHECKING:
    from pydantic import JsonValue

_ADDED: Final = "+"
_REMOVED: Final = "-"
_REPLACED: Final = "="
_MEMBERS: Final = "*"
_IDENTITIES: Final = ("name", "fieldPath", "dataset")
_ABSENT: Final = object()


def residue(found: JsonValue, wanted: JsonValue) -> JsonValue:
    """Return what turns `found` into `wanted`, or None where they are equal."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        return _residue_of_objects(found, wanted) or None
    if _same(found, wanted):
        return None
    if isinstance(found, list) and isinstance(wanted, list):
        identity = _identity_of(found, wanted)
        if identity:
            return _residue_of_members(found, wanted, identity)
    return [_REPLACED, found, wanted]


def restored(found: JsonValue, left: JsonValue) -> JsonValue:
    """Return the document that a residue was taken for, with what was edited since left alone."""
    result = _restored(found, left)
    return None if result is _ABSENT else cast("JsonValue", result)


def _residue_of_objects(
    found: Mapping[str, JsonValue], wanted: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    left: dict[str, JsonValue] = {}
    for key, value in found.items():
        if key not in wanted:
            left[key] = [_REMOVED, value]
        elif (inner := residue(value, wanted[key])) is not None:
            left[key] = inner
    left.update({key: [_ADDED, wanted[key]] for key in wanted if key not in found})
    return left


def _residue_of_members(
    found: Sequence[JsonValue], wanted: Sequence[JsonValue], identity: str
) -> JsonValue:
    before, after = _by(found, identity), _by(wanted, identity)
    left = _residue_of_objects(before, after)
    kept = [key for key in before if key in after]
    order: list[JsonValue] = [*after]
    if order == [*kept, *(key for key in after if key not in before)]:
        return [_MEMBERS, identity, left]
    return [_MEMBERS, identity, left, order]


def _restored(found: object, left: JsonValue) -> object:
    if left is None:
        return found
    if isinstance(left, dict):
        return _restored_object(found, left)
    match left:
        case [str(kind), value] if kind == _ADDED:
            return value if found is _ABSENT else found
        case [str(kind), value] if kind == _REMOVED:
            return _ABSENT if found is _ABSENT or _same(found, value) else found
        case [str(kind), was, value] if kind == _REPLACED:
            return value if found is not _ABSENT and _same(found, was) else found
        case [str(kind), str(identity), dict(inner), *order] if kind == _MEMBERS:
            return _restored_members(found, inner, identity=identity, order=order)
        case _:
            return found


def _restored_object(found: object, left: Mapping[str, JsonValue]) -> object:
    if not isinstance(found, dict):
        return found
    whole: dict[str, object] = dict(found)
    for key, inner in left.items():
        value = _restored(whole.get(key, _ABSENT), inner)
        if value is _ABSENT:
            whole.pop(key, None)
        else:
            whole[key] = value
    return whole


def _restored_members(
    found: object, left: Mapping[str, JsonValue], *, identity: str, order: Sequence[JsonValue]
) -> object:
    if not isinstance(found, list) or not _identified(found, identity):
        return found
    whole = _restored_object(_by(found, identity), left)
    members = cast("dict[str, JsonValue]", whole)
    if order and isinstance(order[0], list):
        places = {str(key): place for place, key in enumerate(order[0])}
        keys = sorted(members, key=lambda key: places.get(key, len(places)))
        return [members[key] for key in keys]
    return [*members.values()]


def _identity_of(found: Sequence[JsonValue], wanted: Sequence[JsonValue]) -> str | None:
    if not found or not wanted:
        return None
    for identity in _IDENTITIES:
        if _identified(found, identity) and _identified(wanted, identity):
            return identity
    return None


def _identified(items: Iterable[JsonValue], identity: str) -> bool:
    seen: set[str] = set()
    for item in items:
        key = item.get(identity) if isinstance(item, dict) else None
        if not isinstance(key, str) or key in seen:
            return False
        seen.add(key)
    return True


def _by(items: Iterable[JsonValue], identity: str) -> dict[str, JsonValue]:
    return {str(cast("dict[str, JsonValue]", item)[identity]): item for item in items}


def _same(left: object, right: object) -> bool:
    """Return whether two documents are equal, where true is not 1 and 1 is not 1.0."""
    if left is right:
        return True
    if left != right:
        return False
    return isinstance(left, str) or _spelt(left) == _spelt(right)


def _spelt(document: object) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
