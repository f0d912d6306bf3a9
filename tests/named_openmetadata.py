"""The adapter on an OpenMetadata server that somebody named, which others may use as well.

Everything that a test makes gets a prefix in the name of its root: a service, glossary,
classification, domain, team, user or test definition. Tests see only what has the prefix, and see
it without. Only such roots are removed, with all that is in them. A request that would change
anything else is an error before it is sent. What stays is the custom property `lumos` of tables,
containers and pipelines, which cannot be told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from secrets import choice
from string import ascii_lowercase, digits
from typing import Any, Final
from urllib.parse import quote, unquote

import orjson
from pydantic import JsonValue
from typing_extensions import override

from lumos.core.platform.http import CatalogHttp
from lumos.core.platform.impl.openmetadata.client import COLLECTIONS, OpenMetadataApi
from lumos.core.platform.impl.openmetadata.handler import OpenMetadataHandler
from lumos.core.platform.impl.openmetadata.settings import OpenMetadataSettings

Json = dict[str, Any]
ROOTS: Final = tuple(
    COLLECTIONS[each]
    for each in ("databaseService", "storageService", "pipelineService", "glossary",
                 "classification", "domain", "team", "user", "testDefinition")
)  # fmt: skip
_NAMES: Final = frozenset(
    {"fullyQualifiedName", "databaseSchema", "database", "service", "classification", "glossary",
     "parent", "tagFQN", "toColumn", "fromColumns", "referredColumns", "domains", "entityFQN",
     "email"}
)  # fmt: skip
_VERBATIM: Final = frozenset({"extension", "description", "displayName", "query_filter"})
_SYSTEM_TAGS: Final = ("PII", "PersonalData", "Tier")
_LINK: Final = re.compile(r"(?<=<#E::table::)")
_PAGE: Final = 1_000


class ForeignEntityError(Exception):
    """A request that would change what this run did not make."""


class PrefixingHttp(CatalogHttp):
    """Sends every name with a prefix, and gives answers without it and without what lacks it."""

    def __init__(self, base_url: str, *, prefix: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        super().__init__(base_url, name="openmetadata", headers=headers, timeout=120)
        self._prefix = prefix
        self._own: set[str] = set()
        self._system: set[str] | None = None

    @override
    def json(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | int | bool | list[str]] | None = None,
        body: object = None,
        **options: Any,
    ) -> JsonValue | None:
        there = self._renamed(path)
        given = {key: self._sent(key, value) for key, value in (params or {}).items()}
        sent = self._body(path, body)
        if method != "GET":
            self._require_own(method, there, sent)
        answer = super().json(method, there, params=given or None, body=sent, **options)
        return self._seen(there, answer)

    def _renamed(self, path: str) -> str:
        for before in ("/name/", "/testCaseResults/"):
            above, found, name = path.partition(before)
            if found and not above.startswith("metadata/"):
                return f"{above}{found}{quote(self._named(unquote(name)), safe='')}"
        collection, _, rest = path.partition("/")
        name, _, kind = rest.rpartition("/")
        if collection == "tables" and kind.endswith(("Profile", "latest")) and "-" not in name:
            first, _, below = rest.partition("/")
            return f"tables/{quote(self._named(unquote(first)), safe='')}/{below}"
        return path

    def _body(self, path: str, body: object) -> object:
        if isinstance(body, list) and path.endswith("/bulk"):
            return [self._sent("", each) for each in body]
        if isinstance(body, list):
            return [self._operation(each) for each in body]
        sent = self._sent("", body)
        if isinstance(sent, dict) and path in ROOTS and not sent.get("parent"):
            sent["name"] = f"{self._prefix}{sent['name']}"
        if isinstance(sent, dict) and str(sent.get("testDefinition")).startswith("lumos"):
            sent["testDefinition"] = f"{self._prefix}{sent['testDefinition']}"
        return sent

    def _operation(self, operation: Any) -> Json:
        field = str(operation["path"]).rpartition("/")[2]
        if "value" not in operation or "/extension" in str(operation["path"]):
            return dict(operation)
        return {**operation, "value": self._sent(field, operation["value"])}

    def _sent(self, key: str, value: Any) -> Any:
        if key in _VERBATIM:
            return value
        if isinstance(value, dict):
            return {name: self._sent(name, each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._sent(key, each) for each in value]
        if isinstance(value, str) and key == "entityLink":
            return _LINK.sub(self._prefix, value)
        return self._named(value) if isinstance(value, str) and key in _NAMES else value

    def _named(self, name: str) -> str:
        if name in self._of_the_system():
            return name
        return f'"{self._prefix}{name[1:]}' if name.startswith('"') else f"{self._prefix}{name}"

    def _of_the_system(self) -> set[str]:
        """Return the full names of what is used as it is, and never changed."""
        if self._system is None:
            self._system = {"admin"}
            for root in _SYSTEM_TAGS:
                query = {"parent": root, "limit": _PAGE}
                page: Any = super().json("GET", "tags", params=query)
                self._system |= {each["fullyQualifiedName"] for each in page["data"]}
            definitions: Any = super().json("GET", ROOTS[-1], params={"limit": _PAGE})
            self._system |= {each["name"] for each in definitions["data"]}
        return self._system

    def _is_own(self, entity: Any) -> bool:
        name = entity.get("fullyQualifiedName") or entity.get("name") or ""
        return str(name).lstrip('"').startswith(self._prefix)

    def _require_own(self, method: str, path: str, body: Any) -> None:
        """Refuse a request that would change what has no prefix."""
        if path.startswith("metadata/types/"):
            return
        bodies = body if path.endswith("/bulk") else [body]
        if path == "lineage":
            edge = body["edge"]
            allowed = {edge[end]["id"] for end in ("fromEntity", "toEntity")} <= self._own
        elif method == "PUT" and path.endswith("/tableProfile"):
            allowed = path.split("/")[1] in self._own
        elif method in {"PUT", "POST"} and "testCaseResults" not in path:
            allowed = all(self._prefix in orjson.dumps(each).decode() for each in bodies)
        else:
            allowed = any(part in self._own for part in path.split("/")) or self._prefix in path
        if not allowed:
            raise ForeignEntityError(f"{method} {path}")

    def _seen(self, path: str, answer: Any) -> JsonValue:
        if isinstance(answer, dict) and isinstance(answer.get("data"), list):
            answer["data"] = [each for each in answer["data"] if self._is_shown(path, each)]
        if path == "search/query" and isinstance(answer, dict):
            hits: Any = answer["hits"]
            hits["hits"] = [each for each in hits["hits"] if self._is_own(each["_source"])]
            hits["total"] = {"value": len(hits["hits"])}
        self._own |= {str(each["id"]) for each in _entities(answer) if self._is_own(each)}
        plain: JsonValue = orjson.loads(orjson.dumps(answer).replace(self._prefix.encode(), b""))
        return plain

    def _is_shown(self, path: str, entity: Any) -> bool:
        named = "fullyQualifiedName" in entity or path.split("/", maxsplit=1)[0] in {
            "users",
            "teams",
        }
        return not named or self._is_own(entity)


def _entities(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        if "id" in value:
            yield value
        value = [*value.values()]
    for each in value if isinstance(value, list) else ():
        yield from _entities(each)


class NamedServer:
    """A server that somebody named, and what this run makes of it."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._address = f"{config['server'].rstrip('/').removesuffix('/api')}/api/v1"
        self._config = config
        self._http = CatalogHttp(
            self._address,
            name="openmetadata",
            headers={"Authorization": f"Bearer {config['auth_token']}"},
            timeout=120,
        )
        self.prefix = self._unused_prefix()

    def adapter(self) -> OpenMetadataHandler:
        """Return an adapter that sees and makes only what has the prefix of this run."""
        settings = OpenMetadataSettings.from_json(dict(self._config))
        http = PrefixingHttp(self._address, prefix=self.prefix, token=self._config["auth_token"])
        return OpenMetadataHandler(OpenMetadataApi(http, page_size=settings.page_size), settings)

    def remove_made(self) -> None:
        """Remove the roots that this run made, with all that is in them."""
        gone = {"hardDelete": "true", "recursive": "true"}
        for collection in ROOTS:
            for each in [*self._listed(collection)]:
                if self._is_made(each):
                    self._http.json("DELETE", f"{collection}/{each['id']}", params=gone)

    def close(self) -> None:
        self._http.close()

    def _is_made(self, entity: Json) -> bool:
        marked = entity.get("provider") == "system" or entity.get("isBot") or entity.get("isAdmin")
        return not marked and str(entity["name"]).startswith(self.prefix)

    def _unused_prefix(self) -> str:
        """Return a prefix that nothing has: short, as names of users are."""
        names = [str(each["name"]) for collection in ROOTS for each in self._listed(collection)]
        while True:
            prefix = f"lt{''.join(choice(ascii_lowercase + digits) for _ in range(3))}_"
            if not any(prefix in name for name in names):
                return prefix

    def _listed(self, collection: str) -> Iterator[Json]:
        asked: dict[str, str | int | bool | list[str]] = {"limit": _PAGE, "include": "all"}
        for page in self._http.pages("GET", collection, params=asked, following=_following):
            data: Any = page
            yield from data["data"]


def _following(page: JsonValue | None) -> dict[str, str | int | bool] | None:
    given: Any = page
    after = (given.get("paging") or {}).get("after")
    return {"after": str(after)} if after else None
