"""The edges that a DataHub server holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from lumos.core.models import LineageEdge
from lumos.core.platform.impl.datahub.client import Held, Write
from lumos.core.platform.impl.datahub.lineage import ASPECT, read_edges, with_edges
from lumos.core.platform.impl.datahub.urns import dataset_urn, lumos_dataset_urn

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import JsonValue

    from lumos.core.platform.impl.datahub.client import DataHubClient

_DATASET = "dataset"


class EdgeStore:
    """Reads and changes lineage, which DataHub keeps with the downstream dataset."""

    def __init__(self, client: DataHubClient, environment: str) -> None:
        self._client = client
        self._environment = environment

    def of(self, held: Held) -> list[LineageEdge]:
        """Return the edges that lead to a dataset."""
        aspect = held.aspects.get(ASPECT)
        if not isinstance(aspect, dict):
            return []
        return read_edges(held.urn, aspect, environment=self._environment)

    def all(self) -> Iterator[LineageEdge]:
        """Yield every edge once, in no order."""
        for held in self._client.scroll(_DATASET, aspects=(ASPECT,)):
            yield from self.of(held)

    def put(self, edge: LineageEdge) -> None:
        """Add an edge, or replace the one with the same ends and job."""
        self._change(
            edge.upstream_urn,
            edge.downstream_urn,
            lambda known: [*(each for each in known if each.key != edge.key), edge],
        )

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
        if not found or ASPECT not in found[0].aspects:
            return {}, {}
        return cast("dict[str, JsonValue]", found[0].aspects[ASPECT]), dict(found[0].versions)
