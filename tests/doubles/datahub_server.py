"""A stand-in for DataHub's metadata service: real HTTP on loopback, entities in memory.

It is written from the source of DataHub's server and is no DataHub; the page server-behaviour.md
of the docs names the classes. What it takes over on purpose are the traps: writes are asynchronous
unless asked otherwise, aspects have versions and conditional headers, some of which have no effect,
indexes lag behind, unknown aspects are dropped without a word and malformed URNs refused, the
server adds aspects and fields of its own, and a token may not do everything.
"""

from __future__ import annotations

import json
import re
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit

from typing_extensions import override

from doubles.datahub_aspects import ASPECTS
from doubles.datahub_rules import RefusalError, check_definition, check_properties, mutated
from doubles.text_index import QuerySyntaxError, holds, terms_of

LARGEST_REQUEST = 16_000_000
LONGEST_URN = 512
LAG = 5
ACTOR = "urn:li:corpuser:lumos-bot"
TIMESERIES = {"datasetProfile", "operation", "datasetUsageStatistics", "assertionRunEvent"}
_URN_KINDS = {name.lower() for name in ASPECTS}
Json = dict[str, Any]


@dataclass
class Fault:
    """What is answered instead of the next requests."""

    status: int
    times: int = 1
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b'{"error":"said so"}'
    content_type: str = "application/json"
    after_doing: bool = False
    """The request is carried out, and its answer lost."""


class Indexed(NamedTuple):
    """What search and graph know of an entity."""

    edges: frozenset[tuple[str, str]]
    removed: bool


def unauthorized(what: str) -> RefusalError:
    return RefusalError(403, f"{ACTOR} is unauthorized to {what}.")


