"""A double of the Atlas server: its REST interface of version 2 over real HTTP on the loopback.

It is no Atlas. It answers the requests that the adapter sends, and refuses what Atlas refuses.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import RLock, Thread
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit

from pydantic import JsonValue
from typing_extensions import override

from doubles.atlas_store import NOT_ALLOWED, AtlasRefusalError, AtlasStore, Json, obj, objs
from lumos.core.platform.impl.atlas.handler import AtlasHandler

Params = dict[str, list[str]]
Answer = tuple[int, JsonValue | None]
Route = Callable[["AtlasServer", tuple[str, ...], Params, JsonValue], Answer]
_BASE = "/api/atlas/"
STEWARD = "steward"
"""A user with the rights of Atlas's own role DATA_STEWARD: no types, no labels, no deletions."""
HIDDEN = "forbidden"
"""Entities with this word in their qualified names may not be read or written by the steward."""
_OF_ADMINISTRATORS = (
    "v2/types/typedefs",
    "admin/purge",
    "/labels",
    "/businessmetadata",
)
_ROUTES: list[tuple[str, re.Pattern[str], Route]] = []


def route(method: str, path: str) -> Callable[[Route], Route]:
    """Let a function answer the requests of a method and path; `{}` is one part of it."""
    pattern = re.compile(path.replace("{}", "([^/]+)") + r"\Z")

    def added(answer: Route) -> Route:
        _ROUTES.append((method, pattern, answer))
        return answer

    return added


