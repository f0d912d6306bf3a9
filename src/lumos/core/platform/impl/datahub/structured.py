"""Structured properties of DataHub: their values on datasets, and their definitions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from pydantic import JsonValue

Json = dict[str, "JsonValue"]
PREFIX: Final = "urn:li:structuredProperty:"
"""What the names of such properties begin with, in Lumos too."""
MADE_BY_LUMOS: Final = "Made by Lumos, because a dataset has a value of it."
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}\Z")


def wire_structured(properties: Mapping[str, JsonValue]) -> list[JsonValue]:
    """Return the assignments of those properties that are structured ones."""
    assigned: list[JsonValue] = []
    for key, value in properties.items():
        values = value if isinstance(value, list) else [value]
        if key.startswith(PREFIX) and all(_is_primitive(each) for each in values):
            wire: list[JsonValue] = [
                {"string": each} if isinstance(each, str) else {"double": each} for each in values
            ]
            assigned.append({"propertyUrn": key, "values": wire})
    return assigned


def _is_primitive(value: JsonValue) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def read_structured(aspect: JsonValue) -> Json:
    """Return the values that are assigned, by property."""
    assigned = aspect.get("properties") if isinstance(aspect, dict) else None
    read: Json = {}
    for each in cast("list[Json]", assigned or []):
        values = [
            next(iter(value.values())) if isinstance(value, dict) else value
            for value in cast("list[JsonValue]", each.get("values") or [])
        ]
        read[str(each["propertyUrn"])] = values[0] if len(values) == 1 else values
    return read


def property_definition(urn: str, value: JsonValue) -> Json:
    """Return the definition that a property needs before it can have a value like this one."""
    values: list[JsonValue] = value if isinstance(value, list) else [value]
    return {
        "qualifiedName": urn.removeprefix(PREFIX),
        "description": MADE_BY_LUMOS,
        "valueType": f"urn:li:dataType:datahub.{_type_of(values)}",
        "cardinality": "MULTIPLE" if isinstance(value, list) else "SINGLE",
        "immutable": False,
        "entityTypes": ["urn:li:entityType:datahub.dataset"],
    }


def _type_of(values: list[JsonValue]) -> str:
    if values and not any(isinstance(value, str) for value in values):
        return "number"
    texts = [value for value in values if isinstance(value, str)]
    if texts and all(text.startswith("urn:li:") for text in texts):
        return "urn"
    return "date" if texts and all(_DAY.match(text) for text in texts) else "string"
