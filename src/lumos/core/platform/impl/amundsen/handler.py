"""The adapter of Amundsen: first of all the way out of it, and a way in for what it can show.

Its metadata service can neither list nor create tables, so Lumos works on the tables of the MySQL
database behind it, as Amundsen's own publisher does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self, cast

from sqlalchemy import delete
from typing_extensions import override

from lumos.core.errors import CapabilityError, DatasetNotFoundError
from lumos.core.models import LineageEdge, LumosDataset, Urn, with_parts
from lumos.core.platform.batch import Batch, Seen
from lumos.core.platform.catalog_handler import CatalogHandler
from lumos.core.platform.http import DEFAULT_RETRIES
from lumos.core.platform.impl.amundsen.client.database import AmundsenDatabase, mysql_engine
from lumos.core.platform.impl.amundsen.fidelity import FIDELITY
from lumos.core.platform.impl.amundsen.mapping import tables
from lumos.core.platform.impl.amundsen.mapping.conversion import EXTENSION
from lumos.core.platform.impl.amundsen.mapping.keys import TableKey, key_of, native_key_of
from lumos.core.platform.impl.amundsen.reader import (
    listed,
    located,
    located_together,
    read_datasets,
)
from lumos.core.platform.impl.amundsen.search import narrowed
from lumos.core.platform.impl.amundsen.settings import AmundsenSettings
from lumos.core.platform.impl.amundsen.writer.edges import Edges, lineage_of
from lumos.core.platform.impl.amundsen.writer.entities import Entities
from lumos.core.platform.impl.amundsen.writer.tables import TableWriter
from lumos.core.platform.interface import (
    DEFAULT_PAGE,
    Capability,
    Entity,
    EntityKind,
    changed_since,
    without_lineage,
)
from lumos.core.platform.unreadable import UnreadableItems

if TYPE_CHECKING:
    from pydantic import JsonValue
    from sqlalchemy import Connection

    from lumos.core.platform.impl.amundsen.client.graph_copy import GraphCopy
    from lumos.core.platform.impl.amundsen.client.neo4j_graph import Neo4jGraph
    from lumos.core.platform.impl.amundsen.reader import Listed
    from lumos.core.platform.search_match import Narrowed


def _now() -> datetime:
    return datetime.now(UTC)


class AmundsenHandler(CatalogHandler):
    """Amundsen on MySQL or MariaDB; its search service, another server, is never asked."""

    name = "amundsen"
    FIDELITY = FIDELITY
    BATCH = 50
    EDGE_BATCH = 100
    LOOK_UP = 100

    def __init__(self, database: AmundsenDatabase) -> None:
        self._database = database

    @classmethod
    @override
    def from_config(
        cls, config: Mapping[str, JsonValue], *, clock: Callable[[], datetime] = _now
    ) -> Self:
        settings = cls._checked(AmundsenSettings, config)
        if settings.database_url is None:
            return cast("Self", _over_neo4j(settings, clock))
        engine = mysql_engine(settings.database_url.get_secret_value(), timeout=settings.timeout)
        return cls(AmundsenDatabase(engine, clock=clock))

    @override
    def reached(self) -> str:
        with self._database.transaction() as connection:
            located(connection, Urn.of("lumos", "doctor"))
        return f"{self.name} ({self._database.kind})"

    @override
    def apply(self, batch: Batch, seen: Mapping[str, Seen] | None = None) -> None:
        """Write a batch whole or not at all."""
        with self._database.transaction() as connection:
            entities = Entities(self._database, connection)
            edges = Edges(self._database, connection)
            for entity in batch.entities:
                entities.put(entity)
            for dataset in {each.urn: each for each in batch.models()}.values():
                if seen and dataset.urn in seen:
                    self._refuse_other(connection, dataset.urn, seen[dataset.urn])
                self._put(connection, dataset)
            for edge in batch.edges:
                edges.put(edge)
            for edge in batch.removed_edges:
                edges.remove(edge)
            for urn in batch.removed_datasets:
                self._remove(connection, Urn(urn))
            for each in batch.identities:
                entities.put_identity(Urn(each.urn), each.catalog, external_id=each.external_id)
            for name, value in batch.extensions.items():
                entities.put_extension(name, value)

    def _refuse_other(self, connection: Connection, urn: Urn, seen: Seen) -> None:
        """Compare what was seen with what is there now, and lock it until the write is done."""
        place = located(connection, urn)
        now = None if place is None else self._dataset(connection, urn, held=True)
        if without_lineage(now) != without_lineage(seen.dataset):
            raise changed_since(urn, place=self.name)

    @override
    def get_dataset(self, urn: str) -> LumosDataset:
        name = Urn(urn)
        with self._database.transaction() as connection:
            return self._dataset(connection, name)

    @override
    def find_datasets(self, urns: Sequence[str]) -> dict[str, Seen]:
        found: dict[str, Seen] = {urn: Seen() for urn in urns}
        names = [*dict.fromkeys(map(Urn, urns))]
        for start in range(0, len(names), self.LOOK_UP):
            with self._database.transaction() as connection:
                places = located_together(connection, names[start : start + self.LOOK_UP])
                unread = UnreadableItems()
                read = read_datasets(connection, places, unread=unread)
                for odd in unread:
                    raise odd.error
                found |= {one.urn: Seen(one) for one in read}
        return found

    @override
    def list_edges(self) -> Iterator[LineageEdge]:
        self._unread.begin("lineage_edge")
        with self._database.transaction() as connection:
            edges = Edges(self._database, connection).all(self._unread)
        return iter(edges)

    @override
    def identity_map(self) -> dict[Urn, dict[str, str]]:
        with self._database.transaction() as connection:
            self._unread.begin("identity")
            return Entities(self._database, connection).identities(self._unread)

    @override
    def extensions(self) -> dict[str, JsonValue]:
        with self._database.transaction() as connection:
            self._unread.begin("extension")
            return Entities(self._database, connection).extensions(self._unread)

    def _remove(self, connection: Connection, urn: Urn) -> None:
        place = self._place(connection, urn)
        Edges(self._database, connection).remove_all(urn)
        connection.execute(delete(tables.TABLE).where(tables.TABLE.c.rk == place.key))

    @override
    def close(self) -> None:
        self._database.close()

    @override
    def _entities(self, kind: EntityKind) -> Iterable[Entity]:
        with self._database.transaction() as connection:
            return Entities(self._database, connection).all(kind, self._unread)

    @override
    def _narrowed(self, words: tuple[str, ...]) -> Narrowed:
        with self._database.transaction() as connection:
            return narrowed(connection, words)

    def _put(self, connection: Connection, dataset: LumosDataset) -> None:
        urn = dataset.urn
        place = located(connection, urn)
        writer = TableWriter(self._database, connection)
        writer.write(dataset, _key_at(urn, place))
        edges = Edges(self._database, connection)
        if place is None:
            edges.show_waiting(urn)
        edges.put_missing(dataset.lineage.ends(urn), of=urn)

    def _dataset(self, connection: Connection, urn: Urn, *, held: bool = False) -> LumosDataset:
        place = self._place(connection, urn, held=held)
        unread = UnreadableItems()
        datasets = read_datasets(connection, [place], unread=unread)
        for odd in unread:
            raise odd.error
        (dataset,) = datasets
        edges = Edges(self._database, connection).of(urn)
        return with_parts(dataset, lineage=lineage_of(urn, edges))

    def _place(self, connection: Connection, urn: Urn, *, held: bool = False) -> Listed:
        place = located(connection, urn)
        if place is None:
            raise DatasetNotFoundError(urn, platform=self.name)
        if held:
            row = tables.TABLE.select().where(tables.TABLE.c.rk == place.key)
            connection.execute(row.with_for_update()).all()
        return place

    @override
    def _pages(self, platform: str | None, page_size: int) -> Iterator[LumosDataset]:
        with self._database.transaction() as connection:
            places = listed(connection, unread=self._unread)
            touching: dict[Urn, list[LineageEdge]] = defaultdict(list)
            for edge in Edges(self._database, connection).all():
                touching[edge.upstream_urn].append(edge)
                touching[edge.downstream_urn].append(edge)
        for start in range(0, len(places), page_size):
            page = places[start : start + page_size]
            with self._database.transaction() as connection:
                datasets = read_datasets(connection, page, unread=self._unread)
            for dataset in datasets:
                if platform is None or dataset.platform == platform:
                    edges = touching.get(dataset.urn, ())
                    yield with_parts(dataset, lineage=lineage_of(dataset.urn, edges))


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


def _over_neo4j(settings: AmundsenSettings, clock: Callable[[], datetime]) -> AmundsenHandler:
    from lumos.core.platform.impl.amundsen.client.graph_copy import GraphCopy
    from lumos.core.platform.impl.amundsen.client.neo4j_graph import Neo4jGraph

    graph = Neo4jGraph(settings, retries=DEFAULT_RETRIES)
    return AmundsenGraphHandler(GraphCopy(graph, clock=clock), graph)


def _key_at(urn: Urn, place: Listed | None) -> TableKey:
    """Return the key that a dataset has, or is to have."""
    key = key_of(urn)
    if place is None or place.key == key.text:
        return key
    native = native_key_of(urn)
    return native if native and native.text == place.key else key