class AtlasServer:
    """The double; use it as a context, and stop it to make it unreachable."""

    def __init__(
        self, *, user: str = "admin", password: str = "admin", markers: bool = True
    ) -> None:
        self.store = AtlasStore()
        self.markers = markers
        self.version = "2.3.0"
        self.older = False
        self.strict = False
        """Whether a request for several names finds nothing where one of them is not there."""
        self.requests: list[tuple[str, str]] = []
        self.lock = RLock()
        self.users = {
            "Basic " + b64encode(f"{name}:{password}".encode()).decode(): name
            for name in (user, STEWARD)
        }
        handler = type("Handler", (_Handler,), {"atlas": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._stopped = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def reset(self) -> None:
        """Forget everything."""
        with self.lock:
            self.store = AtlasStore()
            self.requests.clear()

    def stop(self) -> None:
        if not self._stopped:
            self._stopped = True
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def answer(self, method: str, target: str, body: bytes, *, user: str) -> Answer:
        parts = urlsplit(target)
        path = parts.path.removeprefix(_BASE)
        self.requests.append((method, path))
        for known, pattern, answer in _ROUTES:
            if known == method and (match := pattern.match(path)):
                values = tuple(unquote(each) for each in match.groups())
                params = parse_qs(parts.query, keep_blank_values=True)
                with self.lock:
                    try:
                        self.store.hidden = HIDDEN if user == STEWARD else None
                        self._require_right(method, path)
                        return answer(self, values, params, json.loads(body) if body else None)
                    except AtlasRefusalError as refusal:
                        code = {"errorCode": refusal.code, "errorMessage": refusal.message}
                        return refusal.status, {**code}
        return 404, None

    def _require_right(self, method: str, path: str) -> None:
        """Refuse what only administrators may do."""
        if self.store.hidden is None or method == "GET":
            return
        deletes = method == "DELETE" and path == "v2/entity/bulk"
        if deletes or path.endswith(_OF_ADMINISTRATORS):
            raise AtlasRefusalError(403, NOT_ALLOWED)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body leave in one packet
    disable_nagle_algorithm = True
    atlas: AtlasServer

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        user = self.atlas.users.get(self.headers.get("Authorization") or "")
        if user is None:
            status, content = 401, None
        else:
            status, content = self.atlas.answer(self.command, self.path, body, user=user)
        raw = b"" if content is None else json.dumps(content).encode()
        with suppress(ConnectionError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json;charset=utf-8")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""


def atlas_at(server: AtlasServer, **settings: JsonValue) -> AtlasHandler:
    """Return an adapter that speaks to a double, and does not try again."""
    given: Json = {"url": server.url, "username": "admin", "password": "admin", "attempts": 1}
    return AtlasHandler.from_config({**given, **settings})


def _paged(items: list[Json], params: Params) -> Answer:
    limit, offset = (int(params.get(name, ["-1"])[0]) for name in ("limit", "offset"))
    start = max(offset, 0)
    return 200, [*(items[start : start + limit] if limit >= 0 else items[start:])]


@route("GET", "admin/version")
def _version(server: AtlasServer, _: tuple[str, ...], params: Params, body: JsonValue) -> Answer:
    return 200, {"Name": "apache-atlas", "Version": server.version, "Revision": "release"}


@route("GET", "v2/types/typedefs/headers")
def _type_headers(
    server: AtlasServer, _: tuple[str, ...], params: Params, body: JsonValue
) -> Answer:
    types = server.store.types.values()
    listed = [each for each in types if each["category"] != "BUSINESS_METADATA"]
    return 200, [{"name": each["name"], "category": each["category"]} for each in listed]


@route("GET", "v2/types/typedefs")
def _typedefs(server: AtlasServer, _: tuple[str, ...], params: Params, body: JsonValue) -> Answer:
    kind = params["type"][0].upper()
    part = {"CLASSIFICATION": "classificationDefs", "BUSINESS_METADATA": "businessMetadataDefs"}
    found = [each for each in server.store.types.values() if each["category"] == kind]
    return 200, {part[kind]: [*found]}


@route("GET", "v2/types/classificationdef/name/{}")
@route("GET", "v2/types/entitydef/name/{}")
def _typedef(server: AtlasServer, path: tuple[str, ...], params: Params, body: JsonValue) -> Answer:
    if path[0] not in server.store.types:
        raise AtlasRefusalError(404, "ATLAS-404-00-001")
    return 200, server.store.types[path[0]]


@route("POST", "v2/types/typedefs")
def _create_types(
    server: AtlasServer, _: tuple[str, ...], params: Params, body: JsonValue
) -> Answer:
    server.store.define(obj(body), anew=True)
    return 200, body


@route("PUT", "v2/types/typedefs")
def _update_types(
    server: AtlasServer, _: tuple[str, ...], params: Params, body: JsonValue
) -> Answer:
    server.store.define(obj(body), anew=False)
    return 200, body


@route("GET", "v2/entity/uniqueAttribute/type/{}")
def _by_name(server: AtlasServer, path: tuple[str, ...], params: Params, body: JsonValue) -> Answer:
    if path[0] not in server.store.types:
        raise AtlasRefusalError(400, "ATLAS-400-00-014")
    found = server.store.find(path[0], params["attr:qualifiedName"][0])
    if found is None:
        raise AtlasRefusalError(404, "ATLAS-404-00-009")
    guid = str(found["guid"])
    server.store.require_readable([guid])
    return 200, {
        "entity": server.store.shown(guid),
        "referredEntities": server.store.referred(guid),
    }


@route("GET", "v2/entity/bulk/uniqueAttribute/type/{}")
def _by_names(
    server: AtlasServer, path: tuple[str, ...], params: Params, body: JsonValue
) -> Answer:
    if server.older:
        return 404, None
    if path[0] not in server.store.types:
        raise AtlasRefusalError(400, "ATLAS-400-00-014")
    names = [values[0] for key, values in params.items() if key.startswith("attr_")]
    found = [held for name in names if (held := server.store.find(path[0], name)) is not None]
    if server.strict and len(found) < len(names):
        raise AtlasRefusalError(404, "ATLAS-404-00-009")
    guids = [str(each["guid"]) for each in found]
    server.store.require_readable(guids)
    referred: Json = {}
    for guid in guids:
        referred |= server.store.referred(guid)
    return 200, {"entities": [server.store.shown(guid) for guid in guids],
                 "referredEntities": referred}  # fmt: skip


@route("GET", "v2/entity/bulk")
def _bulk(server: AtlasServer, _: tuple[str, ...], params: Params, body: JsonValue) -> Answer:
    guids = params["guid"]
    server.store.require_readable(guids)
    referred: Json = {}
    for guid in guids:
        referred |= server.store.referred(guid)
    return 200, {"entities": [server.store.shown(guid) for guid in guids],
                 "referredEntities": referred}  # fmt: skip


@route("POST", "v2/entity/bulk")
def _put(server: AtlasServer, _: tuple[str, ...], params: Params, body: JsonValue) -> Answer:
    return 200, server.store.put(objs(obj(body).get("entities")))


@route("DELETE", "v2/entity/bulk")
def _delete(server: AtlasServer, _: tuple[str, ...], params: Params, body: JsonValue) -> Answer:
    server.store.delete(params["guid"])
    return 200, {"mutatedEntities": {}}


@route("PUT", "admin/purge")
def _purge(server: AtlasServer, _: tuple[str, ...], params: Params, body: JsonValue) -> Answer:
    server.store.purge(str(each) for each in (body if isinstance(body, list) else []))
    return 200, {"mutatedEntities": {}}


@route("POST", "v2/entity/guid/{}/classifications")
def _classify(
    server: AtlasServer, path: tuple[str, ...], params: Params, body: JsonValue
) -> Answer:
    server.store.classify(path[0], objs(body))
    return 204, None


@route("DELETE", "v2/entity/guid/{}/classification/{}")
def _declassify(
    server: AtlasServer, path: tuple[str, ...], params: Params, body: JsonValue
) -> Answer:
    server.store.declassify(path[0], path[1])
    return 204, None


@route("POST", "v2/entity/guid/{}/labels")
def _labels(server: AtlasServer, path: tuple[str, ...], params: Params, body: JsonValue) -> Answer:
    server.store.set_labels(path[0], body)
    return 204, None


@route("POST", "v2/entity/guid/{}/businessmetadata")
def _business(
    server: AtlasServer, path: tuple[str, ...], params: Params, body: JsonValue
) -> Answer:
    if not body:
        raise AtlasRefusalError(400, "ATLAS-400-00-029")
    server.store.set_business(path[0], obj(body))
    return 204, None


@route("POST", "v2/search/basic")
def _search(server: AtlasServer, _: tuple[str, ...], params: Params, body: JsonValue) -> Answer:
    return 200, server.store.search(obj(body), markers=server.markers)


@route("GET", "v2/glossary")
def _glossaries(server: AtlasServer, _: tuple[str, ...], params: Params, body: JsonValue) -> Answer:
    return _paged([*server.store.glossaries.values()], params)


@route("POST", "v2/glossary")
def _new_glossary(
    server: AtlasServer, _: tuple[str, ...], params: Params, body: JsonValue
) -> Answer:
    return 200, server.store.create_glossary(obj(body))


@route("GET", "v2/glossary/{}/categories")
def _categories(
    server: AtlasServer, path: tuple[str, ...], params: Params, body: JsonValue
) -> Answer:
    return _paged(objs(server.store.glossaries[path[0]].get("categories")), params)


@route("GET", "v2/glossary/{}/terms")
def _terms(server: AtlasServer, path: tuple[str, ...], params: Params, body: JsonValue) -> Answer:
    return _paged(server.store.terms_of(path[0]), params)


@route("POST", "v2/glossary/term")
def _new_term(server: AtlasServer, _: tuple[str, ...], params: Params, body: JsonValue) -> Answer:
    return 200, server.store.put_term(obj(body), None)


@route("GET", "v2/glossary/term/{}")
def _term(server: AtlasServer, path: tuple[str, ...], params: Params, body: JsonValue) -> Answer:
    if path[0] not in server.store.terms:
        raise AtlasRefusalError(404, "ATLAS-404-00-005")
    return 200, server.store.terms[path[0]]


@route("PUT", "v2/glossary/term/{}")
def _change_term(
    server: AtlasServer, path: tuple[str, ...], params: Params, body: JsonValue
) -> Answer:
    return 200, server.store.put_term(obj(body), path[0])
