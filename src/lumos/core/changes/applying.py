"""The new state of a dataset from its old state and what changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from lumos.core.changes.applying_fields import (
    SchemaEdits,
    with_members,
    with_properties,
    with_values,
)
from lumos.core.errors import InvalidModelError
from lumos.core.json_reading import Json, as_object, list_at
from lumos.core.models import Change, LumosDataset
from lumos.core.models.base import canonical_json

if TYPE_CHECKING:
    from pydantic import JsonValue


_Applier = Callable[[Json, Change], None]


def apply_changes(old: LumosDataset, changes: Iterable[Change]) -> LumosDataset:
    """Return the old state after all changes of one diff: its contract is that of the new state.

    What is only observed, and the source's spelling of types, stays as it was.

    Raises:
        InvalidModelError: the changes are not those of this dataset, or of its coming or going.
    """
    document = old.to_json()
    edits = SchemaEdits()
    for change in changes:
        if edits.takes(change):
            edits.add(change)
            continue
        if change.rule == "schema.positional.gained":
            edits.order(change.payload)
        _applier(change.rule)(document, change)
    schema = _part(document, "schema")
    schema["fields"] = edits.fields_after(old.schema)
    return LumosDataset.from_json(document)


def _applier(rule: str) -> _Applier:
    for name in _prefixes(rule):
        if name in APPLIERS:
            return APPLIERS[name]
    raise InvalidModelError(f"a change by the rule {rule} cannot be applied to a dataset")


def _prefixes(rule: str) -> Iterable[str]:
    """Yield the id of a rule and its beginnings, the longest first."""
    parts = rule.split(".")
    return (".".join(parts[:end]) for end in range(len(parts), 0, -1))


def _part(document: Json, *names: str) -> Json:
    """Return an inner object to write to; where there is none, an empty one is put there."""
    for name in names:
        inner = document.get(name)
        inner = dict(inner) if isinstance(inner, dict) else {}
        document[name] = inner
        document = inner
    return document


def _nothing(document: Json, change: Change) -> None:
    """The change follows from the others."""


def _sets(*names: str) -> _Applier:
    """Return an applier that sets one value to the new one."""

    def apply(document: Json, change: Change) -> None:
        _part(document, *names[:-1])[names[-1]] = change.new

    return apply


def _members(*names: str) -> _Applier:
    """Return an applier that adds to and takes from a list whose order means nothing."""

    def apply(document: Json, change: Change) -> None:
        part = _part(document, *names[:-1])
        part[names[-1]] = with_members(part.get(names[-1]), lost=change.old, won=change.new)

    return apply


def _place(document: Json, change: Change) -> None:
    for name, value in as_object(change.new, change.rule).items():
        part = document if name in ("database", "namespace") else _part(document, "location")
        part[name] = value


def _keys(document: Json, change: Change) -> None:
    _part(document, "schema")["primary_key"] = change.new or []


def _owners(document: Json, change: Change) -> None:
    ownership = _part(document, "ownership")
    lost, won = _owners_of(change.old), _owners_of(change.new)
    kept = [
        owner
        for owner in list_at(ownership, "owners")
        if not any(canonical_json(owner) == canonical_json(gone) for gone in lost)
    ]
    ownership["owners"] = [*kept, *won]


def _owners_of(value: JsonValue) -> list[Json]:
    if not isinstance(value, dict):
        return []
    named = {name: text for name, text in value.items() if name != "types"}
    return [{**named, "type": role} for role in list_at(value, "types")]


def _deprecation_edited(document: Json, change: Change) -> None:
    part = _part(document, "governance")
    part["deprecation"] = with_values(part.get("deprecation"), as_object(change.new, change.rule))


def _properties(document: Json, change: Change) -> None:
    document["properties"] = with_properties(document.get("properties"), change)


def _texts(document: Json, change: Change) -> None:
    """Apply what was written on the dataset, on a link or on a check."""
    payload = change.payload
    match payload:
        case {"part": "business_context"}:
            texts = as_object(change.new, change.rule)
            part = _part(document, "documentation")
            part["business_context"] = texts.get("business_context")
        case {"part": "links", "old": before, "new": after}:
            part = _part(document, "documentation")
            part["links"] = with_members(part.get("links"), lost=before, won=after)
        case {"part": "assertions"}:
            _check(document, change)
        case _ if not isinstance(change.old, dict) and not isinstance(change.new, dict):
            _part(document, "documentation")["description"] = change.new


def _check(document: Json, change: Change) -> None:
    """Replace a check by its new form; only the first of its findings carries both."""
    payload = change.payload
    if isinstance(payload, dict):
        document["assertions"] = with_members(
            document.get("assertions"), lost=payload["old"], won=payload["new"]
        )


APPLIERS: Mapping[str, _Applier] = MappingProxyType(
    {
        "dataset.renamed": _sets("urn"),
        "dataset.name": _sets("name"),
        "dataset.platform": _sets("platform"),
        "dataset.kind": _sets("kind"),
        "dataset.environment": _sets("environment"),
        "dataset.format": _sets("format"),
        "dataset.location": _place,
        "dataset.partition_spec": _sets("location", "partitioning"),
        "dataset.partition_key": _sets("location", "partition_keys"),
        "dataset.sort_or_cluster": _sets("location", "sort_keys"),
        "dataset.stability": _sets("governance", "stability"),
        "dataset.retention": _sets("governance", "retention_days"),
        "access": _sets("governance", "access"),
        "dataset.deprecated": _sets("governance", "deprecation"),
        "dataset.undeprecated": _sets("governance", "deprecation"),
        "dataset.deprecation": _deprecation_edited,
        "dataset.sunset": _sets("governance", "deprecation", "sunset"),
        "check": _members("schema", "checks"),
        "schema.positional": _sets("schema", "positional"),
        "pk": _keys,
        "unique": _members("schema", "unique_keys"),
        "fk": _members("schema", "foreign_keys"),
        "lineage.edge": _members("lineage", "upstream"),
        "owner": _owners,
        "owner.none_left": _nothing,
        "tag": _members("tags"),
        "glossary": _members("governance", "glossary_terms"),
        "domain": _members("governance", "domains"),
        "doc": _texts,
        "doc.link": _members("documentation", "links"),
        "sla": _sets("documentation", "sla"),
        "assertion": _check,
        "assertion.added": _members("assertions"),
        "assertion.removed": _members("assertions"),
        "props": _properties,
    }
)
"""How the changes of a dataset itself are made, by the id of the rule or its beginning."""
