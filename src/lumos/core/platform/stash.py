"""What a catalog cannot hold travels with it in one value, and comes back on the next read.

The value, the stash, is the difference between what Lumos wrote and what the catalog would give
back of it. A part of it counts only as long as the catalog still has what it had then: what
people changed there since is theirs. Of a list they can only have changed what they saw: the
entries that the catalog did not show stay beside those that people add.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import orjson
from pydantic import JsonValue

from lumos.core.errors import InvalidModelError
from lumos.core.models import LumosDataset, with_parts
from lumos.core.models.base import canonical_json
from lumos.core.models.facets import FACETS, MergeRule

if TYPE_CHECKING:
    from lumos.core.json_reading import Json

STASH_KEY: Final = "lumos"
"""The name under which a catalog keeps the stash."""
UNREAD_STASH: Final = "lumos_stash"
"""The extension that keeps what of a stash cannot be put back into its dataset."""
PLAIN_BYTES: Final = 8_192
_VERSION: Final = 1
_PACKED: Final = "lz1"
_LARGEST: Final = 64 * 1024 * 1024
_MARK: Final = 12
_IDENTITIES: Final = ("name", "fieldPath", "url", "user", "group", "path", "column")
_SETS: Final = frozenset(
    {"members", "teams"}
    | {facet.name for facet in FACETS if facet.merge is MergeRule.SET or facet.path == "assertions"}
)
"""Lists whose entries stand each for itself, so that one more takes nothing from the others."""
_MISSING: Final = object()
_NOT_OURS: Final = "the stash does not have the form that Lumos writes"
_BROKEN: Final = "the stash is cut off or was changed by hand"


class StashedDataset(NamedTuple):
    """A dataset as one catalog can hold it, and what of it goes into the stash."""

    native: LumosDataset
    stash: JsonValue | None

    @classmethod
    def split(cls, dataset: LumosDataset, holds: frozenset[str]) -> StashedDataset:
        """Divide a dataset by the parts that a catalog holds as they are.

        Args:
            dataset: what is to be written.
            holds: the paths of those parts, such as `tags`, `documentation.description` or
                `schema.fields.name`; what a model requires has to be among them. URN, name and
                platform always are.
        """
        document = dataset.to_json()
        paths = frozenset(holds | {"urn", "name", "platform"})
        native = LumosDataset.from_json(_projected(document, "", paths))
        return cls.of(dataset, native=native)

    @classmethod
    def of(cls, dataset: LumosDataset, *, native: LumosDataset) -> StashedDataset:
        """Divide a dataset by what the catalog would give back of it, were it asked."""
        return cls(native, residue(native.to_json(), dataset.to_json()))

    @staticmethod
    def merged(native: LumosDataset, stash: JsonValue | None) -> LumosDataset:
        """Return what was written, with what people changed in the catalog since.

        A stash that cannot be read, or no longer fits, is kept as an extension of the dataset.
        """
        if stash is None:
            return native
        document = native.to_json()
        try:
            return LumosDataset.from_json(restored(document, stash))
        except InvalidModelError:
            return _merged_by_parts(native, stash)


def residue(native: Mapping[str, JsonValue], whole: Mapping[str, JsonValue]) -> JsonValue | None:
    """Return what has to be kept besides one JSON object so that another can be made from it."""
    node = _node(dict(native), dict(whole))
    return None if node is None else {"v": _VERSION, "patch": node}


def restored(native: Mapping[str, JsonValue], stash: JsonValue) -> Json:
    """Return the JSON object that a residue was taken from.

    Raises:
        InvalidModelError: the stash is none, or of a newer Lumos.
    """
    whole = _applied(dict(native), _patch_of(stash))
    if not isinstance(whole, dict):
        raise InvalidModelError(_NOT_OURS)
    return whole


def packed(stash: JsonValue, *, plain_bytes: int = PLAIN_BYTES) -> str:
    """Return a stash as text: JSON, or compressed where that would be long."""
    plain = canonical_json(stash)
    if len(plain) <= plain_bytes:
        return plain.decode()
    body = base64.b64encode(zlib.compress(plain, 9)).decode()
    return f"{_PACKED}:{hashlib.sha256(plain).hexdigest()[:_MARK]}:{body}"


def unpacked(text: str) -> JsonValue:
    """Return the stash of a text.

    Raises:
        InvalidModelError: it is cut off, changed or no stash at all.
    """
    mark, plain = None, text.encode("utf-8", "replace")
    try:
        if text.startswith(f"{_PACKED}:"):
            _, mark, body = text.split(":", 2)
            zipped = base64.b64decode(body, validate=True)
            plain = zlib.decompressobj().decompress(zipped, _LARGEST)
        whole: JsonValue = orjson.loads(plain)
    except (ValueError, binascii.Error, zlib.error):
        raise InvalidModelError(_BROKEN) from None
    if mark is not None and hashlib.sha256(plain).hexdigest()[:_MARK] != mark:
        raise InvalidModelError(_BROKEN)
    return whole


def _merged_by_parts(native: LumosDataset, stash: JsonValue) -> LumosDataset:
    """Put back every part that fits; keep the others where nothing is lost."""
    try:
        parts = _patch_of(stash).get("~")
    except InvalidModelError:
        parts = None
    if not isinstance(parts, dict):
        return _with_unread(native, stash)
    merged = native
    unread: Json = {}
    for name, node in parts.items():
        try:
            merged = LumosDataset.from_json(
                restored(merged.to_json(), {"v": _VERSION, "patch": {"~": {name: node}}})
            )
        except InvalidModelError:
            unread[name] = node
    left: JsonValue = {"v": _VERSION, "patch": {"~": unread}}
    return _with_unread(merged, left) if unread else merged


def _with_unread(dataset: LumosDataset, stash: JsonValue) -> LumosDataset:
    return with_parts(dataset, extensions={**dataset.extensions, UNREAD_STASH: stash})


def _patch_of(stash: JsonValue) -> Json:
    value = unpacked(stash) if isinstance(stash, str) else stash
    patch = value.get("patch") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(patch, dict):
        raise InvalidModelError(_NOT_OURS)
    if value.get("v") != _VERSION:
        raise InvalidModelError("the stash was written by a newer Lumos")
    return patch


def _projected(value: JsonValue, path: str, holds: frozenset[str]) -> JsonValue:
    """Return what is held of a value whose path is not held as a whole."""
    if isinstance(value, list):
        return [_projected(item, path, holds) for item in value]
    if not isinstance(value, dict):
        return value
    kept: Json = {}
    for name, inner in value.items():
        below = f"{path}.{name}" if path else name
        if below in holds:
            kept[name] = inner
        elif any(held.startswith(f"{below}.") for held in holds):
            kept[name] = _projected(inner, below, holds)
    return kept


def _mark(value: object) -> str | None:
    """Return a short name for a value, None for one that is not there."""
    if value is _MISSING:
        return None
    return hashlib.sha256(canonical_json(value)).hexdigest()[:_MARK]


def _same(one: object, other: object) -> bool:
    """Return whether two values are the same JSON, where true is not 1 and 1 is not 1.0."""
    return one == other and (isinstance(one, str) or canonical_json(one) == canonical_json(other))


def _node(base: object, goal: object) -> Json | None:
    """Return what makes one value into another; None where they are the same."""
    if goal is _MISSING:
        return {"-": _mark(base)}
    if base is not _MISSING and _same(base, goal):
        return None
    if isinstance(goal, dict) and goal and (base is _MISSING or isinstance(base, dict)):
        before = base if isinstance(base, dict) else {}
        return {"~": _children(before, goal)}
    if isinstance(base, list) and isinstance(goal, list):
        keyed = _keyed_node(base, goal)
        if keyed is not None:
            return keyed
    return {"=": cast("JsonValue", goal), "was": _mark(base)}


def _children(base: Mapping[str, object], goal: Mapping[str, object]) -> JsonValue:
    names = [*goal, *(name for name in base if name not in goal)]
    found = ((name, _node(base.get(name, _MISSING), goal.get(name, _MISSING))) for name in names)
    return {name: node for name, node in found if node is not None}


def _keyed_node(base: list[JsonValue], goal: list[JsonValue]) -> Json | None:
    before, after = _keyed(base), _keyed(goal)
    if before is None or after is None or not before:
        return None
    changes: Json = {}
    for name in [*after, *(name for name in before if name not in after)]:
        if name not in before:
            changes[name] = {"=": after[name], "was": None}
        elif (inner := _node(before[name], after.get(name, _MISSING))) is not None:
            changes[name] = inner
    node: Json = {"#": dict(sorted(changes.items()))}  # as it comes back from its text
    if list(_listed(before, node)) != list(after):
        node["order"] = list(after)
    return node


def _keyed(items: list[JsonValue]) -> dict[str, JsonValue] | None:
    """Return the items of a list by a key that is unique among them; None without such a key."""
    for with_type in (False, True):
        keyed = {_identity(item, with_type=with_type): item for item in items}
        if None not in keyed and len(keyed) == len(items):
            return {key: item for key, item in keyed.items() if key is not None}
    return None


def _identity(item: JsonValue, *, with_type: bool) -> str | None:
    if isinstance(item, str):
        return item
    if not isinstance(item, dict):
        return None
    for name in _IDENTITIES:
        if isinstance(item.get(name), str):
            kind = f":{item.get('type')}" if with_type else ""
            return f"{name}:{item[name]}{kind}"
    return None


def _applied(base: object, node: Json) -> object:
    if "=" in node:
        return node["="] if _mark(base) == node.get("was") else base
    if "-" in node:
        return _MISSING if _mark(base) == node["-"] else base
    if "#" in node:
        keyed = _keyed(base) if isinstance(base, list) else None
        return base if keyed is None else list(_listed(keyed, node).values())
    changes = node.get("~")
    if not isinstance(changes, dict) or not (base is _MISSING or isinstance(base, dict)):
        return base
    made = dict(base) if isinstance(base, dict) else {}
    for name, inner in changes.items():
        _put(made, name, inner)
    return made if made or base is not _MISSING else _MISSING


def _listed(base: Mapping[str, JsonValue], node: Json) -> dict[str, JsonValue]:
    made: dict[str, JsonValue] = dict(base)
    changes = node["#"]
    for name, inner in changes.items() if isinstance(changes, dict) else ():
        # A change within an item that people removed since has nothing to change.
        if name in base or (isinstance(inner, dict) and "=" in inner):
            _put(made, name, inner)
    order = node.get("order")
    if not isinstance(order, list):
        return made
    ranks = {name: rank for rank, name in enumerate(order)}
    return dict(sorted(made.items(), key=lambda item: ranks.get(item[0], len(ranks))))


def _put(made: dict[str, JsonValue], name: str, node: JsonValue) -> None:
    if not isinstance(node, dict):
        raise InvalidModelError(_NOT_OURS)
    base = made.get(name, _MISSING)
    value = _joined(base, node) if name in _SETS else None
    if value is None:
        value = _applied(base, node)
    if value is _MISSING:
        made.pop(name, None)
    else:
        made[name] = cast("JsonValue", value)


def _joined(base: object, node: Json) -> object:
    """Return a list with entries of which the catalog showed none; None where it is no such."""
    hidden = node.get("=")
    if not isinstance(base, list) or not isinstance(hidden, list) or not base:
        return None
    theirs, ours = _keyed(base), _keyed(hidden)
    if node.get("was") not in _NOTHING or theirs is None or ours is None:
        return None
    return [*{**ours, **theirs}.values()]


_NOTHING: Final = (None, _mark([]))
