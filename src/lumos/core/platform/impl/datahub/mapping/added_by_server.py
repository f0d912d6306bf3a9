"""What DataHub's server adds to aspects when they are written, and works out again at each write.

It is left out of what is read. Otherwise every dataset with an owner or a domain would look as if
somebody had changed it since it was written. What says more than the server would add is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json

_TYPE: Final = "urn:li:ownershipType:__system__"
_OWNER_TYPES, _ASSOCIATIONS, _ENTITY = "ownerTypes", "domainAssociations", "entityUrn"


def without_added(name: str, aspect: JsonValue) -> JsonValue:
    """Return an aspect without what the server adds to it by itself."""
    if not isinstance(aspect, dict):
        return aspect
    if name == "ownership" and _OWNER_TYPES in aspect:
        added = _same_owners(aspect[_OWNER_TYPES], aspect.get("owners"))
        return _without(aspect, _OWNER_TYPES) if added else aspect
    if name == "domains" and _ASSOCIATIONS in aspect:
        plain: list[JsonValue] = [{"domain": urn} for urn in _list(aspect.get("domains"))]
        found = _list(aspect[_ASSOCIATIONS])
        same = len(found) == len(plain) and all(each in plain for each in found)
        return _without(aspect, _ASSOCIATIONS) if same else aspect
    if name == "assertionInfo" and _ENTITY in aspect:
        rest = _without(aspect, _ENTITY)
        return rest if asserted_entity(rest) == aspect[_ENTITY] else aspect
    return aspect


def in_agreement(name: str, aspect: JsonValue) -> JsonValue:
    """Return an aspect to be written in which both lists of domains name the same ones.

    The server refuses others where the domains changed.
    """
    if name != "domains" or not isinstance(aspect, dict) or _ASSOCIATIONS not in aspect:
        return aspect
    domains = _list(aspect.get("domains"))
    kept = [
        each
        for each in _list(aspect[_ASSOCIATIONS])
        if isinstance(each, dict) and each.get("domain") in domains
    ]
    known = [each["domain"] for each in kept if isinstance(each, dict)]
    new: list[JsonValue] = [{"domain": urn} for urn in domains if urn not in known]
    return {**aspect, _ASSOCIATIONS: [*kept, *new]}


def asserted_entity(info: Mapping[str, JsonValue]) -> str:
    """Return what an assertion is about; an empty text where it does not say."""
    for value in info.values():
        if isinstance(value, dict):
            entity = value.get("entity") or value.get("dataset")
            if isinstance(entity, str):
                return entity
    return str(info.get(_ENTITY) or "")


def _same_owners(types: JsonValue, owners: JsonValue) -> bool:
    """Return whether owners by type are just the owners; a type that is left may have none."""
    by_type: dict[str, set[str]] = {}
    for owner in _list(owners):
        if isinstance(owner, dict):
            kind = owner.get("typeUrn") or f"{_TYPE}{str(owner.get('type') or 'none').lower()}"
            by_type.setdefault(str(kind).replace(".", "%2E"), set()).add(str(owner.get("owner")))
    found = types.items() if isinstance(types, dict) else ()
    return {kind: {str(urn) for urn in _list(each)} for kind, each in found if each} == by_type


def _without(aspect: Json, key: str) -> Json:
    return {name: value for name, value in aspect.items() if name != key}


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