class DataHubDouble:
    """What the server holds, and what tests may do to it."""

    def __init__(self, *, token: str | None = None, version: str = "v1.3.0") -> None:
        self.token = token
        self.version = version
        self.stored: dict[str, dict[str, tuple[Any, int]]] = {}
        self.series: dict[str, dict[str, dict[int, Any]]] = {}
        self.index: dict[str, Indexed] = {}
        self.lag = LAG
        """After how many requests a write shows in search and graph."""
        self.lists_registry = False
        """Whether the token has the privilege MANAGE_SYSTEM_OPERATIONS."""
        self.forbidden: set[str] = set()
        """URNs that the token may not write; one of them refuses the whole request."""
        self.forbidden_aspects: set[tuple[str, str]] = set()
        """Aspects that the token may not write, each with the kind of entity."""
        self.hidden: set[str] = set()
        """URNs that the token may not read; one of them refuses the whole request."""
        self.requests: list[tuple[str, str, Json | None]] = []
        self.faults: list[Fault] = []
        self.hidden_aspects: set[tuple[str, str]] = set()
        """Aspects that the token may not read: they are left out without a word."""
        self.unknown_aspects: set[tuple[str, str]] = set()
        self.knows_slices = True
        self.fails_at_slices = False
        """As with Elasticsearch 7."""
        self.tells_versions = True
        self._later: list[tuple[str, Json]] = []
        self._indexing: list[tuple[int, str]] = []
        self._answered = 0
        self.lock = threading.RLock()

    def clear(self) -> None:
        """Forget everything."""
        with self.lock:
            self.stored.clear()
            self.series.clear()
            self.index.clear()
            self.requests.clear()
            self.faults.clear()
            self._later.clear()
            self._indexing.clear()
            for rule in (
                self.forbidden, self.forbidden_aspects, self.hidden, self.hidden_aspects,
            ):  # fmt: skip
                rule.clear()
            self.lists_registry = self.fails_at_slices = False
            self.lag = LAG

    def settle(self) -> None:
        """Do what was accepted for later, and bring the indexes up to date."""
        with self.lock:
            waiting, self._later = self._later, []
            for kind, entity in waiting:
                self._write(kind, entity)
            self._indexing.clear()
            for urn in {*self.stored, *self.index}:
                self._index(urn)

    def put(self, urn: str, **aspects: object) -> None:
        """Write aspects as somebody else would."""
        body = {"urn": urn, **{name: {"value": value} for name, value in aspects.items()}}
        with self.lock:
            self._write(urn.split(":")[2].lower(), body)
            self._index(urn)

    def answer(self, method: str, target: str, body: Any) -> tuple[int, Any]:
        """Return status and document of the answer to a request."""
        parts = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        path = [unquote(step) for step in parts.path.strip("/").split("/")]
        with self.lock:
            self.requests.append((method, target, body))
            self._refresh()
            match method, path:
                case "GET", ["config"]:
                    return 200, {"versions": {"acryldata/datahub": {"version": self.version}}}
                case "GET", ["openapi", "v1", "registry", "models", "entity", "specifications"]:
                    if not self.lists_registry:
                        raise unauthorized("get the entity registry")
                    return 200, {"elements": self._specifications()}
                case "GET", ["openapi", "relationships", "v1", *_]:
                    return 200, self._related(parse_qs(parts.query))
                case "POST", ["openapi", "v3", "entity", "scroll"]:
                    return 200, self._scroll(body, query)
                case "POST", ["openapi", "v3", "entity", kind, "batchGet"]:
                    return 200, self._batch_get(kind, body, query)
                case "POST", ["openapi", "v3", "entity", kind]:
                    return self._collection(kind, body, query)
                case "DELETE", ["openapi", "v3", "entity", kind, urn, *aspect]:
                    return self._delete(kind, urn, aspect)
        raise RefusalError(404, "no such address")

    def _specifications(self) -> list[Json]:
        return [
            {
                "name": kind,
                "aspectSpecs": [
                    {"name": name}
                    for name in sorted(names)
                    if (kind, name) not in self.unknown_aspects
                ],
            }
            for kind, names in ASPECTS.items()
        ]

    def _refresh(self) -> None:
        """Bring the indexes up to what was written long enough ago."""
        self._answered += 1
        due = [urn for moment, urn in self._indexing if moment <= self._answered]
        self._indexing = [each for each in self._indexing if each[0] > self._answered]
        for urn in due:
            self._index(urn)

    def _collection(self, kind: str, body: Any, query: dict[str, str]) -> tuple[int, Any]:
        self._checked_kind(kind)
        known = [self._check(kind, entity) for entity in body]
        for entity in known:  # one that is forbidden refuses all of them
            named = {(kind, name) for name in entity}
            if entity["urn"] in self.forbidden or named & self.forbidden_aspects:
                raise unauthorized("CREATE entities")
            self._check_properties(entity)
        if query.get("async", "true") == "true":
            self._later.extend((kind, entity) for entity in known)
            return 202, [{"urn": entity["urn"]} for entity in known]
        for entity in known:  # refused as a whole: all conditions are tried first
            self._check_conditions(entity)
            if "propertyDefinition" in entity:
                check_definition(
                    self._values(), entity["urn"], entity["propertyDefinition"]["value"]
                )
        return 200, [self._write(kind, entity) for entity in known if len(entity) > 1]

    def _check(self, kind: str, entity: Json) -> Json:
        """Return what the server understands of an entity; unknown aspects are passed over."""
        if "urn" not in entity:
            raise RefusalError(400, "Missing `urn` field")
        self._checked_urn(kind, entity["urn"])
        known = {"urn": entity["urn"]}
        for name, aspect in entity.items():
            if name == "urn" or name not in ASPECTS[kind] or (kind, name) in self.unknown_aspects:
                continue
            if not isinstance(aspect, dict) or not isinstance(aspect.get("value"), dict):
                raise RefusalError(400, "Missing `value` field")
            known[name] = aspect
        return known

    def _check_properties(self, entity: Json) -> None:
        if "structuredProperties" in entity:
            value = entity["structuredProperties"]["value"]
            check_properties(self._values(), entity["urn"], value)

    def _values(self) -> dict[str, Json]:
        return {
            urn: {name: value for name, (value, _) in held.items()}
            for urn, held in self.stored.items()
            if urn.startswith(("urn:li:structuredProperty:", "urn:li:dataset:"))
        }

    def _check_conditions(self, entity: Json) -> None:
        held = self.stored.get(entity["urn"], {})
        for name, aspect in entity.items():
            expected = (
                (aspect.get("headers") or {}).get("If-Version-Match") if name != "urn" else None
            )
            if expected is not None and int(expected) != held.get(name, (None, -1))[1]:
                raise RefusalError(412, "Expected version differs from the actual one")

    def _write(self, kind: str, entity: Json) -> Json:
        """Write aspects, and return them as they are stored."""
        urn = entity["urn"]
        held = self.stored.setdefault(urn, {})
        if not held:
            held.update(_made_by_the_server(kind, urn))
        written: Json = {"urn": urn}
        at_once = False
        for name, aspect in entity.items():
            if name == "urn":
                continue
            headers = aspect.get("headers") or {}  # `If-None-Match` has no effect on an upsert
            at_once |= headers.get("X-DataHub-Sync-Index-Update") == "true"
            before, version = held.get(name, (None, 0))
            value = mutated(name, aspect["value"], before)
            written[name] = {"value": value}
            if name in TIMESERIES:
                self.series.setdefault(urn, {}).setdefault(name, {})[value["timestampMillis"]] = (
                    value
                )
            elif before != value:
                held[name] = (value, version + 1)
        if at_once:
            self._indexing.append((self._answered + self.lag, urn))
        return written

    def _index(self, urn: str) -> None:
        if urn not in self.stored:
            self.index.pop(urn, None)
            return
        held = self.stored[urn]
        edges: set[tuple[str, str]] = set()
        lineage = held.get("upstreamLineage", ({}, 0))[0]
        edges |= {("DownstreamOf", each["dataset"]) for each in lineage.get("upstreams", ())}
        info = held.get("assertionInfo", ({}, 0))[0]
        for value in info.values():
            if isinstance(value, dict) and {"entity", "dataset"} & value.keys():
                edges.add(("Asserts", value.get("entity") or value["dataset"]))
        status = held.get("status", ({}, 0))[0]
        self.index[urn] = Indexed(frozenset(edges), bool(status.get("removed")))

    def _related(self, query: dict[str, list[str]]) -> Json:
        urn, wanted = query["urn"][0], query["relationshipTypes"]
        start, count = int(query.get("start", ["0"])[0]), int(query.get("count", ["200"])[0])
        found = [
            {"relationshipType": kind, "urn": source}
            for source in sorted(self.index)
            if not self.index[source].removed
            for kind, target in sorted(self.index[source].edges)
            if target == urn and kind in wanted
        ]
        self._check_readable([urn, *(str(each["urn"]) for each in found)])
        page = found[start : start + count]
        return {"start": start, "count": len(page), "total": len(found), "entities": page}

    def _scroll(self, body: Json, query: dict[str, str]) -> Json:
        kinds = [self._checked_kind(kind.lower()) for kind in body["entities"]]
        hidden = query.get("includeSoftDelete", "false") != "true"
        after = query.get("scrollId", "")
        try:
            terms = terms_of(query.get("query", "*"))
        except QuerySyntaxError as error:
            raise RefusalError(400, "Failed to parse query") from error
        found = [
            urn
            for urn in sorted(self.index)
            if urn.split(":")[2].lower() in kinds
            and not (hidden and self.index[urn].removed)
            and (not terms or holds([urn, [*self.stored.get(urn, {}).values()]], terms))
        ]
        total = len(found)
        found = [urn for urn in found if urn > after]
        if "sliceMax" in query and self.fails_at_slices:
            raise RefusalError(500, "Internal server error occurred")
        if "sliceMax" in query and self.knows_slices:
            most = int(query["sliceMax"])
            found = [
                urn for urn in found if zlib.crc32(urn.encode()) % most == int(query["sliceId"])
            ]
        page = found[: int(query.get("count", "10"))]
        self._check_readable(page)
        aspects = body.get("aspects") or []
        read = (self._read(urn, aspects, query) for urn in page if urn in self.stored)
        entities = [entity for entity in read if len(entity) > 1]
        answer: Json = {"entities": entities, "totalCount": total}
        if len(page) < len(found):
            answer["scrollId"] = page[-1]
        return answer

    def _batch_get(self, kind: str, body: Any, query: dict[str, str]) -> list[Json]:
        found = []
        self._check_readable([wanted["urn"] for wanted in body])
        for wanted in body:
            self._checked_urn(self._checked_kind(kind), wanted["urn"])
            if wanted["urn"] in self.stored:
                read = self._read(wanted["urn"], [*(wanted.keys() - {"urn"})], query)
                if len(read) > 1:
                    found.append(read)
        return found

    def _read(self, urn: str, aspects: list[str], query: dict[str, str]) -> Json:
        entity: Json = {"urn": urn}
        told = query.get("systemMetadata") == "true" and self.tells_versions
        kind = urn.split(":")[2].lower()
        for name, (value, version) in self.stored[urn].items():
            if (kind, name) not in self.hidden_aspects and (not aspects or name in aspects):
                times = {"lastObserved": 1_705_314_600_000 + version}
                system = {"systemMetadata": {"version": str(version), **times}} if told else {}
                entity[name] = {"value": value, **system}
        for name, moments in self.series.get(urn, {}).items():
            if not aspects or name in aspects:
                entity[name] = {"value": moments[max(moments)]}
        return entity

    def _delete(self, kind: str, urn: str, aspect: list[str]) -> tuple[int, Any]:
        self._checked_urn(self._checked_kind(kind), urn)
        if urn in self.forbidden:
            raise unauthorized("DELETE entities")
        if aspect:
            self.stored.get(urn, {}).pop(aspect[0], None)
        else:
            self.stored.pop(urn, None)
            self.series.pop(urn, None)
        self._indexing.append((self._answered + self.lag, urn))
        return 200, None  # also where there was nothing

    def _check_readable(self, urns: list[str]) -> None:
        if not self.hidden.isdisjoint(urns):
            raise unauthorized("READ entities")

    def _checked_kind(self, kind: str) -> str:
        if kind not in _URN_KINDS:
            raise RefusalError(404, f"No entity {kind}")
        return kind

    def _checked_urn(self, kind: str, urn: str) -> None:
        broken = (
            not re.match(rf"urn:li:{kind}:\S", urn, re.IGNORECASE)
            or len(quote(urn, safe="")) > LONGEST_URN
            or urn != urn.strip()
            or "\u241f" in urn
            or urn.count("(") != urn.count(")")
            or (kind == "dataset" and not _DATASET.match(urn))
        )
        if broken:
            raise RefusalError(400, "Invalid urn")


