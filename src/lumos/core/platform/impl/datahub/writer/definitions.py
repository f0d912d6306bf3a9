"""What structured properties of DataHub may hold, and what becomes of values that they do not take.

DataHub refuses a whole dataset for one value that its definition does not take, and a definition
hardly ever changes its type. Such a value is kept in the stash instead, and people are told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from threading import Lock
from typing import TYPE_CHECKING, Final, cast

from lumos.core.platform.impl.datahub.client import AT_ONCE, ONLY_NEW, StoredEntity, Write
from lumos.core.platform.impl.datahub.mapping.structured import (
    DEFINITION,
    KIND,
    MADE_BY_LUMOS,
    PREFIX,
    property_definition,
    values_of,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.datahub.client import DataHubClient

_SINGLE: Final = "SINGLE"
_DAY: Final = "0000-00-00"


class Definitions:
    """Knows the definitions of one server, and makes those that are missing."""

    def __init__(self, client: DataHubClient) -> None:
        self._client = client
        self._known: dict[str, StoredEntity] = {}
        self._told: dict[str, str] = {}
        self._lock = Lock()

    def learn(self, datasets: Iterable[Mapping[str, JsonValue]]) -> None:
        """Look at the definitions that datasets need, and guess those that nobody made."""
        needed: dict[str, JsonValue] = {}
        for dataset in datasets:
            for name, value in cast("Json", dataset.get("properties") or {}).items():
                if _can_be_defined(name) and _is_wider(value, needed.get(name)):
                    needed[name] = value
        if needed and self._client.knows_kind(KIND):
            with self._lock:
                self._learn(needed)

    def takes(self, urn: str, value: JsonValue) -> bool:
        """Tell whether a property can have a value; one that it cannot is noted for `notices`."""
        if not _can_be_defined(urn):
            self._told[urn] = (
                f"datahub: {urn} cannot be a property there for the spaces in its name: its values "
                "are kept in the property lumos"
            )
            return False
        held = self._known.get(urn)
        if held is None:
            return True
        removed = _is_removed(held)
        defined = cast("Json", held.aspects[DEFINITION])
        if not removed and takes(defined, value):
            return True
        kind = "removed" if removed else f"for {_described(defined)}"
        self._told[urn] = (
            f"datahub: {urn} is {kind} there, and some values do not fit: they are kept in the "
            "property lumos, and shown once it takes them and the dataset is written again"
        )
        return False

    def refuses(self, held: StoredEntity, wanted: JsonValue) -> bool:
        """Tell whether a definition that is there cannot become another, and note it."""
        defined = held.aspects.get(DEFINITION)
        if not isinstance(defined, dict) or not isinstance(wanted, dict):
            return False
        if not _is_removed(held) and _can_become(defined, wanted):
            return False
        self._told[f"{held.urn} {DEFINITION}"] = (
            f"datahub: {held.urn} was guessed to be for {_described(defined)} and cannot become "
            f"one for {_described(wanted)}: delete it in DataHub and import or sync again; until "
            "then its definition is kept beside it"
        )
        return True

    def forget(self) -> None:
        """Look at definitions again when they are next needed."""
        self._known.clear()

    def notices(self) -> tuple[str, ...]:
        """Return what people should know, one line for each property."""
        return tuple(self._told[name] for name in sorted(self._told))

    def _learn(self, needed: Mapping[str, JsonValue]) -> None:
        self._read([urn for urn in needed if urn not in self._known])
        guessed = {
            urn: property_definition(urn, value)
            for urn, value in needed.items()
            if urn not in self._known
        }
        writes = [
            Write(KIND, urn, {DEFINITION: defined}, headers={**ONLY_NEW, **AT_ONCE})
            for urn, defined in guessed.items()
        ]
        small = [urn for urn, value in needed.items() if self._grown(urn, value)]
        self._read(small)  # somebody may have gone on with them
        for urn in small:
            if grown := self._grown(urn, needed[urn]):
                versions = self._known[urn].versions
                writes.append(Write(KIND, urn, {DEFINITION: grown}, versions=versions))
        if writes:
            self._client.write(writes)
            self._read([write.urn for write in writes])

    def _grown(self, urn: str, value: JsonValue) -> Json | None:
        held = self._known.get(urn)
        return None if held is None else _grown(held, value)

    def _read(self, urns: list[str]) -> None:
        for page in self._client.pages(KIND, urns):
            self._known.update({held.urn: held for held in page if DEFINITION in held.aspects})


def takes(definition: Mapping[str, JsonValue], value: JsonValue) -> bool:
    """Tell whether a definition lets a property have a value."""
    values = values_of(value)
    if len(values) > 1 and definition.get("cardinality", _SINGLE) == _SINGLE:
        return False
    allowed = [
        next(iter(cast("Json", each["value"]).values()))
        for each in cast("list[Json]", definition.get("allowedValues") or [])
    ]
    if allowed and any(each not in allowed for each in values):
        return False
    return all(_is_of_type(definition, each) for each in values)


def _is_of_type(definition: Mapping[str, JsonValue], value: JsonValue) -> bool:
    match _type_in(definition):
        case "number":
            return isinstance(value, int | float)
        case "string" | "rich_text":
            return isinstance(value, str)
        case "date":
            return isinstance(value, str) and _is_day(value)
        case "urn":
            return isinstance(value, str) and _is_urn_of(value, definition)
        case _:
            return True


def _is_day(text: str) -> bool:
    if len(text) != len(_DAY):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_urn_of(text: str, definition: Mapping[str, JsonValue]) -> bool:
    parts = text.split(":")
    if parts[:2] != ["urn", "li"] or len(parts) < 4:  # noqa: PLR2004
        return False
    qualifier = cast("Json", definition.get("typeQualifier") or {})
    allowed = [_last(str(each)) for each in cast("list[str]", qualifier.get("allowedTypes") or [])]
    return not allowed or parts[2].lower() in allowed


def _can_become(now: Mapping[str, JsonValue], wanted: Mapping[str, JsonValue]) -> bool:
    """Tell whether DataHub lets a definition change into another."""
    same_type = now.get("valueType") == wanted.get("valueType")
    fewer = now.get("cardinality") == "MULTIPLE" and wanted.get("cardinality", _SINGLE) == _SINGLE
    restricted = bool(wanted.get("allowedValues")) and not now.get("allowedValues")
    return same_type and not fewer and not restricted


def _grown(held: StoredEntity, value: JsonValue) -> Json | None:
    """Return a guess of Lumos that takes several values, where it has to."""
    defined = cast("Json", held.aspects[DEFINITION])
    grown: Json = {**defined, "cardinality": "MULTIPLE"}
    mine = defined.get("description") == MADE_BY_LUMOS and not _is_removed(held)
    return grown if mine and not takes(defined, value) and takes(grown, value) else None


def _can_be_defined(name: str) -> bool:
    """Tell whether DataHub lets a structured property have a name."""
    return name.startswith(PREFIX) and len(name) > len(PREFIX) and not re.search(r"\s", name)


def _is_wider(value: JsonValue, than: JsonValue) -> bool:
    return than is None or len(values_of(value)) > len(values_of(than))


def _is_removed(held: StoredEntity) -> bool:
    status = held.aspects.get("status")
    return isinstance(status, dict) and bool(status.get("removed"))


def _described(definition: Mapping[str, JsonValue]) -> str:
    count = "one" if definition.get("cardinality", _SINGLE) == _SINGLE else "any number of"
    which = " of a list" if definition.get("allowedValues") else ""
    return f"{count} {_type_in(definition)}{which}"


def _type_in(definition: Mapping[str, JsonValue]) -> str:
    return _last(str(definition.get("valueType") or ""))


def _last(urn: str) -> str:
    return urn.rsplit(":", 1)[-1].rsplit(".", 1)[-1].lower()
