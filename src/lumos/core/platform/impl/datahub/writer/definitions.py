"""What structured properties of DataHub may hold, and where values go that they do not take.

DataHub refuses a whole dataset for one value that its definition does not take, and a definition
hardly ever changes its type. Such a value is kept in the stash instead, and a notice says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from threading import Lock
from typing import TYPE_CHECKING, Final

from lumos.core.errors import PlatformConflictError
from lumos.core.json_reading import as_objects, object_at, objects_at, texts_at
from lumos.core.platform.impl.datahub.client import NEW, StoredEntity, Write
from lumos.core.platform.impl.datahub.mapping.structured import (
    DEFINITION,
    KIND,
    MADE_BY_LUMOS,
    PREFIX,
    property_definition,
    read_structured,
    values_of,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.datahub.client import DataHubClient

_SINGLE: Final = "SINGLE"
_DAY: Final = "0000-00-00"
_MOST_BYTES: Final = 32_766
"""Of a text as UTF-8; the search index takes no longer one."""
_TRIES: Final = 20
"""How often definitions are looked at anew that others make at the same time."""


class Definitions:
    """Knows the definitions of one server, and makes those that are missing."""

    def __init__(self, client: DataHubClient) -> None:
        self._client = client
        self._known: dict[str, StoredEntity] = {}
        self._refused: dict[str, str] = {}
        self._told: dict[str, str] = {}
        self._lock = Lock()

    def learn(
        self, datasets: Iterable[Mapping[str, JsonValue]], *, there: Iterable[JsonValue] = ()
    ) -> None:
        """Look at the definitions that datasets need, and guess those that nobody made.

        Args:
            datasets: what is to be written.
            there: the structured properties that they have so far.
        """
        needed: dict[str, JsonValue] = {}
        assigned = {urn for aspect in there for urn in read_structured(aspect)}
        for dataset in datasets:
            for name, value in object_at(dataset, "properties").items():
                if _can_be_defined(name) and _is_wider(value, needed.get(name)):
                    needed[name] = value
        if (needed or assigned) and self._client.knows_kind(KIND):
            with self._lock:
                self._read(sorted(assigned - self._known.keys()))
                self._learn(needed)

    def takes(
        self, urn: str, value: JsonValue, *, dataset: str = "", there: JsonValue = None
    ) -> bool:
        """Return whether a property can have a value; one that it cannot is noted for `notices`.

        Args:
            urn: the property.
            value: its value.
            dataset: what DataHub calls the dataset.
            there: the structured properties that the dataset has so far.
        """
        if not _can_be_defined(urn):
            self._told[urn] = (
                f"datahub: {urn} cannot be a property there for the spaces in its name: its values "
                "are kept in the property lumos"
            )
            return False
        if urn in self._refused:
            self._told[urn] = (
                f"datahub: {urn} could not be defined there: its values are kept in the property "
                f"lumos: {self._refused[urn]}"
            )
            return False
        held = self._known.get(urn)
        if held is None:
            return True
        removed = _is_removed(held)
        defined = object_at(held.aspects, DEFINITION)
        before = read_structured(there)
        fixed = bool(defined.get("immutable")) and before.get(urn, value) != value
        elsewhere = not _is_on_platform(defined, dataset)
        if not removed and not fixed and not elsewhere and takes(defined, value):
            return True
        kind = "removed" if removed else f"for {_described(defined)}"
        if elsewhere or fixed:
            kind = "for other platforms" if elsewhere else "immutable"
        self._told[urn] = (
            f"datahub: {urn} is {kind} there, and some values do not fit: they are kept in the "
            "property lumos, and shown once it takes them and the dataset is written again"
        )
        return False

    def with_immutable(self, aspects: Json, there: JsonValue) -> Json:
        """Return aspects with the immutable properties of a dataset, which may not change or go."""
        assigned = there.get("properties") if isinstance(there, dict) else None
        before = {str(each["propertyUrn"]): each for each in as_objects(assigned, "assigned")}
        fixed = {urn: each for urn, each in before.items() if self._is_immutable(urn)}
        if not fixed:
            return aspects
        wanted = object_at(aspects, "structuredProperties").get("properties")
        named = {str(each["propertyUrn"]): each for each in as_objects(wanted, "wanted")}
        whole = {**named, **fixed}
        order = [*(urn for urn in before if urn in whole), *(u for u in whole if u not in before)]
        properties: list[JsonValue] = [whole[urn] for urn in order]
        return {**aspects, "structuredProperties": {"properties": properties}}

    def _is_immutable(self, urn: str) -> bool:
        held = self._known.get(urn)
        defined = held.aspects[DEFINITION] if held is not None else None
        return isinstance(defined, dict) and bool(defined.get("immutable"))

    def refuses(self, held: StoredEntity, wanted: JsonValue) -> bool:
        """Return whether a definition that is there cannot become another, and note it."""
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
        for _ in range(_TRIES):
            try:
                self._define({u: v for u, v in needed.items() if u not in self._refused})
            except PlatformConflictError:  # somebody else defines them as well
                self._read([*needed])
                continue
            return

    def _define(self, needed: Mapping[str, JsonValue]) -> None:
        self._read([urn for urn in needed if urn not in self._known])
        writes = [
            Write(KIND, urn, {DEFINITION: property_definition(urn, value)}, versions=NEW)
            for urn, value in needed.items()
            if urn not in self._known
        ]
        small = [urn for urn, value in needed.items() if self._grown(urn, value)]
        self._read(small)  # somebody may have gone on with them
        for urn in small:
            if grown := self._grown(urn, needed[urn]):
                versions = self._known[urn].versions
                writes.append(Write(KIND, urn, {DEFINITION: grown}, versions=versions))
        if writes:
            for write, error in self._client.write_each(writes):
                self._refused[write.urn] = error.message
            self._read([write.urn for write in writes])

    def _grown(self, urn: str, value: JsonValue) -> Json | None:
        held = self._known.get(urn)
        return None if held is None else _grown(held, value)

    def _read(self, urns: list[str]) -> None:
        for page in self._client.pages(KIND, urns):
            self._known.update({held.urn: held for held in page if DEFINITION in held.aspects})


def takes(definition: Mapping[str, JsonValue], value: JsonValue) -> bool:
    """Return whether a definition lets a property have a value."""
    values = values_of(value)
    if len(values) > 1 and definition.get("cardinality", _SINGLE) == _SINGLE:
        return False
    allowed = _allowed(definition)
    if any(isinstance(each, str) and len(each.encode()) > _MOST_BYTES for each in values):
        return False
    if allowed and any(each not in allowed for each in values):
        return False
    return all(_is_of_type(definition, each) for each in values)


def _allowed(definition: Mapping[str, JsonValue]) -> list[JsonValue]:
    return [
        next(iter(object_at(each, "value").values()))
        for each in objects_at(definition, "allowedValues")
    ]


def _is_on_platform(definition: Mapping[str, JsonValue], dataset: str) -> bool:
    platforms = texts_at(definition, "allowedPlatforms")
    return not platforms or not dataset or any(f"({each}," in dataset for each in platforms)


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
    qualifier = object_at(definition, "typeQualifier")
    allowed = [_last(str(each)) for each in texts_at(qualifier, "allowedTypes")]
    return not allowed or parts[2].lower() in allowed


def _can_become(now: Mapping[str, JsonValue], wanted: Mapping[str, JsonValue]) -> bool:
    """Return whether DataHub lets a definition change into another."""
    same_type = all(now.get(part) == wanted.get(part) for part in ("valueType", "qualifiedName"))
    fewer = now.get("cardinality") == "MULTIPLE" and wanted.get("cardinality", _SINGLE) == _SINGLE
    before, after = (_allowed(each) for each in (now, wanted))
    restricted = bool(after) and (not before or any(each not in after for each in before))
    return same_type and not fewer and not restricted


def _grown(held: StoredEntity, value: JsonValue) -> Json | None:
    """Return a guess of Lumos that takes several values, where it has to."""
    defined = object_at(held.aspects, DEFINITION)
    grown: Json = {**defined, "cardinality": "MULTIPLE"}
    mine = defined.get("description") == MADE_BY_LUMOS and not _is_removed(held)
    return grown if mine and not takes(defined, value) and takes(grown, value) else None


def _can_be_defined(name: str) -> bool:
    """Return whether DataHub lets a structured property have a name."""
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