_DATASET = re.compile(r"urn:li:dataset:\(urn:li:dataPlatform:[^,()]+,[^,()]+,[A-Z_]+\)\Z")


def _made_by_the_server(kind: str, urn: str) -> dict[str, tuple[Any, int]]:
    if kind != "dataset":
        return {next(name for name in ASPECTS[kind] if name.endswith("Key")): ({"id": urn}, 1)}
    platform, rest = urn[len("urn:li:dataset:(") : -1].split(",", 1)
    name, origin = rest.rsplit(",", 1)
    return {
        "datasetKey": ({"platform": platform, "name": name, "origin": origin}, 1),
        "browsePathsV2": ({"path": [{"id": "Default"}]}, 1),
        "dataPlatformInstance": ({"platform": platform}, 1),
    }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer in two packets waits for the client's acknowledgement in between
    double: DataHubDouble

    @override
    def log_message(self, format: str, *args: object) -> None:
        pass

    def _serve(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self._next_fault()
        if fault is not None and not fault.after_doing:
            self._send(fault.status, fault.body, fault.content_type, fault.headers)
            return
        status, body = self._answered(raw)
        if fault is not None:
            self._send(fault.status, fault.body, fault.content_type, fault.headers)
            return
        self._send(status, b"" if body is None else json.dumps(body).encode())

    def _next_fault(self) -> Fault | None:
        with self.double.lock:
            if not self.double.faults:
                return None
            fault = self.double.faults[0]
            fault.times -= 1
            if not fault.times:
                self.double.faults.pop(0)
            return fault

    def _answered(self, raw: bytes) -> tuple[int, Any]:
        expected = self.double.token
        if expected and self.headers.get("Authorization") != f"Bearer {expected}":
            return 401, {"message": "Unauthorized to perform this action."}
        if len(raw) > LARGEST_REQUEST:
            return 413, {"error": "too large"}
        try:
            return self.double.answer(self.command, self.path, json.loads(raw) if raw else None)
        except RefusalError as refusal:
            return refusal.status, {"error": str(refusal)}

    def _send(
        self,
        status: int,
        body: bytes,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = do_HEAD = _serve  # noqa: N815


@contextmanager
def datahub_double(
    *, token: str | None = None, version: str = "v1.3.0"
) -> Iterator[tuple[str, DataHubDouble]]:
    """Run a double on a free port; give its URL and what it holds."""
    double = DataHubDouble(token=token, version=version)
    handler = type("Handler", (_Handler,), {"double": double})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", double
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
