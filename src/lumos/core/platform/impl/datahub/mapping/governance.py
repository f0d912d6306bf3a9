"""Owners, domains, terms and deprecation of datasets, as DataHub has them and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

from lumos.core.json_reading import as_object, object_at, texts_at
from lumos.core.platform.impl.datahub.mapping.fields import term_names, wire_terms
from lumos.core.platform.impl.datahub.mapping.urns import simple_name, simple_urn

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json

STAMP: Final[Json] = {"time": 0, "actor": "urn:li:corpuser:lumos"}
_OWNER_TYPES: Final = frozenset({"TECHNICAL_OWNER", "BUSINESS_OWNER", "DATA_STEWARD", "NONE"})
_SYSTEM_TYPE: Final = "__system__"


def wire_governance(governance: Mapping[str, JsonValue]) -> Json:
    """Return the aspects of terms, domains and deprecation."""
    aspects: Json = {}
    if terms := texts_at(governance, "glossary_terms"):
        aspects["glossaryTerms"] = wire_terms(terms)
    if domains := texts_at(governance, "domains"):
        aspects["domains"] = {"domains": [simple_urn("domain", name) for name in domains]}
    deprecation = governance.get("deprecation")
    if isinstance(deprecation, dict):
        aspects["deprecation"] = _deprecation(deprecation)
    return aspects


def wire_owner(owner: Mapping[str, JsonValue]) -> Json:
    """Return an owner as DataHub has it."""
    kind, name = ("corpuser", "user") if owner.get("user") else ("corpGroup", "group")
    given = str(owner.get("type") or "TECHNICAL_OWNER")
    known = given in _OWNER_TYPES
    type_name = f"{_SYSTEM_TYPE}{given.lower()}" if known else given
    return {
        "owner": simple_urn(kind, str(owner[name])),
        "type": given if known else "CUSTOM",
        "typeUrn": simple_urn("ownershipType", type_name),
    }


def read_owners(owners: list[Json]) -> list[JsonValue]:
    """Return the owners that DataHub has, each once and in order."""
    read: list[JsonValue] = []
    for owner in owners:
        urn = str(owner["owner"])
        role = "group" if urn.startswith("urn:li:corpGroup:") else "user"
        given = owner.get("typeUrn")
        name = simple_name(str(given)) if given else str(owner.get("type") or "NONE")
        role_type = name.removeprefix(_SYSTEM_TYPE).strip().upper()
        each: Json = {role: simple_name(urn), "type": role_type}
        if each not in read:
            read.append(each)
    read.sort(key=lambda each: _owner_order(as_object(each, "each")))
    return read


def _owner_order(owner: Mapping[str, JsonValue]) -> tuple[str, str, str]:
    role = "user" if "user" in owner else "group"
    return role, str(owner[role]), str(owner["type"])


def _deprecation(given: Mapping[str, JsonValue]) -> Json:
    aspect: Json = {
        "deprecated": True,
        "note": str(given.get("note") or ""),
        "actor": STAMP["actor"],
    }
    if given.get("sunset"):
        day = date.fromisoformat(str(given["sunset"]))
        moment = datetime(day.year, day.month, day.day, tzinfo=UTC)
        aspect["decommissionTime"] = int(moment.timestamp() * 1000)
    return aspect


def read_governance(aspects: Mapping[str, JsonValue]) -> Json:
    """Return the domains, terms and deprecation in aspects."""
    read: Json = {}
    domains = object_at(aspects, "domains").get("domains")
    if isinstance(domains, list) and domains:
        read["domains"] = [*sorted({simple_name(str(urn)) for urn in domains})]
    if terms := term_names(aspects.get("glossaryTerms")):
        read["glossary_terms"] = [*sorted(set(terms))]
    deprecation = aspects.get("deprecation")
    if isinstance(deprecation, dict) and deprecation.get("deprecated"):
        told: Json = {}
        if deprecation.get("note"):
            told["note"] = deprecation["note"]
        if day := _day_of(deprecation.get("decommissionTime")):
            told["sunset"] = day
        read["deprecation"] = told
    return read


def _day_of(milliseconds: JsonValue) -> str | None:
    if not isinstance(milliseconds, int):
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, tz=UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return None
