"""The backend of the side store: containers that are marked as removed.

They hold identities in other catalogs, extensions of snapshots, and what tags and groups cannot
hold. No list and no search of DataHub shows them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from lumos.core.errors import InvalidModelError
from lumos.core.json_reading import object_at
from lumos.core.platform.impl.datahub.client import Write
from lumos.core.platform.impl.datahub.mapping.stash import KEY, packed, unpacked
from lumos.core.platform.side_store import SideStore, StoredDocument
from lumos.core.platform.unreadable import UnreadableItems

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.platform.impl.datahub.client import DataHubClient, StoredEntity

_CONTAINER: Final = "container"
_PROPERTIES: Final = "containerProperties"
_PREFIX: Final = "urn:li:container:lumos-"


class HiddenContainers:
    """Documents as custom properties of containers that nobody sees."""

    def __init__(self, client: DataHubClient) -> None:
        self._client = client

    def stored(
        self, section: str, names: Collection[str] | None = None, *, like: Collection[str] = ()
    ) -> Iterator[StoredDocument]:
        """Yield the documents of a section, or those of names."""
        prefix = f"{_PREFIX}{section}-"
        for held in self._held(prefix, names):
            properties = held.aspects.get(_PROPERTIES)
            if held.urn.startswith(prefix) and isinstance(properties, dict):
                custom = object_at(properties, "customProperties")
                name = held.urn.removeprefix(prefix)
                yield StoredDocument(name, partial(unpacked, custom.get(KEY)))

    def _held(self, prefix: str, names: Collection[str] | None) -> Iterator[StoredEntity]:
        if names is None:
            aspects = ("containerKey", _PROPERTIES)
            yield from self._client.scroll(_CONTAINER, aspects=aspects, include_removed=True)
            return
        for page in self._client.pages(_CONTAINER, [f"{prefix}{name}" for name in sorted(names)]):
            yield from page

    def write(self, section: str, documents: Mapping[str, JsonValue]) -> None:
        """Keep documents in place of those of the same names."""
        self._client.write(
            [
                Write(
                    _CONTAINER,
                    f"{_PREFIX}{section}-{name}",
                    {
                        _PROPERTIES: {
                            "name": f"Lumos {section}",
                            "customProperties": {KEY: packed(document)},
                        },
                        "status": {"removed": True},
                    },
                )
                for name, document in documents.items()
            ]
        )

    def delete(
        self, section: str, names: Collection[str] = (), *, like: Collection[str] = ()
    ) -> None:
        """Remove the documents of names, if they are there."""
        for name in names:
            self._client.delete(_CONTAINER, f"{_PREFIX}{section}-{name}")


def named(name: JsonValue, value: JsonValue) -> dict[str, JsonValue]:
    """Return a value as a document, under the name that stands for its own."""
    return {_digest(name): [name, value]}


def pair_of(document: JsonValue) -> tuple[JsonValue, JsonValue]:
    """Return name and value of a document.

    Raises:
        InvalidModelError: it is none that Lumos wrote.
    """
    match document:
        case [name, value]:
            return name, value
    raise InvalidModelError("a document of Lumos was changed by hand")


def put_residue(store: SideStore, kind: str, entity: str, *, left: JsonValue) -> None:
    """Keep what an entity of DataHub cannot hold; None is nothing."""
    if left is None:
        store.remove(kind, _digest(entity))
    else:
        store.put(kind, named(entity, left))


def residues(store: SideStore, kind: str) -> dict[str, JsonValue]:
    """Return what the entities of a kind cannot hold, by their URNs."""
    found = store.read(kind, pair_of, unread=UnreadableItems(), kind=kind)
    return {str(entity): left for entity, left in found.values()}


def _digest(name: JsonValue) -> str:
    return hashlib.md5(packed(name).encode(), usedforsecurity=False).hexdigest()
