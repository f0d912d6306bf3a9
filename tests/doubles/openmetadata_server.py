"""A stand-in for an OpenMetadata server, on loopback and in memory.

It is no OpenMetadata: it was written from the behaviour of the real one, so that what surprises
people there surprises them here. Owners, tags and custom properties are left out of answers that
do not ask for them; a `PUT` on what is there fills gaps and overwrites nothing; descriptions lose
HTML; custom properties have to be declared; parents and references have to exist; names with
`::`, `>`, quotes or control characters are refused; users' names are short and in lower case and
their addresses unique; a patch needs its media type, and a weak version to be conditional. The
default rules hold (`openmetadata_rules.py`), and who asks is a bot unless the token is that of an
administrator.
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from typing_extensions import override

from doubles.openmetadata_bulk import put_all
from doubles.openmetadata_index import found
from doubles.openmetadata_profiles import between, profiled
from doubles.openmetadata_rules import ADMIN, BOT, with_inherited
from doubles.openmetadata_store import (
    KNOWN,
    ON_REQUEST,
    Json,
    Message,
    OpenMetadataStore,
)
from doubles.openmetadata_tests import RefusedError
from lumos.core.platform.http import DEFAULT_RETRIES, RetryPolicy
from lumos.core.platform.impl.openmetadata.handler import OpenMetadataHandler
from lumos.core.platform.impl.openmetadata.settings import OpenMetadataSettings

TOKEN = "token-of-the-double"
"""The token of a bot."""
ADMIN_TOKEN = "token-of-an-administrator"
_CALLERS = {f"Bearer {TOKEN}": BOT, f"Bearer {ADMIN_TOKEN}": ADMIN}
_BASE = "/api/v1/"
_LARGEST = 16 * 1024 * 1024


class _Answer(NamedTuple):
    """An answer with a status of its own."""

    status: int
    content: object


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    store: OpenMetadataStore

    @override
    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer("GET")

    def do_PUT(self) -> None:
        self._answer("PUT")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_PATCH(self) -> None:
        self._answer("PATCH")

    def do_DELETE(self) -> None:
        self._answer("DELETE")

    def _answer(self, method: str) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        sent = self.rfile.read(min(length, _LARGEST))
        try:
            caller = _CALLERS.get(self.headers.get("Authorization") or "")
            if caller is None:
                raise RefusedError(401)
            parts = urlsplit(self.path)
            if not parts.path.startswith(_BASE):
                raise RefusedError(404)
            path = parts.path[len(_BASE) :]
            query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
            body = json.loads(sent) if sent else None
            with self.store.lock:
                self.store.caller = caller
                self.store.requests.append((method, path))
                if (method, path) == ("GET", "search/query"):
                    answer: object = found(self.store.searched(), query)
                else:
                    answer = self._route(method, path, query, body)
                status, content = answer if isinstance(answer, _Answer) else _Answer(200, answer)
                if self.store.recorded is not None:
                    kept = copy.deepcopy(content)
                    self.store.recorded.append(Message(method, path, query, body, kept))
            self._send(status, content)
        except RefusedError as error:
            self._send(error.status, {"code": error.status, "message": str(error)})

    def _send(self, status: int, answer: object) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def _route(self, method: str, path: str, query: dict[str, str], body: Any) -> object:
        store = self.store
        match [method, *path.split("/")]:
            case ["GET", "system", "version"]:
                return {"version": store.version}
            case ["GET", "metadata", "types", "name", name]:
                if name not in store.types:
                    raise RefusedError(404)
                return store.types[name]
            case ["PUT", "metadata", "types", identity]:
                return store.declare(identity, body)
            case ["GET", "lineage", type_, "name", name]:
                return store.lineage(f"{type_}s", unquote(name))
            case ["PUT", "lineage"]:
                store.put_edge(body["edge"])
                return {}
            case ["DELETE", "lineage", _, source, _, target]:
                if store.edges.pop((source, target), None) is None:
                    raise RefusedError(404)
                return {}
            case ["POST", "dataQuality", "testCases", "testCaseResults", name]:
                return _Answer(201, store.add_result(unquote(name), body))
        return self._profile_route(method, path, query, body)

    def _profile_route(self, method: str, path: str, query: dict[str, str], body: Any) -> object:
        store = self.store
        match [method, *path.split("/")]:
            case ["PUT", "tables", identity, "tableProfile"]:
                return _shown(store.put_profile(identity, body), None)
            case ["GET", "tables", name, "tableProfile", "latest"]:
                table = _shown(store.by_name("tables", unquote(name)), "columns")
                return profiled(table, store.profiles.get(table["id"], []))
            case ["GET", "tables", name, ("tableProfile" | "systemProfile") as kind]:
                table = store.by_name("tables", unquote(name))
                return between(store.profiles.get(table["id"], []), kind, query)
        return self._entity_route(method, path, query, body)

    def _entity_route(self, method: str, path: str, query: dict[str, str], body: Any) -> object:
        store = self.store
        collection = next((each for each in KNOWN if f"{path}/".startswith(f"{each}/")), None)
        if collection is None:
            raise RefusedError(404)
        rest = path[len(collection) + 1 :]
        if method == "PUT" and not rest:
            entity, created = store.put(collection, body)
            return _Answer(201 if created else 200, _shown(entity, None))
        if method == "POST" and not rest:
            return _Answer(201, _shown(store.post(collection, body), None))
        if method == "PUT" and rest == "bulk" and collection == "tables":
            return put_all(store, collection, body)
        if method == "GET" and rest.startswith("name/"):
            name = unquote(rest.removeprefix("name/"))
            one = with_inherited(store, collection, store.by_name(collection, name))
            return _shown(one, query.get("fields", ""))
        if method == "GET" and not rest:
            return self._page(collection, query)
        if method == "PATCH":
            if self.headers.get("Content-Type") != "application/json-patch+json":
                raise RefusedError(415)
            match = self.headers.get("If-Match") or ""
            return _shown(store.patch(collection, rest, operations=body, match=match), None)
        if method == "DELETE":
            entity = dict(store.by_id(rest)[1])
            store.delete(collection, rest, for_good=query.get("hardDelete") == "true")
            return _shown(entity, "")
        raise RefusedError(405)

    def _page(self, collection: str, query: dict[str, str]) -> Json:
        entities = self.store.entities[collection]
        names = sorted(
            name
            for name, entity in entities.items()
            if not entity.get("deleted")
            and _is_about(entity, query)
            and all(
                query.get(above) in {None, entity.get(above, {}).get("fullyQualifiedName")}
                for above in ("service", "databaseSchema")
            )
        )
        rest = [name for name in names if name > query.get("after", "")]
        page = rest[: int(query.get("limit", 10))]
        paging: Json = {"after": page[-1]} if len(page) < len(rest) else {}
        paging["total"] = len(names)
        fields = query.get("fields", "")
        whole = [with_inherited(self.store, collection, entities[name]) for name in page]
        return {"data": [_shown(each, fields) for each in whole], "paging": paging}


def _is_about(entity: Json, query: dict[str, str]) -> bool:
    """Tell whether a test case is one of a table or, where all are asked for, of its columns."""
    name = query.get("entityFQN")
    about = entity.get("entityFQN")
    below = query.get("includeAllTests") == "true" and str(about).startswith(f"{name}.")
    return name is None or about == name or below


def _shown(entity: Json, fields: str | None) -> Json:
    """Return an entity with what every answer has, and what was asked for."""
    hidden = ON_REQUEST - (ON_REQUEST if fields is None else set(fields.split(",")))
    return {key: value for key, value in entity.items() if key not in hidden}


@contextmanager
def openmetadata_server() -> Iterator[tuple[str, OpenMetadataStore]]:
    """Run a double on a free port of loopback; give its URL and what it holds."""
    store = OpenMetadataStore()
    handler = type("Handler", (_Handler,), {"store": store})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", store
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def openmetadata_at(
    url: str,
    *,
    token: str = TOKEN,
    retries: RetryPolicy = DEFAULT_RETRIES,
    entity_rules: bool = True,
) -> OpenMetadataHandler:
    """Return an adapter for the double at a URL."""
    given = {"server": url, "auth_token": token, "page_size": 3, "entity_rules": entity_rules}
    settings = OpenMetadataSettings.from_json(given)
    return OpenMetadataHandler.at(settings, retries=retries)
