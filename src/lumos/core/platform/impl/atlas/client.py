"""The requests that Lumos sends to Atlas, one method each."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import quote

from lumos.core.errors import (
    PlatformAnswerError,
    PlatformError,
    PlatformForbiddenError,
    PlatformNotFoundError,
)
from lumos.core.json_reading import (
    as_object,
    as_objects,
    find_object,
    find_objects,
    find_text,
    object_at,
    objects_at,
    required_text_at,
    text_at,
)
from lumos.core.platform.http import CatalogHttp, RetryPolicy
from lumos.core.platform.login import NOBODY, PASSWORD, TOKEN, Login
from lumos.core.platform.unreadable import answer_to

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.atlas.settings import AtlasSettings

NAME = "atlas"
SEARCH_PAGE = 1_000
GUIDS_IN_A_REQUEST = 100
WORKERS = 8
"""How many requests for entities are under way at a time."""
_FEW = 4
"""So many names, of which one is not there, are asked for one by one."""
_LONGEST_QUERY = 4_000
FIRST_MARKER = "*"
LAST_MARKER = "-1"
_HIDDEN = "-1"
"""The GUID of what a search found and the login may not read."""


class AtlasClient:
    """A connection to one Atlas server."""

    def __init__(self, settings: AtlasSettings) -> None:
        base = settings.url.rstrip("/").removesuffix("/api/atlas")
        self._http = CatalogHttp(
            f"{base}/api/atlas",
            name=NAME,
            headers={"X-XSRF-HEADER": "lumos", **_authorization(settings)},
            timeout=settings.timeout_seconds,
            verify=settings.verify,
            retries=RetryPolicy(attempts=settings.attempts),
            login=_login(settings),
            limits=settings.answer_limits,
        )
        self._finds_several = True
        self._created_here: dict[str, dict[str, None]] = {}

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    @property
    def place(self) -> str:
        """For messages: the catalog, and where it is."""
        return self._http.place

    def version(self) -> JsonValue | None:
        """Return what the server says of its version.

        Raises:
            PlatformAnswerError: the answer is none of an Atlas.
        """
        told = self._ask("GET", "admin/version")
        if not told.keys() & {"Version", "Name", "Revision"}:
            raise self._unlike("GET", "admin/version", "no version")
        return told.get("Version")

    def type_names(self) -> dict[str, str]:
        """Return the category of every type that the server has, by its name.

        Raises:
            PlatformAnswerError: the answer is not a list of types.
        """
        headers = self._http.json("GET", "v2/types/typedefs/headers")
        if not isinstance(headers, list) or not headers:  # each has different types
            raise self._unlike("GET", "v2/types/typedefs/headers", "no list of types")
        with answer_to(self._http.where("GET", "v2/types/typedefs/headers")):
            types = as_objects(headers, "answer")
        # The list of types leaves business metadata out.
        return {
            name: str(header.get("category"))
            for header in (*types, *self.business_metadata())
            if (name := find_text(header, "name")) is not None
        }

    def business_metadata(self) -> Iterator[Json]:
        """Yield the definitions of all business metadata."""
        asked = {"type": "business_metadata"}
        found = self._ask("GET", "v2/types/typedefs", params=asked)
        with answer_to(self._http.where("GET", "v2/types/typedefs")):
            definitions = objects_at(found, "businessMetadataDefs")
        yield from definitions

    def entity_type(self, type_name: str) -> Json:
        """Return the definition of a type of entities."""
        return self._ask("GET", f"v2/types/entitydef/name/{type_name}")

    def classifications(self) -> Iterator[Json]:
        """Yield the definitions of all classifications."""
        found = self._ask("GET", "v2/types/typedefs", params={"type": "classification"})
        with answer_to(self._http.where("GET", "v2/types/typedefs")):
            definitions = objects_at(found, "classificationDefs")
        yield from definitions

    def classification(self, name: str) -> Json | None:
        """Return the definition of a classification, or nothing where there is none."""
        path = f"v2/types/classificationdef/name/{quote(name, safe='')}"
        try:
            return self._ask("GET", path) or None
        except PlatformNotFoundError:
            return None

    def define(self, definitions: Json, *, anew: bool) -> None:
        """Create types, or bring them up to date.

        Raises:
            PlatformConflictError: a type to be created is there already.
        """
        self._http.json("POST" if anew else "PUT", "v2/types/typedefs", body=definitions)

    def entity(self, type_name: str, qualified_name: str) -> tuple[Json, Json] | None:
        """Return an entity that is not deleted, and those it refers to by GUID."""
        path = f"v2/entity/uniqueAttribute/type/{type_name}"
        try:
            found = self._ask("GET", path, params={"attr:qualifiedName": qualified_name})
        except PlatformNotFoundError:
            return None
        except PlatformError as error:
            if self._lacks_type(type_name, error):
                return None
            raise
        with answer_to(self._http.where("GET", path)):
            entity, referred = object_at(found, "entity"), object_at(found, "referredEntities")
        return None if entity.get("status") == "DELETED" else (entity, referred)

    def entities(
        self,
        guids: Iterable[str],
        *,
        forbidden: Callable[[str, PlatformForbiddenError], object] = lambda guid, error: None,
    ) -> tuple[list[Json], Json]:
        """Return those of some entities that are there, and those they refer to.

        Atlas refuses a request for several where one of them is gone or may not be read: then
        halves of it are asked for.

        Args:
            guids: their GUIDs.
            forbidden: is called for each that the login may not read.
        """
        entities: list[Json] = []
        referred: Json = {}
        batches = [*_batches(guids)]
        for part in self._http.map(self._readable, batches, workers=min(WORKERS, len(batches))):
            for guid, found in part:
                if isinstance(found, PlatformForbiddenError):
                    forbidden(guid, found)
                    continue
                with answer_to(self._http.where("GET", "v2/entity/bulk")):
                    entities += objects_at(found, "entities")
                    referred |= object_at(found, "referredEntities")
        return [entity for entity in entities if entity.get("status") != "DELETED"], referred

    def _readable(self, guids: list[str]) -> list[tuple[str, Json | PlatformForbiddenError]]:
        """Return answers, and errors for what may not be read, each with a GUID that it is for."""
        try:
            return [(guids[0], self._some(guids))]
        except (PlatformNotFoundError, PlatformForbiddenError) as error:
            if half := len(guids) // 2:
                return [*self._readable(guids[:half]), *self._readable(guids[half:])]
            return [(guids[0], error)] if isinstance(error, PlatformForbiddenError) else []

    def named(self, type_name: str, names: Iterable[str]) -> dict[str, tuple[Json, Json]]:
        """Return entities that are not deleted by qualified name, with those they refer to."""
        found: dict[str, tuple[Json, Json]] = {}
        for some in _short_enough(names):
            found |= self._several(type_name, some)
        return found

    def _several(self, type_name: str, names: Sequence[str]) -> dict[str, tuple[Json, Json]]:
        """Return those of some entities that are there.

        Most servers leave out what is not there. Some say then that nothing is, and are asked for
        halves; others do not know the request at all, which shows when everything was there.
        """
        if len(names) == 1 or not self._finds_several:
            return self._one_by_one(type_name, names)
        asked: dict[str, str | int | bool | list[str]] = {
            f"attr_{number}:qualifiedName": name for number, name in enumerate(names)
        }
        path = f"v2/entity/bulk/uniqueAttribute/type/{type_name}"
        try:
            page = self._ask("GET", path, params=asked)
        except PlatformNotFoundError:
            half = len(names) // 2
            found = (
                self._one_by_one(type_name, names)
                if len(names) <= _FEW
                else self._several(type_name, names[:half]) | self._several(type_name, names[half:])
            )
            if len(found) == len(names):
                self._finds_several = False
            return found
        except PlatformError as error:
            if self._lacks_type(type_name, error):
                return {}
            raise
        with answer_to(self._http.where("GET", path)):
            referred, entities = object_at(page, "referredEntities"), objects_at(page, "entities")
        return {
            str(find_object(entity, "attributes").get("qualifiedName")): (entity, referred)
            for entity in entities
            if entity.get("status") != "DELETED"
        }

    def _lacks_type(self, type_name: str, error: PlatformError) -> bool:
        """Return whether a request was refused for a type that nobody has defined yet."""
        if type(error) is not PlatformError:  # lost, or not allowed
            return False
        try:
            self.entity_type(type_name)
        except PlatformNotFoundError:
            return True
        return False

    def _one_by_one(self, type_name: str, names: Sequence[str]) -> dict[str, tuple[Json, Json]]:
        each = partial(self.entity, type_name)
        held = zip(names, self._http.map(each, names, workers=WORKERS), strict=True)
        return {name: entity for name, entity in held if entity is not None}

    def _some(self, guids: list[str]) -> Json:
        return self._ask("GET", "v2/entity/bulk", params={"guid": guids})

    def put(self, entities: Sequence[Json]) -> dict[str, str]:
        """Create or update entities by type and qualified name; return GUIDs by given GUID."""
        answer = self._http.json(
            "POST",
            "v2/entity/bulk",
            body={"entities": [*entities], "referredEntities": {}},
            idempotent=True,
        )
        if not isinstance(answer, dict):  # the answer does not prove that anything was written
            raise self._unlike("POST", "v2/entity/bulk", "no word of what was written")
        for head in find_objects(answer, "mutatedEntities", "CREATE"):
            known = self._created_here.setdefault(str(head.get("typeName")), {})
            known[str(head.get("guid"))] = None
        with answer_to(self._http.where("POST", "v2/entity/bulk")):
            given = object_at(answer, "guidAssignments")
        return {name: guid for name, guid in given.items() if isinstance(guid, str)}

    def created(self, entities: Sequence[Json]) -> dict[str, str]:
        """Create or update entities, and return the GUID of each by the one that was given.

        Raises:
            PlatformAnswerError: the server does not return all of them.
        """
        made = self.put(entities)
        if any(entity["guid"] not in made for entity in entities):
            raise self._unlike("POST", "v2/entity/bulk", "no word of what was written")
        return made

    def remove(self, guids: Sequence[str], *, purge: bool = False) -> None:
        """Delete entities, and purge them where asked to."""
        for some in _batches(guids):
            self._http.json("DELETE", "v2/entity/bulk", params={"guid": some}, ok=(200, 204, 404))
            if purge:
                self._http.json("PUT", "admin/purge", body=some)

    def classify(self, guid: str, names: Iterable[str]) -> None:
        """Attach classifications that an entity does not carry yet; they stay with it alone."""
        body: list[JsonValue] = [{"typeName": name, "propagate": False} for name in sorted(names)]
        if body:
            self._http.json("POST", f"v2/entity/guid/{guid}/classifications", body=body)

    def declassify(self, guid: str, names: Iterable[str]) -> None:
        """Detach classifications."""
        for name in sorted(names):
            self._http.json(
                "DELETE",
                f"v2/entity/guid/{guid}/classification/{quote(name, safe='')}",
                ok=(200, 204, 404),
            )

    def set_labels(self, guid: str, labels: Sequence[str]) -> None:
        """Let an entity carry these labels and no others."""
        self._http.json("POST", f"v2/entity/guid/{guid}/labels", body=[*labels], idempotent=True)

    def set_business_metadata(self, guid: str, values: Json) -> None:
        """Let an entity carry this business metadata and no other."""
        self._http.json(
            "POST",
            f"v2/entity/guid/{guid}/businessmetadata",
            params={"isOverwrite": "true"},
            body=values,
            idempotent=True,
        )

    def headers(
        self, type_name: str, *, attributes: Sequence[str] = (), with_subtypes: bool = False
    ) -> Iterator[Json]:
        """Yield the heads of all entities of a type that are not deleted.

        A server that knows markers is read by them, any other by offsets. What the login may not
        read comes without a name, and with a GUID of nothing (`is_hidden`). The index that lists
        them follows the graph a while later: what this client created meanwhile is read by GUID.
        """
        own = {**self._created_here.get(type_name, {})}
        for head in self._listed_heads(type_name, attributes, with_subtypes=with_subtypes):
            own.pop(str(head.get("guid")), None)
            yield head
        if own:
            yield from self.entities(own)[0]

    def _listed_heads(
        self, type_name: str, attributes: Sequence[str], *, with_subtypes: bool
    ) -> Iterator[Json]:
        asked: Json = {
            "typeName": type_name,
            "excludeDeletedEntities": True,
            "includeSubTypes": with_subtypes,
            "includeClassificationAttributes": False,
            "attributes": ["qualifiedName", *attributes],
            "limit": SEARCH_PAGE,
        }
        offset = 0
        marker: str | None = FIRST_MARKER
        while True:
            place: Json = {"offset": offset} if marker is None else {"marker": marker}
            page = self._ask("POST", "v2/search/basic", body={**asked, **place}, idempotent=True)
            with answer_to(self._http.where("POST", "v2/search/basic")):
                found, marker = objects_at(page, "entities"), text_at(page, "nextMarker")
            yield from (head for head in found if head.get("status") != "DELETED")
            offset += len(found)
            if marker == LAST_MARKER or (len(found) < SEARCH_PAGE and marker is None):
                return

    def found(self, type_name: str, query: str, *, most: int) -> tuple[list[Json], int]:
        """Return heads of entities of a type by a query of the index, and how many there are."""
        asked: Json = {
            "typeName": type_name,
            "excludeDeletedEntities": True,
            "includeSubTypes": False,
            "includeClassificationAttributes": False,
            "attributes": ["qualifiedName"],
            "limit": most,
            "offset": 0,
            **({"query": query} if query else {}),
        }
        page = self._ask("POST", "v2/search/basic", body=asked, idempotent=True)
        with answer_to(self._http.where("POST", "v2/search/basic")):
            all_heads = objects_at(page, "entities")
        heads = [
            head for head in all_heads if head.get("status") != "DELETED" and not is_hidden(head)
        ]
        told = page.get("approximateCount")
        if len(all_heads) < most or not isinstance(told, int):
            return heads, len(heads)  # the server also counts what was deleted
        return heads, max(told, len(heads))

    def glossaries(self) -> Iterator[Json]:
        """Yield all glossaries."""
        yield from self._listed("v2/glossary")

    def create_glossary(self, name: str) -> str:
        """Create a glossary and return its GUID."""
        return self._created("v2/glossary", {"name": name, "shortDescription": "Written by Lumos"})

    def terms(self, glossary: str) -> Iterator[Json]:
        """Yield all terms of a glossary."""
        yield from self._listed(f"v2/glossary/{glossary}/terms")

    def categories(self, glossaries: Iterable[str]) -> Iterator[Json]:
        """Yield all categories of glossaries."""
        for glossary in glossaries:
            yield from self._listed(f"v2/glossary/{glossary}/categories")

    def term(self, guid: str) -> Json | None:
        """Return a term, or nothing where there is none."""
        try:
            return self._ask("GET", f"v2/glossary/term/{guid}")
        except PlatformNotFoundError:
            return None

    def create_term(self, term: Json) -> str:
        """Create a term and return its GUID."""
        return self._created("v2/glossary/term", term)

    def update_term(self, guid: str, term: Json) -> None:
        """Replace a term."""
        self._http.json("PUT", f"v2/glossary/term/{guid}", body=term)

    def _unlike(self, method: str, path: str, what: str) -> PlatformAnswerError:
        return PlatformAnswerError(
            f"{self._http.where(method, path)}: {what}",
            hint="check that the URL is that of an Atlas server",
        )

    def _created(self, path: str, body: Json) -> str:
        answer = self._ask("POST", path, body=body)
        with answer_to(self._http.where("POST", path)):
            return required_text_at(answer, "guid")

    def _ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | int | bool | list[str]] | None = None,
        body: JsonValue = None,
        idempotent: bool | None = None,
    ) -> Json:
        """Send a request and return the object that answers it, an empty one where none does.

        Raises:
            PlatformAnswerError: the answer is something else.
        """
        answer = self._http.json(method, path, params=params, body=body, idempotent=idempotent)
        with answer_to(self._http.where(method, path)):
            return as_object(answer, "answer")

    def _listed(self, path: str) -> Iterator[Json]:
        offset = 0
        while True:
            params: dict[str, str | int | bool | list[str]] = {
                "limit": SEARCH_PAGE, "offset": offset, "sort": "ASC",
            }  # fmt: skip
            answer = self._http.json("GET", path, params=params)
            with answer_to(self._http.where("GET", path)):
                found = as_objects(answer, "answer")
            yield from found
            offset += len(found)
            if len(found) < SEARCH_PAGE:
                return


def is_hidden(head: Json) -> bool:
    """Return whether a head stands for something that the login may not read."""
    return head.get("guid") == _HIDDEN


def _batches(guids: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(guids)
    while some := [*islice(rest, GUIDS_IN_A_REQUEST)]:
        yield some


def _short_enough(names: Iterable[str]) -> Iterator[list[str]]:
    """Yield names in lists that an address may hold, a request line being of limited length."""
    some: list[str] = []
    length = 0
    for name in dict.fromkeys(names):
        needed = len(quote(name, safe="")) + len("attr_000%3AqualifiedName=&")
        if some and length + needed > _LONGEST_QUERY:
            yield some
            some, length = [], 0
        some.append(name)
        length += needed
    if some:
        yield some


def _login(settings: AtlasSettings) -> Login:
    if settings.token is not None:
        return TOKEN
    return NOBODY if settings.username is None else PASSWORD


def _authorization(settings: AtlasSettings) -> dict[str, str]:
    if settings.token is not None:
        return {"Authorization": f"Bearer {settings.token.get_secret_value()}"}
    if settings.username is None:
        return {}
    password = settings.password.get_secret_value() if settings.password else ""
    pair = b64encode(f"{settings.username}:{password}".encode()).decode()
    return {"Authorization": f"Basic {pair}"}
