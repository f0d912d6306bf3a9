"""The part of DataHub's OpenAPI v3 that the adapter speaks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar
from urllib.parse import quote

import orjson

from lumos.core.errors import (
    PlatformAnswerError,
    PlatformConflictError,
    PlatformError,
    PlatformFailureError,
    PlatformForbiddenError,
    PlatformNotFoundError,
)
from lumos.core.events import emit, since
from lumos.core.json_reading import objects_among, objects_at
from lumos.core.platform.http import failing_at_once
from lumos.core.platform.impl.datahub.mapping.added_by_server import in_agreement, without_added
from lumos.core.platform.impl.datahub.mapping.observations import SERIES
from lumos.core.platform.impl.datahub.mapping.own_writes import POINTING, OwnWrites, targets
from lumos.core.platform.impl.datahub.settings import LARGEST_REQUEST
from lumos.core.platform.refusals import REFUSALS, ends_run
from lumos.core.platform.unreadable import answer_to

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.errors import LumosError
    from lumos.core.json_reading import Json
    from lumos.core.platform.http import CatalogHttp
    from lumos.core.platform.impl.datahub.settings import DataHubSettings

T = TypeVar("T")
AT_ONCE: Final[Mapping[str, str]] = {"X-DataHub-Sync-Index-Update": "true"}
"""Lets the server hand a write to the search and graph indexes before it answers."""
NEW: Final[Mapping[str, str]] = {}
"""The versions of an entity of which nothing may be there yet."""
SCROLL: Final = "openapi/v3/entity/scroll"
_RELATIONS: Final = "openapi/relationships/v1/"
_OF_CONFIG: Final = frozenset({"versions", "noCode", "models", "patchCapable"})
_OF_PAGES: Final = frozenset({"entities", "scrollId", "totalCount", "total"})
_PAGE: Final = 500
_FEW: Final = 200
_VERSION: Final = "If-Version-Match"
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 2.0
_NONE: Final = "-1"
"""The version of what must not be there yet."""


class StoredEntity(NamedTuple):
    """An entity as the server holds it."""

    urn: str
    aspects: Json
    versions: Mapping[str, str]
    """The version of each aspect; empty where the server does not state it."""


class Write(NamedTuple):
    """Aspects of one entity to be written."""

    kind: str
    urn: str
    aspects: Mapping[str, JsonValue]
    headers: Mapping[str, str] = AT_ONCE
    versions: Mapping[str, str] | None = None
    """The versions that are to be replaced; where another is there, nothing is written."""


class DataHubClient:
    """Reads and writes entities of one DataHub server."""

    def __init__(self, http: CatalogHttp, settings: DataHubSettings) -> None:
        self._http = http
        self._settings = settings
        self._known: dict[str, frozenset[str]] | None = None
        self._unknown: set[tuple[str, str]] = set()
        self._slices = settings.slices
        self.own = OwnWrites()

    def get(
        self, kind: str, urns: Sequence[str], *, aspects: Iterable[str] = ()
    ) -> list[StoredEntity]:
        """Return the entities that exist among these, with all of their aspects or some."""
        wanted: Json = {name: {} for name in aspects}
        body = [{"urn": urn, **wanted} for urn in urns]
        path = f"openapi/v3/entity/{kind.lower()}/batchGet"
        found = self._http.json(
            "POST", path, params={"systemMetadata": "true"}, body=body, idempotent=True
        )
        if not isinstance(found, list):
            raise self._unlike("POST", path)
        return [held_of(each) for each in found]

    def scroll(
        self, kind: str, *, aspects: Sequence[str] = (), include_removed: bool = False
    ) -> Iterator[StoredEntity]:
        """Yield all entities of a kind, read in several slices at a time, in no order.

        What was written through this client and is not in the index yet is read by its name.
        """
        seen: set[str] = set()  # a server that knows no slices gives everything in each
        removed: list[str] = []  # by this client; somebody else may have it back
        for part in self._parts(kind, aspects, include_removed=include_removed):
            for held in part:
                if held.urn in seen:
                    continue
                seen.add(held.urn)
                if self.own.is_gone(kind, held.urn, include_removed=include_removed):
                    removed.append(held.urn)
                else:
                    yield held
        missing = self.own.missing(kind, seen, include_removed=include_removed)
        for held in self._by_name(kind, [*missing, *removed], aspects):
            if include_removed or not is_removed(held):
                yield held

    def _by_name(
        self, kind: str, urns: Sequence[str], aspects: Sequence[str]
    ) -> Iterator[StoredEntity]:
        """Yield entities with some aspects, or all of them, and whether they are removed."""
        also = ("status",) if aspects else ()
        for page in pages_of(urns, _FEW):
            yield from self.get(kind, page, aspects=(*aspects, *also))

    def _parts(
        self, kind: str, aspects: Sequence[str], *, include_removed: bool
    ) -> Iterator[list[StoredEntity]]:
        """Yield what the slices have, or all at once where the server fails at slices."""

        def read(number: int) -> list[StoredEntity]:
            return [*self._slice(kind, number, aspects, include_removed=include_removed)]

        if self._slices > 1:
            try:
                with failing_at_once():
                    parts = [*self._http.map(read, range(self._slices), workers=self._slices)]
            except PlatformFailureError:
                self._slices = 1  # an older search engine has none
            else:
                yield from parts
                return
        yield read(0)

    def wait_for_index(self, kind: str) -> None:
        """Wait until the index shows what was written and removed of a kind through this client.

        It waits no longer than the settings allow, and logs how long it took.
        """
        if not self.own.unseen:
            return
        self.own.unseen, began, pause = False, time.monotonic(), _FIRST_PAUSE
        while not (complete := self._shows_own(kind)):
            if since(began) + pause > self._settings.index_seconds:
                break
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        emit("index.waited", platform="datahub", seconds=since(began), complete=complete)

    def _shows_own(self, kind: str) -> bool:
        parts = self._parts(kind, (f"{kind}Key",), include_removed=False)
        seen = {held.urn for part in parts for held in part}
        gone = [urn for urn in seen if self.own.is_gone(kind, urn, include_removed=False)]
        back = {held.urn for held in self._by_name(kind, gone, ("status",)) if not is_removed(held)}
        stale = set(gone) - back
        return not stale and not self.own.missing(kind, seen, include_removed=False)

    def _slice(
        self, kind: str, number: int, aspects: Sequence[str], *, include_removed: bool
    ) -> Iterator[StoredEntity]:
        params: dict[str, str | int | bool | list[str]] = {
            "count": _PAGE,
            "query": "*",
            "skipCache": "true",
            "includeSoftDelete": "true" if include_removed else "false",
        }
        if self._slices > 1:
            params |= {"sliceId": number, "sliceMax": self._slices}
        pages = self._http.pages(
            "POST",
            SCROLL,
            params=params,
            body={"entities": [kind], "aspects": [*aspects]},
            following=_next_page,
            idempotent=True,
        )
        page: JsonValue | None = None
        for page in pages:
            for each in entities_in(self._http, page):
                yield held_of(each)
        if page is None:  # nothing at all is no page, not even an empty one
            raise self._unlike("POST", SCROLL)

    def write(self, writes: Sequence[Write]) -> None:
        """Write aspects and wait until the server has them, in requests that it takes.

        Raises:
            PlatformConflictError: a version that was to be replaced is no longer there.
        """
        for kind in dict.fromkeys(write.kind for write in writes):
            given = [write for write in writes if write.kind == kind and write.aspects]
            batches = [*self._batches(given)]
            for _ in self._http.map(
                partial(self._post, kind),
                batches,
                workers=min(self._settings.workers, len(batches)),
            ):
                pass

    def write_each(self, writes: Sequence[Write]) -> list[tuple[Write, LumosError]]:
        """Write aspects, and return the writes that the server refuses, each with the reason.

        If a request is refused, its entities are sent one by one.

        Raises:
            PlatformConflictError: a version that was to be replaced is no longer there.
        """
        try:
            self.write(writes)
        except PlatformConflictError:
            raise
        except REFUSALS as error:
            if ends_run(error):
                raise
            if len(writes) == 1:
                return [(writes[0], error)]
            return [refused for write in writes for refused in self.write_each([write])]
        return []

    def _post(self, kind: str, batch: _Batch) -> None:
        path = f"openapi/v3/entity/{kind.lower()}"
        written = self._http.json(
            "POST", path, params={"async": "false"}, body=batch.bodies, idempotent=True
        )
        if not isinstance(written, list):  # the answer does not prove that anything was written
            raise self._unlike("POST", path)
        for write in batch.writes:
            self.own.note(kind, write.urn, write.aspects)
        self._learn_unknown(kind, batch.writes, written)

    def _learn_unknown(self, kind: str, writes: Sequence[Write], written: list[JsonValue]) -> None:
        """Notice aspects that the server passed over in silence, as it does not know them.

        Raises:
            PlatformConflictError: there are some, and what they hold has to be kept elsewhere.
        """
        told = {
            str(each.get("urn")): each.keys()
            for each in written
            if isinstance(each, dict) and len(each) > 1
        }
        dropped: dict[str, str] = {}
        for write in writes:
            for name in write.aspects.keys() - told.get(write.urn, write.aspects.keys()) - SERIES:
                dropped.setdefault(name, write.urn)
        new = [name for name in sorted(dropped) if (kind.lower(), name) not in self._unknown]
        new = [name for name in new if not self._has(kind, dropped[name], name)]
        if new:
            self._unknown.update((kind.lower(), name) for name in new)
            raise PlatformConflictError(
                f"datahub: this server has no {', '.join(new)} of a {kind}", hint="run again"
            )

    def _has(self, kind: str, urn: str, aspect: str) -> bool:
        return any(aspect in held.aspects for held in self.get(kind, [urn], aspects=(aspect,)))

    def delete(self, kind: str, urn: str) -> None:
        """Remove an entity for good; one that is not there is no error."""
        path = f"openapi/v3/entity/{kind.lower()}/{quote(urn, safe='')}"
        self._without_complaint(path)
        self.own.note_deleted(kind, urn)

    def delete_aspect(self, kind: str, held: StoredEntity, aspect: str) -> None:
        """Remove an aspect that is still as it was read; DataHub has no condition for this.

        Raises:
            PlatformConflictError: it is another one by now.
        """
        for now in self.get(kind, [held.urn], aspects=(aspect,)):
            if now.versions.get(aspect) != held.versions.get(aspect):
                raise PlatformConflictError(
                    f"datahub: somebody changed {aspect} in between", hint="try again"
                )
        path = f"openapi/v3/entity/{kind.lower()}/{quote(held.urn, safe='')}/{aspect}"
        self._without_complaint(path)

    def related(self, urn: str, *types: str) -> list[tuple[str, str]]:
        """Return kind and URN of whatever points to an entity in one of these ways.

        Of what was written through this client the aspects count, as the graph lags behind.
        """
        found: dict[tuple[str, str], None] = {}
        in_graph = self._in_graph(urn, types)
        for kind in types:
            source, aspect = POINTING[kind]
            told = [each for each in in_graph if each[0] == kind]
            own = {there for there in self.own.pointing_at(urn) if _is_of_kind(there, source)}
            own |= {there for _, there in told if self.own.was_written(source, there)}
            found.update((each, None) for each in told if each[1] not in own)
            for held in self._by_name(source, sorted(own), (aspect,)):
                if urn in targets(held.aspects) and not is_removed(held):
                    found[kind, held.urn] = None
        return [*found]

    def _in_graph(self, urn: str, types: Sequence[str]) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        while True:
            page = self._http.json(
                "GET",
                _RELATIONS,
                params={
                    "urn": urn,
                    "direction": "INCOMING",
                    "relationshipTypes": [*types],
                    "start": len(found),
                    "count": _PAGE,
                },
            )
            entities = entities_in(self._http, page, method="GET", path=_RELATIONS)
            found.extend((str(each["relationshipType"]), str(each["urn"])) for each in entities)
            if len(entities) < _PAGE:
                return found

    def version(self) -> str:
        """Return the version that the server says it has."""
        config = self._http.json("GET", "config")
        if not isinstance(config, dict) or _OF_CONFIG.isdisjoint(config):
            raise self._unlike("GET", "config")
        versions = config.get("versions")
        core = versions.get("acryldata/datahub") if isinstance(versions, dict) else None
        return str((core.get("version") if isinstance(core, dict) else None) or "unknown")

    def knows(self, kind: str, aspect: str) -> bool:
        """Return whether this server has a place for an aspect; one that does not say has."""
        if self._known is None:
            self._known = self._specifications()
        if (kind.lower(), aspect) in self._unknown:
            return False
        known = self._known.get(kind.lower())
        return known is None or aspect in known

    def knows_kind(self, kind: str) -> bool:
        """Return whether this server has entities of a kind; one that does not say has."""
        self.knows(kind, "")
        return not self._known or kind.lower() in self._known

    def pages(self, kind: str, urns: Sequence[str]) -> Iterator[list[StoredEntity]]:
        """Yield entities by their names, those that do not exist as ones without aspects."""
        for page in pages_of(urns, _FEW):
            found = {held.urn: held for held in self.get(kind, page)}
            yield [found.get(urn) or StoredEntity(urn, {}, {}) for urn in page]

    def _specifications(self) -> dict[str, frozenset[str]]:
        try:
            page = self._http.json(
                "GET",
                "openapi/v1/registry/models/entity/specifications",
                params={"start": 0, "count": _PAGE},
            )
        except (PlatformNotFoundError, PlatformForbiddenError):  # few may list them
            return {}
        elements = page.get("elements") if isinstance(page, dict) else page
        return {
            str(each["name"]).lower(): frozenset(_names(each["aspectSpecs"]))
            for each in objects_among(elements)
            if each.get("name") and each.get("aspectSpecs")
        }

    def _unlike(self, method: str, path: str) -> PlatformAnswerError:
        return unlike_datahub(self._http, method, path=path)

    def _without_complaint(self, path: str) -> None:
        try:
            self._http.json("DELETE", path)
        except PlatformNotFoundError:
            return

    def _batches(self, writes: Iterable[Write]) -> Iterator[_Batch]:
        batch = _Batch([], [])
        aspects = size = 0
        for write in writes:
            more = len(write.aspects)
            text = orjson.dumps(_body(write))
            length = len(text)
            if length > LARGEST_REQUEST:
                raise PlatformError(
                    f"datahub: one dataset makes a request of {length:,} bytes",
                    hint=f"DataHub takes no more than {LARGEST_REQUEST:,}",
                )
            full = aspects + more > self._settings.batch_size or size + length > LARGEST_REQUEST
            if batch.writes and full:
                yield batch
                batch, aspects, size = _Batch([], []), 0, 0
            batch.writes.append(write)
            batch.bodies.append(orjson.Fragment(text))
            aspects += more
            size += length
        if batch.writes:
            yield batch


class _Batch(NamedTuple):
    """What is written by one request."""

    writes: list[Write]
    bodies: list[orjson.Fragment]


def is_removed(held: StoredEntity) -> bool:
    """Return whether an entity is marked as removed."""
    status = held.aspects.get("status")
    return isinstance(status, dict) and bool(status.get("removed"))


def _is_of_kind(urn: str, kind: str) -> bool:
    return urn.startswith(f"urn:li:{kind}:")


def pages_of(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield parts of a sequence, each of a size that one request takes."""
    return (items[start : start + size] for start in range(0, len(items), size))


