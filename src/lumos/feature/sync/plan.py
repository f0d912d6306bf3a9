"""What a sync is going to send: found, and counted by concept, before anything is written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from lumos.core.models.origin import origin_in
from lumos.core.platform.abilities import Capability, DocumentAbility
from lumos.core.platform.batches import batches
from lumos.core.store.documents import stored_object
from lumos.feature.sync.items import (
    BEFORE_DATASETS,
    DATASET,
    EDGE,
    EXTENSION,
    IDENTITY,
    JOB,
    SyncItem,
)
from lumos.feature.sync.items import items_of as all_items_of

if TYPE_CHECKING:
    from lumos.core.json_reading import Json
    from lumos.core.models import LineageEdge
    from lumos.feature.sync.tally import Ends, SyncTally

_AT_A_TIME = 500
_CONCEPTS = {"tag": "tag_definition", "domain": "domain_definition"}
_NEEDED = {
    EDGE: (Capability.LINEAGE, "lineage edges"),
    IDENTITY: (Capability.IDENTITY_MAP, "identities of other catalogs"),
    EXTENSION: (Capability.EXTENSIONS, "extensions"),
}
_ENTITIES = (Capability.ENTITIES, "people, tags, terms, domains or jobs")


class Found(NamedTuple):
    """A dataset as it is to be sent."""

    name: str
    document: bytes
    """Its canonical JSON, without its neighbours where lineage is sent as edges."""

    @property
    def hash(self) -> str:
        return sha256(self.document).hexdigest()


N = TypeVar("N", SyncItem, Found)


class SyncPlan:
    """What differs from the last sync.

    It is found by one pass over everything, which builds no model of a dataset: what did not change
    costs little more than reading it.
    """

    def __init__(
        self,
        ends: Ends,
        *,
        tally: SyncTally,
        sources: frozenset[str] = frozenset(),
        found: frozenset[str] = frozenset(),
        full: bool = False,
    ) -> None:
        """Get ready.

        Args:
            ends: where to read and to write.
            tally: what to count in.
            sources: only datasets that these sources have; without them all.
            found: the URNs of what those have that are no storages.
            full: look also at what did not change since the last sync.
        """
        self._ends = ends
        self._tally = tally
        self._sources = sources
        self._found = found
        self.full = full
        self._chosen: defaultdict[str, dict[str, bool]] = defaultdict(dict)
        self.datasets: set[str] = set()
        """All that are there, whether they changed or not."""
        self.edges: set[str] = set()

    def make(self) -> None:
        """Find and count what differs."""
        for kind in BEFORE_DATASETS:
            self._add_items(kind)
        for page in batches(self._wanted_documents(), _AT_A_TIME):
            for found in self._differing(DATASET, page):
                self._tally.fidelity.add_document(stored_object(found.document))
        for other in (JOB, EDGE, IDENTITY, EXTENSION):
            self._add_items(other)

    def count(self, kind: str) -> int:
        """Return how many of a kind are to be sent."""
        return len(self._chosen[kind])

    def differs(self, kind: str, name: str) -> bool:
        """Return whether something that is sent changed, rather than being looked at once more."""
        return self._chosen[kind][name]

    def items(self, kind: str) -> Iterator[SyncItem]:
        """Yield what is to be sent of a kind other than datasets."""
        if chosen := self._chosen[kind]:
            yield from (item for item in self._all_items(kind) if item.name in chosen)

    def found(self) -> Iterator[Found]:
        """Yield the datasets that are to be sent."""
        return self._documents([*self._chosen[DATASET]])

    def document_of(self, urn: str) -> Found | None:
        """Return a dataset as it is now; None where it is not there."""
        return next(iter(self._documents([urn])), None)

    def _add_items(self, kind: str) -> None:
        fidelity = self._tally.fidelity
        for page in batches(self._all_items(kind), _AT_A_TIME):
            if kind == EDGE:
                self.edges.update(item.name for item in page)
            for item in self._differing(kind, page):
                fidelity.add(_CONCEPTS.get(kind, kind))
                fidelity.add("column_lineage", len(getattr(item.content, "column_mappings", ())))

    def _all_items(self, kind: str) -> Iterable[SyncItem]:
        capability, what = _NEEDED.get(kind, _ENTITIES)
        if capability not in self._ends.source.capabilities:
            return ()
        items = all_items_of(
            kind, self._ends.source, self._ends.target, wanted=self._leads_to_wanted
        )
        if capability in self._ends.target.capabilities:
            return items
        if any(True for _ in items):
            name = self._ends.target.name
            self._tally.recorder.warning(f"{name} keeps no {what}: none is sent")
        return ()

    def _leads_to_wanted(self, edge: LineageEdge) -> bool:
        return not self._sources or edge.downstream_urn in self.datasets

    def _wanted_documents(self) -> Iterator[Found]:
        for found in self._documents():
            if self._is_wanted(found):
                self.datasets.add(found.name)
                yield found

    def _is_wanted(self, found: Found) -> bool:
        if not self._sources or found.name in self._found:
            return True
        return _source_of(stored_object(found.document)) in self._sources

    def _documents(self, urns: Sequence[str] | None = None) -> Iterator[Found]:
        neighbours = Capability.LINEAGE not in self._ends.target.capabilities
        source = DocumentAbility.of(self._ends.source)
        return starmap(Found, source.documents(urns, neighbours=neighbours))

    def _differing(self, kind: str, page: Sequence[N]) -> Iterator[N]:
        known = self._ends.states.hashes(kind, [item.name for item in page])
        tally = self._tally.of(kind)
        for item in page:
            before = known.get(item.name)
            differs = before != item.hash
            if not differs:
                tally.unchanged += 1
            elif before is None:
                tally.new += 1
            else:
                tally.changed += 1
            if differs or self.full:
                self._chosen[kind][item.name] = differs
                yield item


def _source_of(document: Json) -> str | None:
    extensions = document.get("extensions")
    origin = origin_in(extensions) if isinstance(extensions, dict) else None
    return origin.source if origin else None
