"""The Neo4j behind an Amundsen, asked over HTTP, page by page, and never changed."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.errors import (
    PlatformAnswerError,
    PlatformAuthError,
    PlatformError,
    PlatformNotFoundError,
    PlatformUnavailableError,
)
from lumos.core.json_reading import as_object, list_at, objects_at
from lumos.core.platform.http import CatalogHttp, RetryPolicy
from lumos.core.platform.login import NOBODY, PASSWORD
from lumos.core.platform.server_version import usable_version
from lumos.core.platform.unreadable import answer_to

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.amundsen.settings import AmundsenSettings

PAGE: Final = 2_000
LEAST_VERSION: Final = (3, 5)
_OLD_PATH: Final = "db/data/transaction/commit"


class Relation(NamedTuple):
    """A relation between two kinds of nodes."""

    start: str
    kind: str
    end: str


class Related(NamedTuple):
    """Two nodes by their keys, what the relation says, and what its end says."""

    start: str
    end: str
    properties: Json
    end_properties: Json


class Neo4jGraph:
    """Nodes and relations by kind, each in the order of keys."""

    def __init__(self, settings: AmundsenSettings, *, retries: RetryPolicy) -> None:
        self._http = CatalogHttp(
            str(settings.neo4j_url),
            name="amundsen",
            headers=_authorization(settings),
            timeout=settings.timeout,
            retries=retries,
            login=NOBODY if settings.neo4j_username is None else PASSWORD,
            limits=settings.answer_limits,
        )
        self._path = f"db/{settings.neo4j_database}/tx/commit"

    def version(self) -> str:
        """Return the version of the server, having checked that it takes queries.

        Raises:
            PlatformVersionError: it is older than 3.5.
        """
        told = self._http.json("GET", "")
        number = told.get("neo4j_version") if isinstance(told, dict) else None
        version = usable_version(self._http.place, number, least=LEAST_VERSION)
        self.rows("RETURN 1")
        return version

    def labels(self) -> list[str]:
        """Return the kinds of nodes that there are."""
        return sorted(str(row[0]) for row in self.rows("CALL db.labels()"))

    def relation_kinds(self) -> list[str]:
        """Return the kinds of relations that there are."""
        return sorted(str(row[0]) for row in self.rows("CALL db.relationshipTypes()"))

    def nodes(self, label: str) -> Iterator[tuple[str, Json]]:
        """Yield key and properties of all nodes of a kind."""
        query = (
            f"MATCH (n:{_quoted(label)}) WHERE n.key > $after "
            "RETURN n.key, properties(n) ORDER BY n.key LIMIT $limit"
        )
        after: str | None = ""
        while after is not None:
            rows = self.rows(query, 2, after=after, limit=PAGE)
            yield from ((str(key), as_object(values, "properties")) for key, values in rows)
            after = str(rows[-1][0]) if len(rows) == PAGE else None

    def relations(self, relation: Relation) -> Iterator[Related]:
        """Yield all relations of a kind."""
        start, kind, end = map(_quoted, relation)
        query = (
            f"MATCH (a:{start})-[r:{kind}]->(b:{end}) "
            "WHERE a.key > $start OR (a.key = $start AND b.key > $end) "
            "RETURN a.key, b.key, properties(r), properties(b) ORDER BY a.key, b.key LIMIT $limit"
        )
        after: tuple[str, str] | None = ("", "")
        while after is not None:
            rows = self.rows(query, 4, start=after[0], end=after[1], limit=PAGE)
            for one, other, told, there in rows:
                more = (as_object(part, "properties") for part in (told, there))
                yield Related(str(one), str(other), *more)
            after = (str(rows[-1][0]), str(rows[-1][1])) if len(rows) == PAGE else None

    def outgoing(self, label: str) -> Iterator[Json]:
        """Yield every relation that begins at a kind of nodes, as it is."""
        return self._found(f"MATCH (a:{_quoted(label)})-[r]->(b)")

    def of_kind(self, kind: str) -> Iterator[Json]:
        """Yield every relation of a kind between any nodes, as it is."""
        return self._found(f"MATCH (a)-[r:{_quoted(kind)}]->(b)")

    def _found(self, match: str) -> Iterator[Json]:
        query = (
            f"{match} RETURN a.key, type(r), b.key, properties(r) "
            "ORDER BY a.key, type(r), b.key SKIP $skip LIMIT $limit"
        )
        skip = 0
        while True:
            rows = self.rows(query, 4, skip=skip, limit=PAGE)
            for start, kind, end, told in rows:
                found: Json = {"start": start, "type": kind, "end": end}
                yield {**found, "properties": told} if told else found
            skip += len(rows)
            if len(rows) < PAGE:
                return

    def rows(
        self, statement: str, columns: int = 1, **parameters: JsonValue
    ) -> list[list[JsonValue]]:
        """Return what a query finds: rows of so many columns.

        Raises:
            PlatformError: the server does not answer, or refuses the query.
        """
        body = {"statements": [{"statement": statement, "parameters": parameters}]}
        try:
            answer = self._http.json("POST", self._path, body=body, idempotent=True)
        except PlatformNotFoundError:
            if self._path == _OLD_PATH:
                raise
            self._path = _OLD_PATH  # that of version 3.5, which has one database
            return self.rows(statement, columns, **parameters)
        if not isinstance(answer, dict) or "errors" not in answer:
            raise self._unlike()
        if errors := answer["errors"]:
            raise _refusal(errors, place=self._http.place)
        results = answer.get("results")
        if not isinstance(results, list) or len(results) != 1:
            raise self._unlike()
        with answer_to(self._http.where("POST", self._path)):
            data = objects_at(as_object(results[0], "results"), "data")
            rows = [list_at(each, "row") for each in data]
        if any(len(row) != columns for row in rows):
            raise self._unlike()
        return rows

    def _unlike(self) -> PlatformAnswerError:
        return PlatformAnswerError(
            f"{self._http.place}: the answer is not that of a Neo4j server",
            hint="check that neo4j_url is its HTTP address, such as http://HOST:7474",
        )

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()


def _refusal(errors: JsonValue, *, place: str) -> PlatformError:
    first = errors[0] if isinstance(errors, list) and errors else None
    code = str(first.get("code")) if isinstance(first, dict) else ""
    if ".Security." in code:
        return PlatformAuthError(
            f"{place}: Neo4j refuses the user or the password",
            hint="check neo4j_username and neo4j_password, and what the user may read",
        )
    if "DatabaseNotFound" in code:
        return PlatformNotFoundError(
            f"{place}: Neo4j has no such database", hint="check neo4j_database"
        )
    if code.startswith("Neo.TransientError"):
        return PlatformUnavailableError(f"{place}: Neo4j refused for now", hint="run again later")
    return PlatformError(
        f"{place}: Neo4j refused the query", hint="check its version and its own log"
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _authorization(settings: AmundsenSettings) -> dict[str, str]:
    if settings.neo4j_username is None:
        return {}
    secret = settings.neo4j_password
    password = secret.get_secret_value() if secret else ""
    pair = b64encode(f"{settings.neo4j_username}:{password}".encode()).decode()
    return {"Authorization": f"Basic {pair}"}
