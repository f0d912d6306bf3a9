"""Structured properties of DataHub: their values on datasets, and their definitions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from lumos.core.json_reading import as_objects, list_at

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json

PREFIX: Final = "urn:li:structuredProperty:"
"""What the names of such properties begin with, in Lumos too."""
KIND: Final = "structuredProperty"
DEFINITION: Final = "propertyDefinition"
MADE_BY_LUMOS: Final = "Made by Lumos, because a dataset has a value of it."


def wire_structured(
    properties: Mapping[str, JsonValue], *, without: Collection[str] = ()
) -> list[JsonValue]:
    """Return the assignments of those properties that are structured ones."""
    assigned: list[JsonValue] = []
    for key, value in properties.items():
        if not key.startswith(PREFIX) or key in without:
            continue
        values = values_of(value)
        if all(_is_primitive(each) for each in values):
            wire: list[JsonValue] = [
                {"string": each} if isinstance(each, str) else {"double": each} for each in values
            ]
            assigned.append({"propertyUrn": key, "values": wire})
    return assigned


def values_of(value: JsonValue) -> list[JsonValue]:
    """Return the values that a property of Lumos stands for."""
    return [*value] if isinstance(value, list | tuple) else [value]


def _is_primitive(value: JsonValue) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def read_structured(aspect: JsonValue) -> Json:
    """Return the values that are assigned, by property."""
    assigned = aspect.get("properties") if isinstance(aspect, dict) else None
    read: Json = {}
    for each in as_objects(assigned, "assigned"):
        values = [
            next(iter(value.values())) if isinstance(value, dict) else value
            for value in list_at(each, "values")
        ]
        read[str(each["propertyUrn"])] = values[0] if len(values) == 1 else values
    return read


def property_definition(urn: str, value: JsonValue) -> Json:
    """Return the definition that a property needs before it can have a value like this one."""
    return {
        "qualifiedName": urn.removeprefix(PREFIX),
        "description": MADE_BY_LUMOS,
        "valueType": f"urn:li:dataType:datahub.{_type_of(values_of(value))}",
        "cardinality": "MULTIPLE" if isinstance(value, list | tuple) else "SINGLE",
        "immutable": False,
        "entityTypes": ["urn:li:entityType:datahub.dataset"],
    }


def _type_of(values: list[JsonValue]) -> str:
    """Return the type that takes most: after what looks like a day may come what does not."""
    texts = not values or any(isinstance(value, str) for value in values)
    return "string" if texts else "number"