def _body(write: Write) -> Json:
    body: Json = {"urn": write.urn}
    for name, value in write.aspects.items():
        headers: Json = dict(write.headers)
        version = (write.versions or {}).get(name, _NONE)
        if write.versions is not None and version:
            headers[_VERSION] = version
        body[name] = {"value": in_agreement(name, value), "headers": headers}
    return body


def unlike_datahub(http: CatalogHttp, method: str, *, path: str) -> PlatformAnswerError:
    """Return what to raise where an answer is JSON, and none that a DataHub gives."""
    return PlatformAnswerError(
        f"{http.where(method, path)}: the answer is none of a DataHub",
        hint="check that the URL is that of DataHub's metadata service",
    )


def entities_in(
    http: CatalogHttp, page: JsonValue | None, *, method: str = "POST", path: str = SCROLL
) -> list[Json]:
    """Return the entities of a page of them.

    Raises:
        PlatformAnswerError: it is not a page as DataHub writes it.
    """
    if isinstance(page, dict) and not _OF_PAGES.isdisjoint(page):
        with answer_to(http.where(method, path)):
            return objects_at(page, "entities")
    raise unlike_datahub(http, method, path=path)


def held_of(entity: JsonValue) -> StoredEntity:
    """Return an entity of an answer as the server holds it."""
    urn = entity.get("urn") if isinstance(entity, dict) else None
    if not isinstance(entity, dict) or not isinstance(urn, str):
        raise PlatformAnswerError(
            "datahub: the server gave an entity without a name", hint="check the server's version"
        )
    aspects: Json = {}
    versions: dict[str, str] = {}
    for name, each in entity.items():
        if name != "urn" and isinstance(each, dict) and each.get("value") is not None:
            aspects[name] = without_added(name, each["value"])
            told = each.get("systemMetadata")
            versions[name] = str(told.get("version") or "") if isinstance(told, dict) else ""
    return StoredEntity(urn, aspects, versions)


def _names(specifications: JsonValue) -> Iterator[str]:
    for each in specifications if isinstance(specifications, list | dict) else ():
        yield str(each.get("name") if isinstance(each, dict) else each)


def _next_page(page: JsonValue | None) -> Mapping[str, str | int | bool] | None:
    told = page.get("scrollId") if isinstance(page, dict) else None
    entities = page.get("entities") if isinstance(page, dict) else None
    return {"scrollId": str(told)} if told and entities else None
