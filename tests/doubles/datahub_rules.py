"""What DataHub's server refuses of aspects, and what it makes of them when they are written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

Json = dict[str, Any]
Held = Mapping[str, Json]
LONGEST_VALUE = 32_766
_STRINGS = {"string", "rich_text", "date", "urn"}


class RefusalError(Exception):
    """A request that the server answers with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def mutated(name: str, value: Json, before: Json | None) -> Json:
    """Return an aspect as it is stored, with what hooks of the server add to it."""
    if name == "ownership" and value.get("owners"):
        return {**value, "ownerTypes": _owner_types(value["owners"])}
    if name == "domains":
        return _domains(value, before)
    if name == "assertionInfo" and "entityUrn" not in value:
        about = [each for each in value.values() if isinstance(each, dict)]
        entity = next((e for a in about if (e := a.get("entity") or a.get("dataset"))), None)
        return {**value, "entityUrn": entity} if entity else value
    return value


def _owner_types(owners: list[Json]) -> Json:
    types: Json = {}
    for owner in owners:
        system = f"urn:li:ownershipType:__system__{owner.get('type', 'none').lower()}"
        known = types.setdefault((owner.get("typeUrn") or system).replace(".", "%2E"), [])
        if owner["owner"] not in known:
            known.append(owner["owner"])
    return types


def _domains(value: Json, before: Json | None) -> Json:
    wanted = value.get("domains") or []
    given = value.get("domainAssociations")
    if given is None:
        kept = [a for a in (before or {}).get("domainAssociations", ()) if a["domain"] in wanted]
        known = {each["domain"] for each in kept}
        given = [*kept, *({"domain": urn} for urn in wanted if urn not in known)]
    elif wanted and {each["domain"] for each in given} != set(wanted) != set(_urns(before)):
        raise RefusalError(400, "Cannot update both 'domains' and 'domainAssociations'")
    ordered = sorted(given, key=_is_propagated)
    return {
        **value,
        "domains": [*dict.fromkeys(each["domain"] for each in ordered)],
        "domainAssociations": ordered,
    }


def _urns(domains: Json | None) -> list[str]:
    return (domains or {}).get("domains") or []


def _is_propagated(association: Json) -> bool:
    detail = (association.get("attribution") or {}).get("sourceDetail") or {}
    return str(detail.get("propagated")).lower() == "true"


def check_definition(held: Held, urn: str, wanted: Json) -> None:
    """Refuse what PropertyDefinitionValidator refuses."""
    if " " in urn:
        raise RefusalError(400, "Urn ID cannot have spaces")
    if " " in wanted["qualifiedName"]:
        raise RefusalError(400, "Qualified names cannot have spaces")
    others = {_field(name) for name in held if name != urn and "propertyDefinition" in held[name]}
    if _field(urn) in others:
        raise RefusalError(400, "Structured property has the search field of another one")
    now = held.get(urn, {}).get("propertyDefinition")
    if held.get(urn, {}).get("status", {}).get("removed"):
        raise RefusalError(400, "Cannot mutate a soft deleted Structured Property Definition")
    if now is None:
        return
    if now["valueType"] != wanted["valueType"]:
        raise RefusalError(400, "Value type cannot be changed")
    if now["qualifiedName"] != wanted["qualifiedName"]:
        raise RefusalError(400, "Cannot change the fully qualified name of a Structured Property")
    if (now.get("cardinality"), wanted.get("cardinality", "SINGLE")) == ("MULTIPLE", "SINGLE"):
        raise RefusalError(400, "Cardinality cannot be changed from MULTI to SINGLE")
    if wanted.get("allowedValues"):
        allowed = [each["value"] for each in wanted["allowedValues"]]
        known = [each["value"] for each in now.get("allowedValues") or ()]
        if not known or any(each not in allowed for each in known):
            raise RefusalError(400, "Cannot restrict values that were previously allowed")


def _field(urn: str) -> str:
    return urn.removeprefix("urn:li:structuredProperty:").replace(".", "_")


def check_properties(held: Held, urn: str, wanted: Json) -> None:
    """Refuse what StructuredPropertiesValidator refuses."""
    new = {each["propertyUrn"]: each for each in wanted["properties"]}
    if len(new) != len(wanted["properties"]):
        raise RefusalError(400, "Property has multiple entries")
    for each in new.values():
        _check_assignment(held, urn, each)
    before = held.get(urn, {}).get("structuredProperties", {}).get("properties", ())
    for old in before:
        name = old["propertyUrn"]
        if held.get(name, {}).get("propertyDefinition", {}).get("immutable"):
            if name not in new:
                raise RefusalError(400, f"Cannot delete an immutable property {name}")
            if new[name]["values"] != old["values"]:
                raise RefusalError(400, f"Cannot mutate an immutable property: {name}")


def _check_assignment(held: Held, urn: str, assigned: Json) -> None:
    of_property, values = held.get(assigned["propertyUrn"], {}), assigned["values"]
    if "propertyDefinition" not in of_property:
        raise RefusalError(400, "Unexpected null value found for Structured Property Definition")
    if of_property.get("status", {}).get("removed"):
        raise RefusalError(400, "Cannot apply a soft deleted Structured Property value")
    definition = of_property["propertyDefinition"]
    if definition.get("cardinality", "SINGLE") == "SINGLE" and len(values) > 1:
        raise RefusalError(400, "Property has cardinality 1, but multiple values were assigned")
    allowed = [each["value"] for each in definition.get("allowedValues") or []]
    for value in values:
        if allowed and value not in allowed:
            raise RefusalError(400, "Property value should be one of those allowed")
        if not _has_type(value, definition):
            raise RefusalError(400, "Property value should be of another type")
        if len(value.get("string", "").encode()) > LONGEST_VALUE:
            raise RefusalError(400, "Property value exceeds the maximum of UTF-8 bytes")
    platforms = definition.get("allowedPlatforms")
    if platforms and urn[len("urn:li:dataset:(") :].split(",", 1)[0] not in platforms:
        raise RefusalError(400, "Property is restricted to specific data platforms")


def _has_type(value: Json, definition: Json) -> bool:
    kind = definition["valueType"].rsplit(".", 1)[-1]
    if kind == "number":
        return "double" in value
    if kind not in _STRINGS:
        return True
    text = value.get("string")
    if kind == "date":
        return text is not None and _is_day(text)
    if kind == "urn":
        types = (definition.get("typeQualifier") or {}).get("allowedTypes") or []
        names = {each.rsplit(".", 1)[-1].lower() for each in types}
        found = re.match(r"urn:li:([^:]+):.", text or "")
        return found is not None and (not names or found[1].lower() in names)
    return text is not None


def _is_day(text: str) -> bool:
    try:
        return datetime.strptime(text, "%Y-%m-%d").strftime("%Y-%m-%d") == text
    except ValueError:
        return False
