"""The backend of the side store: entities of types of Lumos, one type for each section."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from lumos.core.json_reading import find_object, find_text, object_or_empty
from lumos.core.platform.impl.atlas.mapping.names import entity_key, shown_text
from lumos.core.platform.impl.atlas.mapping.typedefs import EXTENSION, IDENTITY, STASH
from lumos.core.platform.side_store import StoredDocument
from lumos.core.platform.stash import packed, unpacked

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.atlas.client import AtlasClient
    from lumos.core.platform.impl.atlas.writer.own_types import OwnTypes

_TYPES: Final[Mapping[str, str]] = {"identity": IDENTITY, "extension": EXTENSION}
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "identity": ("urn", "catalog"),
    "extension": ("name",),
}
"""The parts of a document that its name is made of."""


def under_name(section: str, document: Json) -> dict[str, JsonValue]:
    """Return a document under the name that it is kept by."""
    return {entity_key(section, *(str(document[each]) for each in _NAMES[section])): document}


class OwnEntities:
    """Documents as entities; those of identities are attributes, all others a stash."""

    def __init__(
        self,
        client: AtlasClient,
        types: OwnTypes,
        *,
        listed: Callable[[str, str], Iterable[Json]],
    ) -> None:
        """Work on a server, with a way to list the entities of a type as a kind of item."""
        self._client = client
        self._types = types
        self._listed = listed

    def stored(
        self, section: str, names: Collection[str] | None = None, *, like: Collection[str] = ()
    ) -> Iterator[StoredDocument]:
        """Yield the documents of a section, or those of names."""
        load = _identity if section == "identity" else _stashed
        for entity in self._listed(_TYPES[section], section):
            name = str(find_object(entity, "attributes").get("qualifiedName"))
            if names is None or name in names:
                yield StoredDocument(name, partial(load, entity))

    def write(self, section: str, documents: Mapping[str, JsonValue]) -> None:
        """Keep documents in place of those of the same names."""
        self._types.ensure()
        entities: list[Json] = [
            {
                "typeName": _TYPES[section],
                "guid": f"-{number}",
                "attributes": {
                    "qualifiedName": name,
                    **_attributes(section, object_or_empty(document)),
                },
            }
            for number, (name, document) in enumerate(documents.items(), start=1)
        ]
        self._client.put(entities)

    def delete(
        self, section: str, names: Collection[str] = (), *, like: Collection[str] = ()
    ) -> None:
        """Remove the documents of names, if they are there."""
        held = self._client.named(_TYPES[section], names)
        self._client.remove([str(entity.get("guid")) for entity, _ in held.values()])


def _attributes(section: str, document: Json) -> Json:
    if section == "identity":
        return {
            "urn": document["urn"],
            "catalog": document["catalog"],
            "externalId": document["id"],
        }
    return {"label": shown_text(str(document["name"])), STASH: packed(document)}


def _identity(entity: Json) -> JsonValue:
    values = find_object(entity, "attributes")
    return {
        "urn": str(values.get("urn")),
        "catalog": str(values.get("catalog")),
        "id": str(values.get("externalId")),
    }


def _stashed(entity: Json) -> JsonValue:
    return unpacked(find_text(entity, "attributes", STASH) or "")
