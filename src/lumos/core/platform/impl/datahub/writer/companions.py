"""Entities that stand beside a dataset in DataHub: its containers, owner types and assertions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from lumos.core.models.base import canonical_json
from lumos.core.platform.impl.datahub.client import ONLY_NEW, Write
from lumos.core.platform.impl.datahub.mapping.containers import containers_of
from lumos.core.platform.impl.datahub.mapping.fields import column_of
from lumos.core.platform.impl.datahub.mapping.stash import KEY
from lumos.core.platform.impl.datahub.mapping.urns import escaped, field_of, field_urn

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.datahub.client import DataHubClient, StoredEntity

_ASSERTION: Final = "assertion"
_INFO: Final = "assertionInfo"
_RUN: Final = "assertionRunEvent"
_ASSERTION_URN: Final = "urn:li:assertion:"
_RESULTS: Final[Mapping[str, str]] = {
    "PASSED": "SUCCESS",
    "FAILED": "FAILURE",
    "WARNING": "FAILURE",
    "ERROR": "ERROR",
    "SKIPPED": "INIT",
}
_OF_COLUMNS: Final[Mapping[str, Json]] = {
    "not_null": {"operator": "NOT_NULL", "aggregation": "IDENTITY"},
    "unique": {
        "operator": "EQUAL_TO",
        "aggregation": "UNIQUE_PROPOTION",  # as DataHub spells it
        "parameters": {"value": {"value": "1.0", "type": "NUMBER"}},
    },
}
"""Checks of columns that DataHub has words of its own for."""
_STAMP: Final[Json] = {"time": 0, "actor": "urn:li:corpuser:lumos"}
_FOREIGN: Final = "assertionInfo"


class Stated(NamedTuple):
    """A dataset, and the assertions of it that Lumos wrote before."""

    there: str
    dataset: Mapping[str, JsonValue]
    before: Sequence[JsonValue]


class Companions:
    """Writes what has to stand beside a dataset, and reads what others put there."""

    def __init__(self, client: DataHubClient) -> None:
        self._client = client
        self._ensured: set[str] = set()
        self._waiting: dict[str, Write] = {}

    def ensure(self, entities: Iterable[tuple[str, str, Json]]) -> None:
        """Create entities that are not there yet; what is there is left as it is."""
        for kind, urn, aspects in entities:
            self._wait_for(kind, urn, aspects)
        self.flush()

    def prepare(self, there: str, dataset: Mapping[str, JsonValue]) -> None:
        """Note what a dataset refers to, to be created by the next `flush`."""
        for container in containers_of(there):
            self._wait_for("container", container.urn, container.aspects)
        owners = cast("Json", dataset.get("ownership") or {}).get("owners")
        for owner in cast("list[Json]", owners or []):
            self._prepare_owner_type(str(owner.get("type")))

    def flush(self) -> None:
        """Create what was noted and is not there yet."""
        waiting, self._waiting = self._waiting, {}
        self._client.write([*waiting.values()])
        self._ensured.update(waiting)

    def put_assertions(self, datasets: Sequence[Stated]) -> None:
        """Bring the assertions that Lumos shows in DataHub to those that datasets have now.

        Raises:
            PlatformConflictError: somebody changed one of them since it was read.
        """
        wanted: dict[str, Json] = {}
        gone: set[str] = set()
        runs: list[Write] = []
        for there, dataset, before in datasets:
            given = cast("list[Json]", dataset.get("assertions") or [])
            wanted |= {assertion_urn(there, each): {"about": there, **each} for each in given}
            gone |= {assertion_urn(there, cast("Json", each)) for each in before}
            runs.extend(_runs(there, dataset, given))
        held = {
            each.urn: each
            for page in self._client.pages(_ASSERTION, [*wanted, *sorted(gone - wanted.keys())])
            for each in page
        }
        writes = [_brought_to(each, wanted.get(urn)) for urn, each in held.items()]
        new = [run for run in runs if run.aspects[_RUN] != held[run.urn].aspects.get(_RUN)]
        self._client.write([*writes, *new])

    def assertions_by_dataset(self) -> dict[str, list[str]]:
        """Return the assertions of every dataset."""
        found: dict[str, list[str]] = {}
        for held in self._client.scroll(_ASSERTION, aspects=(_INFO,)):
            info = held.aspects.get(_INFO)
            if isinstance(info, dict):
                found.setdefault(entity_of(info), []).append(held.urn)
        return found

    def add_assertions(self, document: Json, there: str, assertions: Sequence[str]) -> None:
        """Add the assertions to a dataset that others than Lumos made."""
        own = cast("list[JsonValue]", document.get("assertions") or [])
        known = {assertion_urn(there, cast("Json", each)) for each in own}
        missing = [urn for urn in assertions if urn not in known]
        if not missing:
            return
        found = [_read(held) for held in self._client.get(_ASSERTION, missing)]
        added = [each for each in found if each is not None]
        if added:
            added.sort(key=lambda each: str(each["name"]))
            document["assertions"] = [*own, *added]

    def _prepare_owner_type(self, given: str) -> None:
        if given in {"TECHNICAL_OWNER", "BUSINESS_OWNER", "DATA_STEWARD", "NONE"}:
            return
        info: Json = {"name": given, "created": dict(_STAMP), "lastModified": dict(_STAMP)}
        urn = f"urn:li:ownershipType:{escaped(given)}"
        self._wait_for("ownershipType", urn, {"ownershipTypeInfo": info})

    def _wait_for(self, kind: str, urn: str, aspects: Json) -> None:
        if urn not in self._ensured:
            self._waiting.setdefault(urn, Write(kind, urn, aspects, headers=ONLY_NEW))


def assertion_urn(there: str, assertion: Mapping[str, JsonValue]) -> str:
    """Return what DataHub calls an assertion."""
    name = str(assertion["name"])
    if name.startswith(_ASSERTION_URN):
        return name
    identity = canonical_json([there, name, assertion.get("column")])
    digest = hashlib.md5(identity, usedforsecurity=False).hexdigest()
    return f"{_ASSERTION_URN}{digest}"


def _brought_to(held: StoredEntity, assertion: Json | None) -> Write:
    """Return what makes the one that is held the one that is wanted, or hides it."""
    wanted: Json = {"status": {"removed": assertion is None}}
    if assertion is not None:
        info = _info(str(assertion["about"]), assertion)
        wanted[_INFO] = info if _verbatim(assertion) else _with_theirs(info, held)
    changed = {name: value for name, value in wanted.items() if held.aspects.get(name) != value}
    return Write(_ASSERTION, held.urn, changed, versions=held.versions)


def _with_theirs(info: Json, held: StoredEntity) -> Json:
    """Return what Lumos says of an assertion, and what only others say of it."""
    theirs = held.aspects.get(_INFO)
    if not isinstance(theirs, dict) or theirs.get("type") != info["type"]:
        return info
    custom = theirs.get("customProperties") or info["customProperties"]
    return {**theirs, **info, "customProperties": custom}


def _runs(there: str, dataset: Mapping[str, JsonValue], given: Sequence[Json]) -> Iterator[Write]:
    """Yield the results of those checks that belong to an assertion."""
    by_name = {str(each["name"]): assertion_urn(there, each) for each in given}
    quality = cast("Json", dataset.get("quality") or {})
    for check in cast("list[Json]", quality.get("checks") or []):
        urn = by_name.get(str(check["name"]), "")
        if urn and check.get("timestamp"):
            yield Write(_ASSERTION, urn, {_RUN: _run_event(urn, there, check)}, headers={})


def _verbatim(assertion: Mapping[str, JsonValue]) -> Json | None:
    """Return an assertion that others made as it was found."""
    found = cast("Json", assertion.get("parameters") or {}).get(_FOREIGN)
    named = str(assertion["name"]).startswith(_ASSERTION_URN)
    return found if named and isinstance(found, dict) else None


def _info(there: str, assertion: Mapping[str, JsonValue]) -> Json:
    if (verbatim := _verbatim(assertion)) is not None:
        return verbatim
    info: Json = {
        "customProperties": {},
        "source": {"type": "EXTERNAL"},
        "description": str(assertion.get("description") or assertion["name"]),
    }
    kind = str(assertion.get("kind") or "custom")
    field = assertion.get("column")
    about = field_urn(there, escaped(str(field))) if field else None
    logic: Json = {} if assertion.get("expression") is None else {"logic": assertion["expression"]}
    if about and kind in _OF_COLUMNS:
        told: Json = {
            "dataset": there,
            "scope": "DATASET_COLUMN",
            "fields": [about],
            "nativeType": kind,
        }
        return {
            **info,
            "type": "DATASET",
            "datasetAssertion": {**told, **_OF_COLUMNS[kind], **logic},
        }
    custom: Json = {"type": kind, "entity": there, **({"field": about} if about else {}), **logic}
    return {**info, "type": "CUSTOM", "customAssertion": custom}


def _read(held: StoredEntity) -> Json | None:
    info = held.aspects.get(_INFO)
    status = held.aspects.get("status")
    removed = isinstance(status, dict) and bool(status.get("removed"))
    if removed or not isinstance(info, dict):
        return None
    about = info.get("customAssertion") or info.get("datasetAssertion")
    custom = about if isinstance(about, dict) else {}
    told: Json = {
        "name": held.urn,
        "kind": str(custom.get("type") or custom.get("operator") or info.get("type") or ""),
        "parameters": {_FOREIGN: info},
    }
    several = custom.get("fields")
    fields = [custom.get("field"), *(several if isinstance(several, list) else ())]
    column = next((field_of(str(each)) for each in fields if each), None)
    if column is not None and column[1]:
        told["column"] = column_of(column[1])
    if isinstance(custom.get("logic"), str):
        told["expression"] = custom["logic"]
    if info.get("description") and isinstance(info["description"], str):
        told["description"] = info["description"]
    return told


def entity_of(info: Mapping[str, JsonValue]) -> str:
    """Return what an assertion is about; an empty text where it does not say."""
    for value in info.values():
        if isinstance(value, dict):
            entity = value.get("entity") or value.get("dataset")
            if isinstance(entity, str):
                return entity
    return str(info.get("entityUrn") or "")


def _run_event(urn: str, there: str, check: Mapping[str, JsonValue]) -> Json:
    at = int(datetime.fromisoformat(str(check["timestamp"])).timestamp() * 1000)
    return {
        "timestampMillis": at,
        "runId": f"lumos-{at}",
        "assertionUrn": urn,
        "asserteeUrn": there,
        "status": "COMPLETE",
        "messageId": KEY,
        "result": {"type": _RESULTS[str(check["status"])]},
    }
