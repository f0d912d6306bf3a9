"""The edges that a DataHub server holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from lumos.core.json_reading import object_at
from lumos.core.models import LineageEdge
from lumos.core.platform.impl.datahub.client import StoredEntity, Write
from lumos.core.platform.impl.datahub.mapping.lineage import ASPECT, read_edges, with_edges
from lumos.core.platform.impl.datahub.mapping.urns import dataset_urn, lumos_dataset_urn

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import JsonValue

    from lumos.core.platform.impl.datahub.client import DataHubClient
    from lumos.core.platform.unreadable import UnreadableItems

_DATASET = "dataset"


class EdgeStore:
    """Reads and changes lineage, which DataHub keeps with the downstream dataset."""

    def __init__(self, client: DataHubClient, environment: str) -> None:
        self._client = client
        self._environment = environment

    def of(self, held: StoredEntity) -> list[LineageEdge]:
        """Return the edges that lead to a dataset."""
        aspect = held.aspects.get(ASPECT)
        if not isinstance(aspect, dict):
            return []
        return read_edges(held.urn, aspect, environment=self._environment)

    def all(self, unread: UnreadableItems) -> Iterator[LineageEdge]:
        """Yield every edge once, in no order; a dataset without a usable name is noted."""
        held = self._client.scroll(_DATASET, aspects=("datasetKey", ASPECT))
        for edges in unread.each("lineage_edge", held, self.of, name=attrgetter("urn")):
            yield from edges

    def put(self, edges: Sequence[LineageEdge]) -> None:
        """Add edges, each in place of the one with the same ends and job, by few requests."""
        by_end: dict[str, dict[tuple[str, str, str], LineageEdge]] = {}
        for edge in edges:
            here = dataset_urn(edge.downstream_urn, environment=self._environment)
            by_end.setdefault(here, {})[edge.key] = edge
        found = self._client.get(_DATASET, [*by_end], aspects=(ASPECT,))
        held = {each.urn: each for each in found}
        writes = []
        for here, wanted in by_end.items():
            before, versions = _lineage(held.get(here))
            after = self._with_all(here, before, [*wanted.values()])
            if after != before:
                writes.append(Write(_DATASET, here, {ASPECT: after}, versions=versions))
        self._client.write(writes)

    def put_unless_known(self, upstream: str, downstream: str) -> None:
        """Add a plain edge where none between these is known."""
        plain = LineageEdge.from_json({"upstream_urn": upstream, "downstream_urn": downstream})
        self._change(upstream, downstream, lambda known: known or [plain])

    def remove(self, edge: LineageEdge) -> None:
        """Remove the edge with the same ends and job."""
        self._change(
            edge.upstream_urn,
            edge.downstream_urn,
            lambda known: [each for each in known if each.key != edge.key],
        )

    def remove_all_of(self, name: str) -> None:
        """Remove every edge that begins or ends at a dataset."""
        here = dataset_urn(name, environment=self._environment)
        for kind, other in self._client.related(here, "DownstreamOf"):
            if kind == "DownstreamOf" and other.startswith("urn:li:dataset:"):
                self._change_at(other, name, lambda _: [])
        if self._aspect(here)[0]:
            self._client.write([Write(_DATASET, here, {ASPECT: {"upstreams": []}})])

    def _with_all(
        self, here: str, aspect: dict[str, JsonValue], edges: Sequence[LineageEdge]
    ) -> dict[str, JsonValue]:
        """Return the lineage of a dataset with edges that lead to it added or replaced."""
        name = edges[0].downstream_urn
        for upstream, same in groupby(
            sorted(edges, key=_by_key), key=lambda each: each.upstream_urn
        ):
            new = {edge.key: edge for edge in same}
            known = {
                edge.key: edge
                for edge in read_edges(here, aspect, environment=self._environment, downstream=name)
                if edge.upstream_urn == upstream
            }
            if {**known, **new} != known:
                wanted = sorted({**known, **new}.values(), key=_by_key)
                aspect = with_edges(
                    aspect, name, wanted, upstream=upstream, environment=self._environment
                )
        return aspect

    def _change(
        self,
        upstream: str,
        downstream: str,
        change: Callable[[list[LineageEdge]], list[LineageEdge]],
    ) -> None:
        here = dataset_urn(downstream, environment=self._environment)
        self._change_at(here, upstream, change, downstream=downstream)

    def _change_at(
        self,
        here: str,
        upstream: str,
        change: Callable[[list[LineageEdge]], list[LineageEdge]],
        *,
        downstream: str | None = None,
    ) -> None:
        aspect, versions = self._aspect(here)
        name = downstream or str(lumos_dataset_urn(here, environment=self._environment))
        edges = read_edges(here, aspect, environment=self._environment, downstream=name)
        known = [edge for edge in edges if edge.upstream_urn == upstream]
        wanted = sorted(change(known), key=lambda edge: edge.key)
        if wanted == sorted(known, key=lambda edge: edge.key):
            return
        changed = with_edges(aspect, name, wanted, upstream=upstream, environment=self._environment)
        self._client.write([Write(_DATASET, here, {ASPECT: changed}, versions=versions)])

    def _aspect(self, here: str) -> tuple[dict[str, JsonValue], dict[str, str]]:
        found = self._client.get(_DATASET, [here], aspects=(ASPECT,))
        return _lineage(found[0] if found else None)


def _lineage(held: StoredEntity | None) -> tuple[dict[str, JsonValue], dict[str, str]]:
    """Return the lineage that is held of a dataset, and the versions to be replaced."""
    if held is None or ASPECT not in held.aspects:
        return {}, {}
    return object_at(held.aspects, ASPECT), dict(held.versions)


def _by_key(edge: LineageEdge) -> tuple[str, str, str]:
    return edge.key
