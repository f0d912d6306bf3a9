"""A shelf in OpenMetadata for what has no place of its own there.

Users, teams, tags, terms and domains have no custom properties on all versions, so what is to be
kept of them stands beside them: each in a container of the storage service `lumos`.
"""

from __future__ import annotations

import hashlib
from threading import RLock
from typing import TYPE_CHECKING, Final

from lumos.core.platform.impl.openmetadata.changes import stash_changes
from lumos.core.platform.impl.openmetadata.names import OWN, fqn
from lumos.core.platform.stash import STASH_KEY, Json, packed, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import JsonValue

    from lumos.core.platform.impl.openmetadata.api import OpenMetadataApi

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
    text = extension.get(STASH_KEY) if isinstance(extension, dict) else None
    return text if isinstance(text, str) else None


class Ledger:
    """Values by kind and key."""

    def __init__(self, api: OpenMetadataApi) -> None:
        self._api = api
        self._ready = False
        self._making = RLock()

    def get(self, kind: str, key: str) -> JsonValue | None:
        """Return what is kept under a key."""
        entity = self._api.find("container", fqn((OWN, _name(kind, key))))
        return None if entity is None else _entry(entity).get("value")

    def put(self, kind: str, key: str, *, value: JsonValue) -> None:
        """Keep a value under a key; an equal one is not written again."""
        text = stash_text({"kind": kind, "key": key, "value": value})
        entity = self._api.find("container", fqn((OWN, _name(kind, key))))
        if entity is not None:
            if changed := stash_changes(entity, text):
                self._api.patch("container", entity, changes=changed)
            return
        self._prepare()
        body: Json = {
            "name": _name(kind, key),
            "service": OWN,
            "description": "Kept by Lumos. Do not change.",
            "extension": {STASH_KEY: text},
        }
        self._api.put("container", body)

    def entries(self, kind: str) -> Iterator[tuple[str, JsonValue]]:
        """Yield keys and values of a kind."""
        if self._api.find("storageService", OWN) is None:
            return
        for entity in self._api.list("container", service=OWN):
            if str(entity["name"]).startswith(f"{kind}-"):
                entry = _entry(entity)
                if entry:
                    yield str(entry["key"]), entry["value"]

    def _prepare(self) -> None:
        with self._making:
            if not self._ready:
                self._api.declare("container")
                if self._api.find("storageService", OWN) is None:
                    self._api.put("storageService", {"name": OWN, "serviceType": "CustomStorage"})
                self._ready = True


def _name(kind: str, key: str) -> str:
    return f"{kind}-{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}"


def _entry(entity: Mapping[str, JsonValue]) -> Json:
    text = stash_of(entity)
    entry = unpacked(text) if text else None
    return entry if isinstance(entry, dict) and {"key", "value"} <= entry.keys() else {}
