"""Who is right: what is sent where people may have changed a dataset in the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from lumos.core.models.base import canonical_json
from lumos.core.settings.sync import Truth, TruthSettings

if TYPE_CHECKING:
    from lumos.core.models import Field, LumosDataset

Leaves = dict[str, JsonValue]
_DOCUMENTATION = ("description", "business_context", "sla", "links")
_EMPTY: tuple[JsonValue, ...] = (None, [], "")


class Merged(NamedTuple):
    """What is to be sent, what is to be remembered of it, and where both sides had changed."""

    dataset: LumosDataset
    kept: dict[str, JsonValue]
    conflicts: tuple[str, ...]


def merged(
    local: LumosDataset,
    remote: LumosDataset | None,
    *,
    kept: Mapping[str, JsonValue] | None,
    truth: TruthSettings,
) -> Merged:
    """Decide what to send of a dataset.

    Args:
        local: what Lumos has.
        remote: what the catalog has, if it was asked and has it.
        kept: what was remembered when it was last sent.
        truth: who is right, part by part.
    """
    ours = _leaves(local)
    if remote is None:
        return Merged(local, {"sent": ours}, ())
    theirs = {name: value for name, value in _leaves(remote).items() if name in ours}
    chosen: Leaves = {}
    conflicts: list[str] = []
    base = _Base.of(kept)
    for name, value in ours.items():
        policy = _policy(name, truth)
        if policy is Truth.LUMOS:
            chosen[name] = value
        elif policy is Truth.CATALOG:
            chosen[name] = _filled(value, theirs.get(name), base.sent.get(name))
        else:
            chosen[name] = _newest(name, value, theirs.get(name), base=base, conflicts=conflicts)
    remembered: dict[str, JsonValue] = {"sent": chosen}
    if canonical_json(chosen) != canonical_json(ours):
        remembered["local"] = ours
    return Merged(_with_leaves(local, ours, chosen=chosen), remembered, tuple(conflicts))


def was_edited(remote: LumosDataset, kept: Mapping[str, JsonValue] | None) -> bool:
    """Tell whether people changed a dataset in the catalog since it was last sent."""
    base = _Base.of(kept)
    theirs = _leaves(remote)
    return any(not _same(value, theirs.get(name)) for name, value in base.sent.items())


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


def _policy(name: str, truth: TruthSettings) -> Truth:
    if name == "owners":
        return truth.owners
    return truth.tags if name.startswith("tags") else truth.documentation


def _leaves(dataset: LumosDataset) -> Leaves:
    """Return what people may change, each by a name that begins with the part it belongs to."""
    documentation = dataset.documentation.to_json()
    leaves: Leaves = {f"documentation:{name}": documentation.get(name) for name in _DOCUMENTATION}
    leaves["tags"] = list(dataset.tags)
    leaves["owners"] = dataset.ownership.to_json().get("owners") or []
    for field in dataset.schema.fields:
        leaves[f"field:{field.name}"] = field.description
        leaves[f"tags:{field.name}"] = list(field.tags)
    return leaves


def _with_leaves(local: LumosDataset, ours: Leaves, *, chosen: Leaves) -> LumosDataset:
    differing = {name for name in ours if not _same(ours[name], chosen[name])}
    if not differing:
        return local
    documentation = {name: chosen[f"documentation:{name}"] for name in _DOCUMENTATION}
    parts: dict[str, object] = {
        "documentation": {name: value for name, value in documentation.items() if value},
        "tags": chosen["tags"],
        "ownership": {"owners": chosen["owners"]},
    }
    if any(name.startswith(("field:", "tags:")) for name in differing):
        fields = [_with_own(field, chosen) for field in local.schema.fields]
        parts["schema"] = local.schema.model_copy(update={"fields": fields})
    return local.model_copy(update=parts)


def _with_own(field: Field, chosen: Leaves) -> Field:
    description, tags = chosen[f"field:{field.name}"], chosen[f"tags:{field.name}"]
    if field.description == description and list(field.tags) == tags:
        return field
    return field.model_copy(update={"description": description, "tags": tags})


def _filled(ours: JsonValue, theirs: JsonValue, sent: JsonValue) -> JsonValue:
    """Return what the catalog has; ours where it never had anything."""
    return ours if theirs in _EMPTY and sent in _EMPTY else theirs


def _newest(
    name: str, ours: JsonValue, theirs: JsonValue, *, base: _Base, conflicts: list[str]
) -> JsonValue:
    if isinstance(ours, list) and name != "documentation:links":
        return _united(ours, _as_list(theirs), base=base, name=name)
    if not base.known:
        return theirs if theirs not in _EMPTY else ours
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
    return {canonical_json(item): item for item in _as_list(items)}


def _as_list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _same(one: JsonValue, other: JsonValue) -> bool:
    return (one in _EMPTY and other in _EMPTY) or canonical_json(one) == canonical_json(other)
