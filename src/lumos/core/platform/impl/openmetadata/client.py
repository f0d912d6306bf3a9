"""The part of OpenMetadata's REST interface that Lumos uses, request by request."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from threading import RLock
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

import orjson

from lumos.core.errors import (
    PlatformAnswerError,
    PlatformConflictError,
    PlatformNotFoundError,
    PlatformUnavailableError,
)
from lumos.core.json_reading import as_object, find_value, object_at, objects_at, text_at
from lumos.core.platform.http import OK
from lumos.core.platform.impl.openmetadata.mapping.changes import stash_parts
from lumos.core.platform.impl.openmetadata.mapping.rules import own_parts
from lumos.core.platform.stash import STASH_KEY
from lumos.core.platform.unreadable import answer_to

if TYPE_CHECKING:
    import builtins

    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.platform.http import CatalogHttp

Params = Mapping[str, str | int | bool | list[str]]
PATCH_JSON: Final = "application/json-patch+json"
COLLECTIONS: Final[Mapping[str, str]] = {
    "table": "tables",
    "container": "containers",
    "pipeline": "pipelines",
    "user": "users",
    "team": "teams",
    "tag": "tags",
    "classification": "classifications",
    "glossary": "glossaries",
    "glossaryTerm": "glossaryTerms",
    "domain": "domains",
    "database": "databases",
    "databaseSchema": "databaseSchemas",
    "databaseService": "services/databaseServices",
    "storageService": "services/storageServices",
    "pipelineService": "services/pipelineServices",
    "testCase": "dataQuality/testCases",
    "testDefinition": "dataQuality/testDefinitions",
}
FIELDS: Final[Mapping[str, str]] = {
    "table": "owners,tags,domains,extension,columns,tableConstraints,schemaDefinition,testSuite,"
    "tablePartition,dataModel,lifeCycle,certification,dataProducts,tableProfilerConfig",
    "container": "owners,tags,domains,extension,dataModel,parent,lifeCycle,certification,"
    "dataProducts",
    "pipeline": "extension,tasks,scheduleInterval",
    "testCase": "testDefinition,testSuite,testCaseResult",
    "user": "teams",
    "team": "users",
}
"""What the server leaves out of an answer unless it is asked for."""


_GONE: Final = (HTTPStatus.OK, HTTPStatus.NO_CONTENT, HTTPStatus.NOT_FOUND)


class Page(NamedTuple):
    """Some entities of a list."""

    entities: list[Json]
    left: float
    """How many pages come after it."""
    total: float
    """How many entities the whole list has."""


class OpenMetadataApi:
    """Requests to one server, by type of entity."""

    def __init__(self, http: CatalogHttp, *, page_size: int) -> None:
        self._http = http
        self._page_size = page_size
        self._declaring = RLock()
        self._types: dict[str, Json] = {}
        self._declared: dict[str, Mapping[str, str]] = {}
        self._closed = False

    def find(self, type_: str, name: str) -> Json | None:
        """Return the entity of a fully qualified name, None where there is none.

        Here and in lists, what an entity inherits or derives from others is left out.
        """
        path = f"{COLLECTIONS[type_]}/name/{quote(name, safe='')}"
        return self._found(path, fields=FIELDS.get(type_))

    def put(self, type_: str, body: Mapping[str, JsonValue]) -> Json:
        """Create an entity; one that is there is not overwritten by this, only filled up."""
        return self._object("PUT", COLLECTIONS[type_], body=body)

    def post(self, type_: str, body: Mapping[str, JsonValue]) -> Json:
        """Create an entity.

        Raises:
            PlatformConflictError: there is one of this name, or nobody knows whether it was made.
        """
        with _reading_again():
            return self._object("POST", COLLECTIONS[type_], body=body)

    def put_all(self, type_: str, bodies: Sequence[Mapping[str, JsonValue]]) -> None:
        """Create several entities by one request; which of them there are then is to be read.

        Raises:
            PlatformNotFoundError: the server takes none together.
        """
        path = f"{COLLECTIONS[type_]}/bulk"
        self._send("PUT", path, params={"async": "false"}, body=bodies)

    def patch(self, type_: str, entity: Json, *, changes: list[JsonValue]) -> None:
        """Change an entity, unless somebody else changed it since it was read.

        Raises:
            PlatformConflictError: it is no longer in the version that was read, or nobody knows.
        """
        headers = {"If-Match": f'W/"{entity["version"]}"'} if "version" in entity else {}
        path = f"{COLLECTIONS[type_]}/{entity['id']}"
        with _reading_again():
            self._send("PATCH", path, body=changes, content_type=PATCH_JSON, headers=headers)

    def delete(self, type_: str, entity: Json) -> None:
        """Remove an entity for good; one that is not there is no error."""
        path = f"{COLLECTIONS[type_]}/{entity['id']}"
        params = {"hardDelete": "true", "recursive": "true"}
        self._send("DELETE", path, params=params, ok=_GONE)

    def list(self, type_: str, **params: str) -> Iterator[Json]:
        """Yield all entities of a type, page by page, in the server's order."""
        asked: dict[str, str | int | bool | list[str]] = {"limit": self._page_size, **params}
        if type_ in FIELDS:
            asked["fields"] = FIELDS[type_]
        self._require_open()
        path = COLLECTIONS[type_]
        for page in self._http.pages("GET", path, params=asked, following=_next_page):
            yield from map(own_parts, self._entities(page, path))

    def pages(self, type_: str, **params: str) -> Iterator[Page]:
        """Yield pages of the entities of a type, each with how many more requests the rest needs.

        A server that does not state how many there are is taken for one with no end of them.
        """
        asked: dict[str, str | int | bool | list[str]] = {"limit": self._page_size, **params}
        if type_ in FIELDS:
            asked["fields"] = FIELDS[type_]
        self._require_open()
        path = COLLECTIONS[type_]
        pages = self._http.pages("GET", path, params=asked, following=_next_page)
        for number, page in enumerate(pages, 1):
            told = _total(page)
            total = math.inf if told is None else told
            left = math.ceil(total / self._page_size) - number if told is not None else math.inf
            entities = [*map(own_parts, self._entities(page, path))]
            yield Page(entities, left if _next_page(page) else 0, total)

    def search(self, type_: str, query: Json | None, *, most: int) -> Json:
        """Return what the server's index finds of a type, named by fully qualified names.

        Without a query it finds everything.
        """
        params: dict[str, str | int | bool | list[str]] = {
            "q": "*",
            "index": f"{type_}_search_index",
            "from": 0,
            "size": most,
            "track_total_hits": "true",
            "include_source_fields": ["fullyQualifiedName"],
        }
        if query is not None:
            params["query_filter"] = orjson.dumps({"query": query}).decode()
        path = "search/query"
        return self._told("hits", self._object("GET", path, params=params), path=path)

    def declare(self, type_: str, stash: str | None = None) -> None:
        """Make the custom properties known that hold a stash; without them a write is refused."""
        names = {STASH_KEY, *stash_parts(stash)}
        if names <= self._declared.get(type_, {}).keys():
            return
        with self._declaring:
            for name in sorted(names - self.properties(type_).keys()):
                self._declare(type_, name)

    def _declare(self, type_: str, name: str) -> None:
        text = self._object("GET", "metadata/types/name/string")
        body: Json = {
            "name": name,
            "description": "What OpenMetadata cannot hold of this. Written by Lumos.",
            "propertyType": {"id": text["id"], "type": "type"},
        }
        self._send("PUT", f"metadata/types/{self._types[type_]['id']}", body=body)
        self._declared[type_] = {**self._declared[type_], name: "string"}

    def properties(self, type_: str) -> Mapping[str, str]:
        """Return the custom properties that a type of entity has, each with its own type."""
        if type_ in self._declared:
            return self._declared[type_]
        with self._declaring:
            known = self._object("GET", f"metadata/types/name/{type_}", fields="customProperties")
            properties = known.get("customProperties")
            given = properties if isinstance(properties, list) else []
            self._types[type_] = known
            self._declared[type_] = {
                str(each.get("name")): str(kind.get("name"))
                for each in given
                if isinstance(each, dict) and isinstance(kind := each.get("propertyType"), dict)
            }
        return self._declared[type_]

    def lineage(self, type_: str, entity: Json) -> Json:
        """Return the direct neighbours of an entity, from the database and not from the index."""
        name = quote(str(entity["fullyQualifiedName"]), safe="")
        params = {"upstreamDepth": 1, "downstreamDepth": 1}
        return self._object("GET", f"lineage/{type_}/name/{name}", params=params)

    def put_edge(self, edge: Json) -> None:
        """Add an edge, or replace what is said of it."""
        self._send("PUT", "lineage", body={"edge": edge})

    def delete_edge(self, upstream: Json, downstream: Json) -> None:
        """Remove the edge between two references; one that is not there is no error."""
        ends = f"{upstream['type']}/{upstream['id']}/{downstream['type']}/{downstream['id']}"
        self._send("DELETE", f"lineage/{ends}", ok=_GONE)

    def add_result(self, test: str, body: Json) -> None:
        """Add how a test case came out at one time.

        Raises:
            PlatformConflictError: nobody knows whether it was added.
        """
        path = f"dataQuality/testCases/testCaseResults/{quote(test, safe='')}"
        with _reading_again():
            self._send("POST", path, body=body)

    def put_profile(self, table: Json, body: Json) -> None:
        """Add figures of one time to a table."""
        self._send("PUT", f"tables/{table['id']}/tableProfile", body=body)

    def latest_profile(self, name: str) -> Json | None:
        """Return a table with the latest figures of it and of its columns."""
        path = f"tables/{quote(name, safe='')}/tableProfile/latest"
        try:
            return self._object("GET", path, params={"includeColumnProfile": "true"})
        except PlatformNotFoundError:
            return None

    def profiles_between(
        self, name: str, kind: str, *, window: tuple[int, int]
    ) -> Sequence[JsonValue]:
        """Return the profiles of a kind that a table has of some time; they come all at once."""
        path = f"tables/{quote(name, safe='')}/{kind}"
        params = {"startTs": window[0], "endTs": window[1]}
        try:
            return self._entities(self._object("GET", path, params=params), path)
        except PlatformNotFoundError:
            return []

    @property
    def place(self) -> str:
        """For messages: the catalog, and where it is."""
        return self._http.place

    def version(self) -> JsonValue | None:
        """Return what the server says of its version."""
        path = "system/version"
        return self._told("version", self._object("GET", path), path=path)["version"]

    def _told(self, what: str, answer: Json, *, path: str) -> Json:
        if what not in answer:
            raise PlatformAnswerError(
                f"{self._http.where('GET', path)}: the answer has no {what}",
                hint="check that the URL is that of an OpenMetadata server",
            )
        return answer

    def close(self) -> None:
        self._closed = True
        self._http.close()

    def _found(self, path: str, *, fields: str | None) -> Json | None:
        try:
            return own_parts(self._object("GET", path, fields=fields))
        except PlatformNotFoundError:
            return None

    def _object(
        self,
        method: str,
        path: str,
        *,
        fields: str | None = None,
        params: Params | None = None,
        body: object = None,
    ) -> Json:
        asked = {**(params or {}), **({"fields": fields} if fields else {})}
        answer = self._send(method, path, params=asked, body=body)
        if not isinstance(answer, dict):
            raise PlatformAnswerError(
                f"{self._http.where(method, path)}: the answer is no entity",
                hint="check that the URL is that of an OpenMetadata server",
            )
        return answer

    def _send(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: object = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        ok: tuple[int, ...] | None = None,
    ) -> JsonValue | None:
        self._require_open()
        return self._http.json(
            method,
            path,
            params=params or None,
            body=body,
            content_type=content_type,
            headers=headers,
            ok=ok or OK,
        )

    def _entities(self, page: JsonValue, path: str) -> builtins.list[Json]:
        """Return the entities of a page; a page without them is not the end of a list.

        Raises:
            PlatformAnswerError: they are no list of objects.
        """
        with answer_to(self._http.where("GET", path)):
            return objects_at(as_object(page, "answer"), "data")

    def _require_open(self) -> None:
        if self._closed:
            raise PlatformUnavailableError("openmetadata: the connection is closed already")


@contextmanager
def _reading_again() -> Iterator[None]:
    """Turn a failure that leaves open what was done into one that is met by reading again.

    A change may have been made though its answer was lost. Sent twice it might be refused, as what
    it removes is gone, so it is made anew from what is there.
    """
    try:
        yield
    except (PlatformUnavailableError, PlatformAnswerError) as error:
        raise PlatformConflictError(error.message, hint=error.hint) from error


def _total(page: JsonValue) -> int | None:
    total = find_value(page, "paging", "total")
    return total if isinstance(total, int) else None


def _next_page(page: JsonValue) -> dict[str, str | int | bool] | None:
    after = text_at(object_at(as_object(page, "answer"), "paging"), "after")
    return {"after": after} if after else None
