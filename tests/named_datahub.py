"""A DataHub server that others use, for tests: only what a test made is seen, changed and removed.

Every name that the adapter writes is given the prefix of the test on the wire, and loses it in
answers; whatever else the server holds is left out of them. Entities of the system are named as
they are, and a request that would write one fails before it is sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, cast
from unittest.mock import patch
from urllib.parse import quote, unquote
from uuid import uuid4

import orjson
from pydantic import JsonValue
from typing_extensions import override

from lumos.core.platform.http import CatalogHttp
from lumos.core.platform.impl.datahub import handler
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.datahub.writer.foreign import KINDS

_SIMPLE: Final = "|".join(
    ("assertion", "container", "corpGroup", "corpuser", "domain", "glossaryNode", "glossaryTerm",
     "ownershipType", "structuredProperty", "tag")
)  # fmt: skip
_NAMES: Final = re.compile(
    rf"(urn:li:(?:{_SIMPLE}):|urn:li:dataset:\(urn:li:dataPlatform:[^,()]+,"
    rf"|urn:li:dataFlow:\([^,()]+,|\"qualifiedName\": ?\")(?!__)"
)
"""Where the names of entities begin; those with two underscores are the system's."""
_WRITES: Final = re.compile(r"openapi/v3/entity/(?!scroll)[a-zA-Z]+(?:/urn.*)?\Z")


class SystemEntityError(Exception):
    """A test would have changed something that it did not make."""


class PrefixedHttp(CatalogHttp):
    """Gives names a prefix on the way to the server, and takes it away on the way back."""

    prefix: str = ""

    @override
    def json(self, method: str, path: str, **options: Any) -> JsonValue | None:
        steps = [quote(self._there(unquote(step)), safe=":") for step in path.split("/")]
        params = options.get("params")
        if isinstance(params, Mapping):
            named = {"urn"} & params.keys()
            options["params"] = {**params, **{key: self._there(str(params[key])) for key in named}}
        body = options.get("body")
        if body is not None:
            text = self._there(orjson.dumps(body).decode())
            options["body"] = json.loads(text)
        if method in {"POST", "DELETE"} and _WRITES.match(unquote(path)):
            self._check(unquote("/".join(steps)), options.get("body"))
        return self._here(super().json(method, "/".join(steps), **options))

    def _there(self, text: str) -> str:
        return _NAMES.sub(lambda match: f"{match[0]}{self.prefix}", text)

    def _here(self, answer: JsonValue | None) -> JsonValue | None:
        """Return an answer with only what the test made, under the names that it gave."""
        if isinstance(answer, list):
            answer = [each for each in answer if self._is_made(each)]
        elif isinstance(answer, dict) and isinstance(entities := answer.get("entities"), list):
            made = [each for each in entities if self._is_made(each)]
            answer = {**answer, "entities": made, "totalCount": len(made)}
        if answer is None:
            return None
        return cast("JsonValue", json.loads(json.dumps(answer).replace(self.prefix, "")))

    def _is_made(self, entity: JsonValue) -> bool:
        return isinstance(entity, dict) and self._has_prefix(str(entity.get("urn")))

    def _has_prefix(self, urn: str) -> bool:
        return self.prefix in urn

    def _check(self, path: str, body: object) -> None:
        urns = [str(each["urn"]) for each in cast("list[dict[str, Any]]", body or [])]
        for urn in urns or [path]:
            if not self._has_prefix(urn):
                raise SystemEntityError(f"{urn} was not made by this test")


@contextmanager
def prefixed_datahub(config: Mapping[str, JsonValue]) -> Iterator[DataHubHandler]:
    """Open a DataHub for one test, and remove afterwards what the test made."""
    own = type("Prefixed", (PrefixedHttp,), {"prefix": f"lt{uuid4().hex[:6]}-"})
    with patch.object(handler, "CatalogHttp", own):
        platform = DataHubHandler.from_config(config)
    with platform:
        try:
            yield platform
        finally:
            client = platform._client
            for kind in ("dataset", *KINDS):
                for held in [*client.scroll(kind, include_removed=True)]:
                    client.delete(kind, held.urn)
