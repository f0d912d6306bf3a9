"""Entities that stand beside a dataset in DataHub: its containers, owner types and assertions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.errors import PlatformConflictError, PlatformForbiddenError
from lumos.core.json_reading import as_object, as_objects, list_at, object_at, objects_at
from lumos.core.models.base import canonical_json
from lumos.core.platform.impl.datahub.client import NEW, Write
from lumos.core.platform.impl.datahub.mapping.added_by_server import asserted_entity
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
"""Checks of columns that DataHub has names for."""
_STAMP: Final[Json] = {"time": 0, "actor": "urn:li:corpuser:lumos"}
_FOREIGN: Final = "assertionInfo"
_TRIES: Final = 20
"""How often something is looked at anew that others create at the same time."""


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
        self._forbidden: set[str] = set()
        self._refused: dict[str, tuple[list[str], PlatformForbiddenError]] = {}
        self._waiting: dict[str, Write] = {}

    def ensure(self, entities: Iterable[tuple[str, str, Json]]) -> None:
        """Create entities that are not there yet; what is there is left as it is."""
        for kind, urn, aspects in entities:
            self._wait_for(kind, urn, aspects)
        self.flush()

    def prepare(self, there: str, dataset: Mapping[str, JsonValue], *, container: bool) -> None:
        """Note what a dataset refers to, to be created by the next `flush`.

        Args:
            there: what DataHub calls the dataset.
            dataset: the dataset.
            container: whether it is in the containers that its name states.
        """
        for each in containers_of(there) if container else ():
            self._wait_for("container", each.urn, each.aspects)
        owners = object_at(dataset, "ownership").get("owners")
        for owner in as_objects(owners, "owners"):
            self._prepare_owner_type(str(owner.get("type")))

    def flush(self) -> None:
        """Create what was noted and is not there yet; what may not be created is left out."""
        waiting, self._waiting = self._waiting, {}
        for kind in dict.fromkeys(write.kind for write in waiting.values()):
            self._create([write for write in waiting.values() if write.kind == kind])
        self._ensured.update(waiting)

    def lacks(self, urn: str | None) -> bool:
        """Return whether an entity is not there, and may not be created."""
        return urn in self._forbidden

    def notices(self) -> list[str]:
        """Return what people should know of what could not be created."""
        return [
            f"datahub: {len(urns):,} of kind {kind} may not be created, and datasets do without "
            f"them: {error.message}"
            for kind, (urns, error) in sorted(self._refused.items())
        ]

    def _create(self, writes: Sequence[Write]) -> None:
        for _ in range(_TRIES):
            new = self._new(writes)
            try:
                self._client.write(new)
            except PlatformConflictError:  # somebody else creates them as well
                continue
            except PlatformForbiddenError as error:
                if len(new) > 1:
                    for write in new:
                        self._create([write])
                else:
                    self._refuse(new[0], error)
            return

    def _new(self, writes: Sequence[Write]) -> list[Write]:
        """Return what is missing of entities that do not say what they are."""
        wanted = {write.urn: write for write in writes}
        new: list[Write] = []
        for page in self._client.pages(writes[0].kind, [*wanted]):
            for held in page:
                write = wanted[held.urn]
                if next(iter(write.aspects)) not in held.aspects:
                    missing = {n: v for n, v in write.aspects.items() if n not in held.aspects}
                    new.append(write._replace(aspects=missing, versions=NEW))
        return new

    def _refuse(self, write: Write, error: PlatformForbiddenError) -> None:
        self._forbidden.add(write.urn)
        self._refused.setdefault(write.kind, ([], error))[0].append(write.urn)

    def put_assertions(self, datasets: Sequence[Stated]) -> None:
        """Bring the assertions that Lumos shows in DataHub to those that datasets have now.

        Raises:
            PlatformConflictError: somebody changed one of them since it was read.
        """
        wanted: dict[str, Json] = {}
        gone: set[str] = set()
        runs: list[Write] = []
        for there, dataset, before in datasets:
            given = objects_at(dataset, "assertions")
            wanted |= {assertion_urn(there, each): {"about": there, **each} for each in given}
            gone |= {assertion_urn(there, as_object(each, "each")) for each in before}
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
        for held in self._client.scroll(_ASSERTION, aspects=("assertionKey", _INFO)):
            info = held.aspects.get(_INFO)
            if isinstance(info, dict):
                found.setdefault(asserted_entity(info), []).append(held.urn)
        return found

    def add_assertions(self, document: Json, there: str, assertions: Sequence[str]) -> None:
        """Add the assertions to a dataset that others than Lumos made."""
        own = list_at(document, "assertions")
        known = {assertion_urn(there, as_object(each, "each")) for each in own}
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
            self._waiting.setdefault(urn, Write(kind, urn, aspects))


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
    quality = object_at(dataset, "quality")
    for check in objects_at(quality, "checks"):
        urn = by_name.get(str(check["name"]), "")
        if urn and check.get("timestamp"):
            yield Write(_ASSERTION, urn, {_RUN: _run_event(urn, there, check)}, headers={})


def _verbatim(assertion: Mapping[str, JsonValue]) -> Json | None:
    """Return an assertion that others made as it was found."""
    found = object_at(assertion, "parameters").get(_FOREIGN)
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
