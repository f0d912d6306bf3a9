"""What was written through one adapter, which DataHub's indexes may not show yet.

A write is in DataHub's primary store when it is answered. Search and graph follow seconds later, so
a list or the neighbours of a dataset may lack it. What is noted here is read by its name instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Final

from lumos.core.platform.impl.datahub.mapping.added_by_server import asserted_entity
from lumos.core.platform.impl.datahub.mapping.lineage import ASPECT as LINEAGE

if TYPE_CHECKING:
    from pydantic import JsonValue

ASSERTION_INFO: Final = "assertionInfo"
POINTING: Final[Mapping[str, tuple[str, str]]] = {
    "DownstreamOf": ("dataset", LINEAGE),
    "Asserts": ("assertion", ASSERTION_INFO),
}
"""The kind of entity and the aspect that a relation comes from."""


class OwnWrites:
    """Remembers which entities were written, removed and deleted, and what they point at."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._there: dict[str, set[str]] = {}
        self._removed: dict[str, set[str]] = {}
        self._deleted: dict[str, set[str]] = {}
        self._pointing: dict[str, set[str]] = {}
        self.unseen = False
        """Whether something was written since an index was last known to show everything."""

    def note(self, kind: str, urn: str, aspects: Mapping[str, JsonValue]) -> None:
        """Remember that aspects of an entity were written."""
        kind, status = kind.lower(), aspects.get("status")
        with self._lock:
            self.unseen = True
            self._there.setdefault(kind, set()).add(urn)
            self._deleted.setdefault(kind, set()).discard(urn)
            if isinstance(status, dict):
                removed = self._removed.setdefault(kind, set())
                (removed.add if status.get("removed") else removed.discard)(urn)
            for target in targets(aspects):
                self._pointing.setdefault(target, set()).add(urn)

    def note_deleted(self, kind: str, urn: str) -> None:
        """Remember that an entity was removed for good."""
        with self._lock:
            self.unseen = True
            self._there.setdefault(kind.lower(), set()).discard(urn)
            self._deleted.setdefault(kind.lower(), set()).add(urn)

    def missing(self, kind: str, seen: Iterable[str], *, include_removed: bool) -> list[str]:
        """Return the entities of a kind that a list should have and has not."""
        with self._lock:
            there = self._there.get(kind.lower(), set())
            gone = set() if include_removed else self._removed.get(kind.lower(), set())
            return sorted(there.difference(seen) - gone)

    def is_gone(self, kind: str, urn: str, *, include_removed: bool) -> bool:
        """Return whether a list has an entity that it should no longer have."""
        kind = kind.lower()
        if urn in self._deleted.get(kind, ()):
            return True
        return not include_removed and urn in self._removed.get(kind, ())

    def pointing_at(self, urn: str) -> set[str]:
        """Return the entities that were written and then pointed at one."""
        with self._lock:
            return set(self._pointing.get(urn, ()))

    def was_written(self, kind: str, urn: str) -> bool:
        """Return whether an entity is among those that were written."""
        return urn in self._there.get(kind.lower(), ())


def targets(aspects: Mapping[str, JsonValue]) -> list[str]:
    """Return what lineage and assertions within aspects point at."""
    lineage, info = aspects.get(LINEAGE), aspects.get(ASSERTION_INFO)
    upstreams = lineage.get("upstreams") if isinstance(lineage, dict) else None
    rows = upstreams if isinstance(upstreams, list) else []
    found = [str(each.get("dataset")) for each in rows if isinstance(each, dict)]
    if isinstance(info, dict) and (entity := asserted_entity(info)):
        found.append(entity)
    return found
