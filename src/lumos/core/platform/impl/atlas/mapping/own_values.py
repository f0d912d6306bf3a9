"""What Atlas has of an entity and Lumos does not model: labels, custom and business attributes.

Atlas refuses a whole request for one label or key that breaks its rules, and drops business
metadata that is not made for a type without a word. So only what it takes is written there; the
rest of the extension `atlas` stays in the stash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import orjson

from lumos.core.json_reading import (
    find_object,
    find_objects,
    find_text,
    find_texts,
    object_or_empty,
    texts_among,
)
from lumos.core.platform.impl.atlas.mapping.typedefs import DATASET

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.models import LumosDataset

OWN: Final = "atlas"
"""The extension that keeps what Atlas has of an entity and Lumos does not model."""
BusinessAttributes = Mapping[str, Mapping[str, "Json"]]
"""The definitions of business attributes, by kind and name."""
_OF_CLASSIFICATIONS = ("attributes", "propagate", "validityPeriods")
_SUPERTYPES: Final = frozenset({DATASET, "DataSet", "Asset", "Referenceable"})
_WORD: Final = re.compile(r"[A-Za-z0-9_-]{1,50}\Z")
"""A label, or the key of a custom attribute."""
_LONGEST_CUSTOM: Final = 500
"""Characters of a custom attribute, where nobody set `atlas.custom.attribute.value.max.length`."""
_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "string": str,
    "boolean": bool,
    **dict.fromkeys(("byte", "short", "int", "long", "date", "biginteger"), int),
    **dict.fromkeys(("float", "double", "bigdecimal"), (int, float)),
}


def attachable(definitions: Iterable[Json]) -> BusinessAttributes:
    """Return the business attributes that datasets of Lumos may have."""
    found = {
        str(each.get("name")): {
            str(attribute.get("name")): attribute
            for attribute in find_objects(each, "attributeDefs")
            if not _SUPERTYPES.isdisjoint(_applicable_types(attribute))
        }
        for each in definitions
    }
    return {name: attributes for name, attributes in found.items() if attributes}


def own_values(entity: Json) -> Json:
    """Return what Atlas has of an entity and Lumos does not model."""
    names = ("labels", "customAttributes", "businessAttributes")
    found: Json = {name: value for name in names if (value := entity.get(name))}
    if labels := find_texts(found, "labels"):
        found["labels"] = [*sorted(labels)]
    if classified := [*_telling_classifications(entity)]:
        found["classifications"] = classified
    return found


def own_given(dataset: LumosDataset, business: BusinessAttributes) -> Json:
    """Return the parts of the extension `atlas` that Atlas has attributes for."""
    own = dataset.extensions.get(OWN)
    given = dataset.document.get("extensions") if isinstance(own, dict) else None
    values = find_object(given, OWN)
    custom = find_object(values, "customAttributes")
    kinds = find_object(values, "businessAttributes")
    attached: Json = {
        name: fitting
        for name, each in kinds.items()
        if (fitting := _fitting(object_or_empty(each), business.get(name, {})))
    }
    return {
        "labels": [
            *sorted({label for label in find_texts(values, "labels") if _WORD.match(label)})
        ],
        "customAttributes": {k: v for k, v in custom.items() if _is_custom_attribute(k, v)},
        "businessAttributes": attached,
    }


def _is_custom_attribute(key: str, value: JsonValue) -> bool:
    fits = isinstance(value, str) and len(value) <= _LONGEST_CUSTOM
    return fits and _WORD.match(key) is not None


def _fitting(values: Json, definitions: Mapping[str, Json]) -> Json:
    """Return the values that a kind of business metadata takes for a dataset of Lumos."""
    return {
        name: value
        for name, value in values.items()
        if name in definitions and _is_fit(value, definitions[name])
    }


def _is_fit(value: JsonValue, definition: Json) -> bool:
    kind = find_text(definition, "typeName") or ""
    if kind.startswith("array<"):
        within: Json = {**definition, "typeName": kind.removeprefix("array<").removesuffix(">")}
        return isinstance(value, list) and all(_is_fit(each, within) for each in value)
    expected = _TYPES.get(kind, str)  # else it is one of the values of an enumeration
    if not isinstance(value, expected) or isinstance(value, bool) is not (expected is bool):
        return False
    longest = find_text(definition, "options", "maxStrLength")
    has_limit = isinstance(value, str) and longest is not None and longest.isdecimal()
    return not has_limit or len(str(value)) <= int(str(longest))


def _applicable_types(attribute: Json) -> frozenset[str]:
    """Return the types of entities that an attribute is made for."""
    given = find_text(attribute, "options", "applicableEntityTypes") or "[]"
    try:
        return frozenset(texts_among(orjson.loads(given)))
    except orjson.JSONDecodeError:
        return frozenset()


def _telling_classifications(entity: Json) -> Iterator[JsonValue]:
    """Yield the classifications that say more than their name, which is a tag."""
    for each in find_objects(entity, "classifications"):
        if each.get("entityGuid") not in (None, entity.get("guid")):
            continue
        kept: Json = {name: value for name in _OF_CLASSIFICATIONS if (value := each.get(name))}
        if kept:
            yield {"typeName": each.get("typeName"), **kept}
