"""The JSON Patch that brings an entity to what is wanted.

A `PUT` never removes owners and keeps descriptions, so that only a patch says what is meant.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from itertools import count, takewhile
from typing import TYPE_CHECKING, Final

from lumos.core.platform.impl.openmetadata.mapping.columns import COLUMN_KEYS
from lumos.core.platform.stash import STASH_KEY

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json

_STASH: Final = re.compile(rf"{STASH_KEY}(_[0-9]+)?\Z")
_LONGEST: Final = 30_000
"""Of a text of more than 32,766 bytes an index makes no keyword; long stashes are ASCII."""
_COLUMN_KEYS: Final = frozenset(COLUMN_KEYS)
_WITH_MORE: Final = frozenset({"tags", "children"})
"""Of these the server returns more than was written."""
_OF_COLUMNS: Final = {*COLUMN_KEYS, "profile"}
"""What of a column is written as it is wanted; anything else of it stays."""


def changes(
    entity: Mapping[str, JsonValue], wanted: Mapping[str, JsonValue], *, removable: Collection[str]
) -> list[JsonValue]:
    """Return the operations for all that is wanted; of the rest only the removable goes."""
    found: list[JsonValue] = []
    for name in sorted({*wanted, *removable}):
        before, after = _plain(name, entity.get(name)), _plain(name, wanted.get(name))
        if before == after:
            continue
        if wanted.get(name) or name == "columns":
            value = _carried(name, entity.get(name), wanted.get(name)) or []
            # It replaces what is there, too, which may be no more than what it inherits.
            found.append({"op": "add", "path": f"/{name}", "value": value})
        elif entity.get(name):
            found.append({"op": "remove", "path": f"/{name}"})
    return found


def _carried(name: str, held: JsonValue, wanted: JsonValue) -> JsonValue:
    """Return what is wanted, with what the server or people say beyond it of the same things."""
    if name == "tags":
        known = {(each.get("tagFQN"), each.get("source")): each for each in _objects(held)}
        return [
            known.get((each.get("tagFQN"), each.get("source")), each) for each in _objects(wanted)
        ]
    if name in {"columns", "children"} and isinstance(wanted, list):
        by_name = {each.get("name"): each for each in _objects(held)}
        return [_carried_column(by_name.get(each.get("name")), each) for each in _objects(wanted)]
    if name == "dataModel" and isinstance(held, dict) and isinstance(wanted, dict):
        columns = _carried("columns", held.get("columns"), wanted.get("columns"))
        return {**held, **wanted, "columns": columns}
    return wanted


def _carried_column(held: Json | None, wanted: Json) -> Json:
    if held is None:
        return wanted
    kept = {name: value for name, value in held.items() if name not in _OF_COLUMNS}
    carried = {name: _carried(name, held.get(name), value) for name, value in wanted.items()}
    return {**kept, **carried}


def is_stash(name: str) -> bool:
    """Return whether a custom property is the stash, or one of the parts of a long one."""
    return bool(_STASH.match(name))


def stash_parts(text: str | None) -> dict[str, JsonValue]:
    """Return a stash as custom properties, none so long that an index would refuse the entity."""
    given = text or ""
    chunks = [given[start : start + _LONGEST] for start in range(0, len(given), _LONGEST)]
    return {_part(number): chunk for number, chunk in enumerate(chunks, 1)}


def joined_stash(extension: Mapping[str, JsonValue]) -> str | None:
    """Return the stash that custom properties hold."""
    parts = (extension.get(_part(number)) for number in count(1))
    found = [*takewhile(lambda part: isinstance(part, str), parts)]
    return "".join(map(str, found)) or None


def stash_changes(entity: Mapping[str, JsonValue], text: str | None) -> list[JsonValue]:
    """Return the operations that make a text the stash of an entity, or take its stash away."""
    return extension_changes(entity, with_stash(entity, text))


def with_stash(entity: Mapping[str, JsonValue], text: str | None) -> dict[str, JsonValue]:
    """Return the custom properties of a stash, with None for those that an entity has too many."""
    held = entity.get("extension")
    known = [name for name in held if is_stash(name)] if isinstance(held, dict) else []
    return {**dict.fromkeys(known), **stash_parts(text)}


def extension_changes(
    entity: Mapping[str, JsonValue], wanted: Mapping[str, JsonValue]
) -> list[JsonValue]:
    """Return the operations that give custom properties their values; None takes one away."""
    held = entity.get("extension")
    known = held if isinstance(held, dict) else {}
    if not known:
        given: Json = {name: value for name, value in wanted.items() if value is not None}
        return [{"op": "add", "path": "/extension", "value": given}] if given else []
    found: list[JsonValue] = []
    for name, value in wanted.items():
        path = f"/extension/{name.replace('~', '~0').replace('/', '~1')}"
        if value is None and name in known:
            found.append({"op": "remove", "path": path})
        elif value is not None and known.get(name) != value:
            verb = "replace" if name in known else "add"
            found.append({"op": verb, "path": path, "value": value})
    return found


def _part(number: int) -> str:
    return STASH_KEY if number == 1 else f"{STASH_KEY}_{number}"


def _plain(name: str, value: JsonValue) -> object:
    """Return a value without what the server adds to it, sorted."""
    if not value:
        return None
    if name in {"owners", "domains"}:
        return sorted(str(each["id"]) for each in _objects(value))
    if name == "tags":
        return sorted((str(each["tagFQN"]), str(each["source"])) for each in _objects(value))
    if name in {"columns", "children"}:
        return [_plain_column(each) for each in _objects(value)]
    if name == "dataModel" and isinstance(value, dict):
        return {
            "isPartitioned": bool(value.get("isPartitioned")),
            "columns": _plain("columns", value.get("columns")),
        }
    if name == "tableConstraints":
        parts = ("constraintType", "columns", "referredColumns")
        found = [tuple(each.get(part) or None for part in parts) for each in _objects(value)]
        return sorted(found, key=repr)
    if name == "tasks":
        return [(each.get("name"), each.get("displayName")) for each in _objects(value)]
    return value


def _plain_column(column: Json) -> dict[str, object]:
    return {
        name: _plain(name, value) if name in _WITH_MORE else value
        for name, value in column.items()
        if value and name in _COLUMN_KEYS
    }


def _objects(value: JsonValue) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
