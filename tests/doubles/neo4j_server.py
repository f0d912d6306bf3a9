"""A double of Neo4j's HTTP interface: it understands the few queries that the adapter sends.

It is no Neo4j. It keeps nodes and relations in lists and answers by the shape of a query.
"""

from __future__ import annotations

import json
import re
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pydantic import JsonValue
from typing_extensions import override

Json = dict[str, JsonValue]
USER, PASSWORD = "neo4j", "secret-of-neo4j"
_NAME = r"`((?:[^`]|``)+)`"
_NODES = re.compile(rf"MATCH \(n:{_NAME}\) WHERE n\.key > \$after RETURN n\.key, properties\(n\)")
_RELATIONS = re.compile(rf"MATCH \(a:{_NAME}\)-\[r:{_NAME}\]->\(b:{_NAME}\) WHERE")
_OUTGOING = re.compile(rf"MATCH \(a:{_NAME}\)-\[r\]->\(b\) RETURN")
_OF_KIND = re.compile(rf"MATCH \(a\)-\[r:{_NAME}\]->\(b\) RETURN")


class Graph:
    """Nodes by key, and relations between them."""

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[str, Json]] = {}
        self.relations: list[tuple[str, str, str, Json]] = []
        self.version = "4.4.36"
        self.tx_path = "/db/neo4j/tx/commit"
        self.queries: list[str] = []

    def node(self, label: str, key: str, **properties: JsonValue) -> None:
        self.nodes[key] = (label, {"key": key, **properties})

    def relate(self, start: str, kind: str, end: str, **properties: JsonValue) -> None:
        self.relations.append((start, kind, end, dict(properties)))

    def answer(self, statement: str, given: Json) -> list[list[JsonValue]]:
        self.queries.append(statement)
        if statement == "RETURN 1":
            return [[1]]
        if statement == "CALL db.labels()":
            return [[label] for label in sorted({label for label, _ in self.nodes.values()})]
        if statement == "CALL db.relationshipTypes()":
            return [[kind] for kind in sorted({each[1] for each in self.relations})]
        limit = int(str(given["limit"]))
        if match := _NODES.match(statement):
            return self._of_label(match[1], str(given["after"]))[:limit]
        if match := _RELATIONS.match(statement):
            after = str(given["start"]), str(given["end"])
            return self._between(*match.groups(), after=after)[:limit]
        skip = int(str(given["skip"]))
        if match := _OUTGOING.match(statement):
            rows = self._rows(lambda each: self.nodes[each[0]][0] == match[1])
        else:
            match = _OF_KIND.match(statement)
            assert match is not None, statement
            rows = self._rows(lambda each: each[1] == match[1])
        return rows[skip : skip + limit]

    def _of_label(self, label: str, after: str) -> list[list[JsonValue]]:
        keys = sorted(key for key, (kind, _) in self.nodes.items() if kind == label)
        return [[key, self.nodes[key][1]] for key in keys if key > after]

    def _between(
        self, start: str, kind: str, end: str, *, after: tuple[str, str]
    ) -> list[list[JsonValue]]:
        chosen = {
            (a, b): told
            for a, type_, b, told in self.relations
            if (self.nodes[a][0], type_, self.nodes[b][0]) == (start, kind, end)
        }
        found = [(a, b, chosen[a, b]) for a, b in sorted(chosen) if (a, b) > after]
        return [[a, b, told, self.nodes[b][1]] for a, b, told in found]

    def _rows(self, wanted: object) -> list[list[JsonValue]]:
        assert callable(wanted)
        chosen = sorted(each[:3] for each in self.relations if wanted(each))
        told = {each[:3]: each[3] for each in self.relations}
        return [[*each, told[each]] for each in chosen]


@contextmanager
def neo4j_server(graph: Graph) -> Iterator[str]:
    """Run a double on a free port of the loopback, and give its URL."""
    handler = type("Handler", (_Handler,), {"graph": graph})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    graph: Graph

    def do_GET(self) -> None:
        self._send(200, {"neo4j_version": self.graph.version})

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        expected = b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.headers.get("Authorization") != f"Basic {expected}":
            code = "Neo.ClientError.Security.Unauthorized"
            self._send(401, {"errors": [{"code": code, "message": "no"}]})
        elif self.path != self.graph.tx_path:
            self._send(404, None)
        else:
            (statement,) = sent["statements"]
            rows = self.graph.answer(statement["statement"], statement["parameters"])
            data: list[JsonValue] = [{"row": row, "meta": []} for row in rows]
            self._send(200, {"results": [{"columns": [], "data": data}], "errors": []})

    def _send(self, status: int, answer: JsonValue) -> None:
        content = b"" if answer is None else json.dumps(answer).encode()
        with suppress(ConnectionError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""
