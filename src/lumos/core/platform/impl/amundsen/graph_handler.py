"""Amundsen on Neo4j: everything is read, nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from typing_extensions import override

from lumos.core.errors import CapabilityError
from lumos.core.platform.impl.amundsen.conversion import EXTENSION
from lumos.core.platform.impl.amundsen.handler import AmundsenHandler
from lumos.core.platform.interface import DEFAULT_PAGE, Capability

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from lumos.core.models import LumosDataset
    from lumos.core.platform.batch import Batch, Seen
    from lumos.core.platform.impl.amundsen.graph_copy import GraphCopy
    from lumos.core.platform.impl.amundsen.neo4j_graph import Neo4jGraph


class AmundsenGraphHandler(AmundsenHandler):
    """The way out of an Amundsen whose metadata lies in Neo4j."""

    capabilities = AmundsenHandler.capabilities - {Capability.OWNERSHIP, Capability.DELETE}

    def __init__(self, copy: GraphCopy, graph: Neo4jGraph) -> None:
        super().__init__(copy)
        self._copy = copy
        self._graph = graph

    @override
    def reached(self) -> str:
        return f"{self.name} (neo4j {self._graph.version()})"

    @override
    def list(
        self, *, platform: str | None = None, page_size: int = DEFAULT_PAGE
    ) -> Iterator[LumosDataset]:
        self._copy.forget()
        return super().list(platform=platform, page_size=page_size)

    @override
    def extensions(self) -> dict[str, JsonValue]:
        found = super().extensions()
        return {**found, EXTENSION: self._copy.rest} if self._copy.rest else found

    @override
    def apply(self, batch: Batch, seen: Mapping[str, Seen] | None = None) -> None:
        raise CapabilityError(
            "an Amundsen on Neo4j is only read", hint="export from it, and import elsewhere"
        )
