"""The backend of the side store: containers of the storage service `lumos`.

Users, teams, tags, terms and domains have no custom properties on all versions, so what is to be
kept of them stands beside them.
"""

from __future__ import annotations

import hashlib
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Final

from lumos.core.platform.impl.openmetadata.mapping.changes import (
    joined_stash,
    stash_changes,
    stash_parts,
)
from lumos.core.platform.impl.openmetadata.mapping.names import OWN, fqn
from lumos.core.platform.side_store import SideStore, StoredDocument
from lumos.core.platform.stash import packed, unpacked

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.openmetadata.client import OpenMetadataApi
    from lumos.core.platform.unreadable import UnreadableItems

_ESCAPES: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def stash_text(stash: JsonValue) -> str:
    """Return a stash as text in which no reader of HTML finds anything to clean."""
    text = packed(stash)
    if text.startswith("{"):
        for char, escaped in _ESCAPES.items():
            text = text.replace(char, escaped)
    return text


def stash_of(entity: Mapping[str, JsonValue]) -> str | None:
    """Return the text that an entity has as its stash."""
    extension = entity.get("extension")
    return joined_stash(extension) if isinstance(extension, dict) else None


class OwnContainers:
    """Documents as the stashes of containers."""

    def __init__(self, api: OpenMetadataApi) -> None:
        self._api = api
        self._ready = False
        self._making = RLock()

    def stored(
        self, section: str, names: Collection[str] | None = None, *, like: Collection[str] = ()
    ) -> Iterator[StoredDocument]:
        """Yield the documents of a section, or those of names."""
        if names is not None:
            found = (self._api.find("container", _fqn(section, name)) for name in names)
            entities = [entity for entity in found if entity is not None]
        elif self._api.find("storageService", OWN) is not None:
            listed = self._api.list("container", service=OWN)
            entities = [each for each in listed if str(each["name"]).startswith(f"{section}-")]
        else:
            entities = []
        for entity in entities:
            name = str(entity["name"]).removeprefix(f"{section}-")
            yield StoredDocument(name, partial(_document, entity))

    def write(self, section: str, documents: Mapping[str, JsonValue]) -> None:
        """Keep documents; an equal one is not written again."""
        for name, document in documents.items():
            text = stash_text(document)
            entity = self._api.find("container", _fqn(section, name))
            if entity is None:
                self._create(f"{section}-{name}", text)
            elif changed := stash_changes(entity, text):
                self._api.declare("container", text)
                self._api.patch("container", entity, changes=changed)

    def delete(
        self, section: str, names: Collection[str] = (), *, like: Collection[str] = ()
    ) -> None:
        """Remove the documents of names, if they are there."""
        for name in names:
            entity = self._api.find("container", _fqn(section, name))
            if entity is not None:
                self._api.delete("container", entity)

    def _create(self, name: str, text: str) -> None:
        self._prepare()
        self._api.declare("container", text)
        body: Json = {
            "name": name,
            "service": OWN,
            "description": "Kept by Lumos. Do not change.",
            "extension": stash_parts(text),
        }
        self._api.put("container", body)

    def _prepare(self) -> None:
        with self._making:
            if not self._ready:
                if self._api.find("storageService", OWN) is None:
                    self._api.put("storageService", {"name": OWN, "serviceType": "CustomStorage"})
                self._ready = True


def get_value(store: SideStore, kind: str, key: str) -> JsonValue | None:
    """Return what is kept under a key."""
    document = store.find(kind, _digest(key))
    return document.get("value") if isinstance(document, dict) else None


def put_value(store: SideStore, kind: str, key: str, *, value: JsonValue) -> None:
    """Keep a value under a key."""
    store.put(kind, {_digest(key): {"kind": kind, "key": key, "value": value}})


def values(
    store: SideStore, section: str, unread: UnreadableItems, *, kind: str | None = None
) -> dict[str, JsonValue]:
    """Return keys and values of a section; one that is unreadable is noted, as a kind."""
    read = store.read(section, _entry, unread=unread, kind=kind or section)
    return dict(entry for entry in read.values() if entry is not None)


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def _fqn(section: str, name: str) -> str:
    return fqn((OWN, f"{section}-{name}"))


def _document(entity: Mapping[str, JsonValue]) -> JsonValue:
    text = stash_of(entity)
    return unpacked(text) if text else None


def _entry(document: JsonValue) -> tuple[str, JsonValue] | None:
    if isinstance(document, dict) and {"key", "value"} <= document.keys():
        return str(document["key"]), document["value"]
    return None
