"""What others defined in OpenMetadata and Lumos does not model: glossaries, tests and the like.

It is the extension `openmetadata` of a snapshot. On another server what is missing is made first,
as terms, tags and test cases refer to it; what is there stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.platform.impl.openmetadata.mapping.names import OWN
from lumos.core.platform.impl.openmetadata.mapping.quality import OWN_DEFINITIONS
from lumos.core.platform.impl.openmetadata.writer.vocabulary import PLACEHOLDER

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.openmetadata.client import OpenMetadataApi


class _Section(NamedTuple):
    """One kind of definition."""

    type: str
    parts: tuple[str, ...]
    required: str


_SECTIONS: Final[Mapping[str, _Section]] = {
    "glossaries": _Section(
        "glossary", ("displayName", "description", "mutuallyExclusive"), "description"
    ),
    "classifications": _Section(
        "classification", ("displayName", "description", "mutuallyExclusive"), "description"
    ),
    "testDefinitions": _Section(
        "testDefinition",
        ("displayName", "description", "entityType", "testPlatforms", "supportedDataTypes",
         "parameterDefinition"),
        "entityType",
    ),
}  # fmt: skip
_NOT_THEIRS: Final = frozenset({OWN, *OWN_DEFINITIONS})


class Definitions:
    """Reads and makes definitions of one server."""

    def __init__(self, api: OpenMetadataApi) -> None:
        self._api = api

    def all(self) -> Json:
        """Return the definitions that others made, by section and name."""
        found: Json = {}
        for name, section in _SECTIONS.items():
            listed = (each for each in self._api.list(section.type) if _is_theirs(each))
            if told := {str(each["name"]): _told(each, section) for each in listed}:
                found[name] = dict(sorted(told.items()))
        return found

    def make(self, value: JsonValue) -> None:
        """Make the definitions that are missing; one that Lumos made for want of it is filled."""
        given = value if isinstance(value, dict) else {}
        for name, section in _SECTIONS.items():
            definitions = given.get(name)
            for key, each in (definitions if isinstance(definitions, dict) else {}).items():
                if isinstance(each, dict) and each.get(section.required):
                    self._make(section, key, _told(each, section))

    def _make(self, section: _Section, name: str, definition: Json) -> None:
        full = f'"{name}"' if "." in name else name
        held = self._api.find(section.type, full)
        if held is None:
            self._api.put(section.type, {"name": name, "description": name, **definition})
        elif held.get("description") == PLACEHOLDER and definition.get("description"):
            change: Json = {"op": "add", "path": "/description"}
            change["value"] = definition["description"]
            self._api.patch(section.type, held, changes=[change])


def merged(stored: JsonValue | None, told: JsonValue) -> JsonValue | None:
    """Return definitions that were kept, with what the server has of them now."""
    if not isinstance(stored, dict) or not isinstance(told, dict):
        return told or stored
    return {**stored, **{name: merged(stored.get(name), value) for name, value in told.items()}}


def _is_theirs(entity: Json) -> bool:
    made = entity.get("provider") == "system" or entity.get("name") in _NOT_THEIRS
    return not made and entity.get("description") != PLACEHOLDER


def _told(entity: Json, section: _Section) -> Json:
    return {name: entity[name] for name in section.parts if entity.get(name)}
