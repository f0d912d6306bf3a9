"""Who is right: what is sent where people may have changed a dataset in the catalog."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from lumos.core.json_reading import list_or_empty
from lumos.core.models.base import canonical_json
from lumos.feature.sync.editable_parts import (
    EMPTY,
    EditableParts,
    edit_policy_of,
    editable_parts_of,
    is_set,
    members,
    of_field,
    with_editable_parts,
)
from lumos.feature.sync.settings import Truth

if TYPE_CHECKING:
    from lumos.core.models import LumosDataset
    from lumos.core.platform.interface import Entity
    from lumos.feature.sync.settings import TruthSettings


class Merged(NamedTuple):
    """What is to be sent, what is to be remembered of it, and where both sides had changed."""

    dataset: LumosDataset
    kept: dict[str, JsonValue]
    conflicts: tuple[str, ...]


def merged_parts(
    local: LumosDataset,
    remote: LumosDataset,
    *,
    kept: Mapping[str, JsonValue] | None,
    truth: TruthSettings,
    catalog: str,
    hidden: Collection[str] = (),
) -> Merged:
    """Decide what to send of a dataset.

    Args:
        local: what Lumos has.
        remote: what the catalog has.
        kept: what was remembered when it was last sent.
        truth: who is right, part by part.
        catalog: the catalog's name.
        hidden: parts that the catalog does not show; they count as they were last sent.
    """
    ours = editable_parts_of(local.document, catalog=catalog)
    known = {path for path, _ in members(local.schema.fields)} | {None}
    theirs = {
        name: value
        for name, value in editable_parts_of(remote.document, catalog=catalog).items()
        if of_field(name) in known
    }
    chosen: EditableParts = {}
    conflicts: list[str] = []
    base = _Base.of(kept)
    if hidden:
        theirs |= _as_last_sent(ours, base, hidden=hidden)
    for name in [*ours, *(name for name in theirs if name not in ours)]:
        value = ours.get(name)
        policy = edit_policy_of(name, truth)
        if policy is Truth.LUMOS:
            chosen[name] = value
        elif policy is Truth.CATALOG:
            chosen[name] = _filled(value, theirs.get(name), base.sent.get(name))
        else:
            chosen[name] = _newest(name, value, theirs.get(name), base=base, conflicts=conflicts)
    remembered: dict[str, JsonValue] = {"sent": chosen}
    if all(_same(value, ours.get(name)) for name, value in chosen.items()):
        return Merged(local, remembered, tuple(conflicts))
    remembered["local"] = ours
    return Merged(with_editable_parts(local, remote, chosen=chosen), remembered, tuple(conflicts))


def shows(
    remote: LumosDataset, kept: Mapping[str, JsonValue] | None, *, hidden: Collection[str]
) -> LumosDataset:
    """Return what a catalog holds, with the parts that it does not show as they were last sent."""
    base = _Base.of(kept)
    if not hidden or not base.known:
        return remote
    parts = editable_parts_of(remote.document, catalog="")
    return with_editable_parts(
        remote, remote, chosen=parts | _as_last_sent({}, base, hidden=hidden)
    )


def _as_last_sent(ours: EditableParts, base: _Base, *, hidden: Collection[str]) -> EditableParts:
    known = base.sent if base.known else ours
    return {name: value for name, value in known.items() if _is_among(name, hidden)}


def _is_among(name: str, parts: Collection[str]) -> bool:
    return name in parts or name.partition(":")[0] in parts


def remembered_of(document: dict[str, JsonValue], *, catalog: str) -> dict[str, JsonValue]:
    """Return what is to be remembered of a dataset that is sent as it is."""
    return {"sent": editable_parts_of(document, catalog=catalog)}


class MergedEntity(NamedTuple):
    """A user, group, tag, term or domain to be sent, with what decided its parts."""

    entity: Entity
    kept: dict[str, JsonValue]
    conflicts: tuple[str, ...]


def merged_entity(
    local: Entity, remote: Entity | None, *, kept: Mapping[str, JsonValue] | None, policy: Truth
) -> MergedEntity:
    """Decide what to send of an entity, by a three-way merge; people may edit all parts of it."""
    ours = local.to_json()
    if remote is None:
        return MergedEntity(local, {"sent": ours}, ())
    theirs, base = remote.to_json(), _Base.of(kept)
    chosen: EditableParts = {}
    conflicts: list[str] = []
    for name in [*ours, *(name for name in theirs if name not in ours)]:
        mine, other = ours.get(name), theirs.get(name)
        if policy is Truth.LUMOS:
            chosen[name] = mine
        elif policy is Truth.CATALOG:
            chosen[name] = _filled(mine, other, base.sent.get(name))
        elif isinstance(mine, list) or isinstance(other, list):
            chosen[name] = _united(list_or_empty(mine), list_or_empty(other), base=base, name=name)
        else:
            chosen[name] = _newest(name, mine, other, base=base, conflicts=conflicts)
    entity = type(local).from_json(
        {name: each for name, each in chosen.items() if each is not None}
    )
    return MergedEntity(entity, {"sent": entity.to_json(), "local": ours}, tuple(conflicts))


def was_edited(remote: LumosDataset, kept: Mapping[str, JsonValue] | None, *, catalog: str) -> bool:
    """Return whether people changed a dataset in the catalog since it was last sent."""
    sent = _Base.of(kept).sent
    theirs = editable_parts_of(remote.document, catalog=catalog)
    return any(not _same(sent.get(name), theirs.get(name)) for name in {**sent, **theirs})


class _Base(NamedTuple):
    """The last sync: what was sent, and what Lumos had then."""

    known: bool
    sent: Mapping[str, JsonValue]
    local: Mapping[str, JsonValue]

    @classmethod
    def of(cls, kept: Mapping[str, JsonValue] | None) -> _Base:
        sent = (kept or {}).get("sent")
        if not isinstance(sent, dict):
            return cls(False, {}, {})
        local = (kept or {}).get("local")
        return cls(True, sent, local if isinstance(local, dict) else sent)


def _filled(ours: JsonValue, theirs: JsonValue, sent: JsonValue) -> JsonValue:
    """Return what the catalog has; ours where it never had anything."""
    return ours if theirs in EMPTY and sent in EMPTY else theirs


def _newest(
    name: str, ours: JsonValue, theirs: JsonValue, *, base: _Base, conflicts: list[str]
) -> JsonValue:
    if is_set(name):
        return _united(list_or_empty(ours), list_or_empty(theirs), base=base, name=name)
    if not base.known:
        return theirs if theirs not in EMPTY else ours
    sent, before = base.sent.get(name), base.local.get(name)
    if _same(theirs, sent):
        return sent if _same(ours, before) else ours
    if not _same(ours, before) and not _same(ours, theirs):
        conflicts.append(name)
    return theirs


def _united(ours: list[JsonValue], theirs: list[JsonValue], *, base: _Base, name: str) -> JsonValue:
    """Return a set with all that either side added and without what either side removed."""
    mine, other = _by_text(ours), _by_text(theirs)
    if not base.known:
        both = {**mine, **other}
        return [both[text] for text in sorted(both)]
    sent, before = _by_text(base.sent.get(name)), _by_text(base.local.get(name))
    all_known = {**sent, **before, **mine, **other}
    gone = (before.keys() - mine.keys()) | (sent.keys() - other.keys())
    added = (mine.keys() - before.keys()) | (other.keys() - sent.keys())
    stay = ((sent.keys() | added) - gone) | (mine.keys() - before.keys())
    return [all_known[text] for text in sorted(stay)]


def _by_text(items: JsonValue) -> dict[bytes, JsonValue]:
    return {canonical_json(item): item for item in list_or_empty(items)}


def _same(one: JsonValue, other: JsonValue) -> bool:
    return (one in EMPTY and other in EMPTY) or canonical_json(one) == canonical_json(other)
