"""The adapter of Snowflake as a catalog.

Tables and views that are there are datasets: their comments, tags and owning roles are read and
written. What they have no place for, and datasets that are no tables, lie in the stash. Lumos
never makes, changes or drops a table of others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from typing_extensions import override

from lumos.core.errors import (
    DatasetNotFoundError,
    PlatformAnswerError,
    PlatformError,
    PlatformForbiddenError,
)
from lumos.core.models import DatasetLineage, LineageEdge, LumosDataset, Urn, with_parts
from lumos.core.platform.batch import Batch, Seen
from lumos.core.platform.catalog_handler import CatalogHandler
from lumos.core.platform.impl.snowflake.client import SnowflakeSession, connector, place_of
from lumos.core.platform.impl.snowflake.fidelity import FIDELITY
from lumos.core.platform.impl.snowflake.mapping.conversion import Conversion
from lumos.core.platform.impl.snowflake.mapping.records import TableKey
from lumos.core.platform.impl.snowflake.mapping.replaced import note_of, with_lost
from lumos.core.platform.impl.snowflake.mapping.sql import identifier
from lumos.core.platform.impl.snowflake.reader import TableReader
from lumos.core.platform.impl.snowflake.search import holding
from lumos.core.platform.impl.snowflake.settings import SnowflakeSettings
from lumos.core.platform.impl.snowflake.side_store import StashTable, parts_of, unpacked
from lumos.core.platform.impl.snowflake.writer.edges import Edges, lineages
from lumos.core.platform.impl.snowflake.writer.entities import Entities
from lumos.core.platform.impl.snowflake.writer.tables import TableWriter
from lumos.core.platform.interface import Entity, EntityKind, changed_since, without_lineage
from lumos.core.platform.refusals import ends_run
from lumos.core.platform.search_match import WINDOW, Candidate, Narrowed
from lumos.core.platform.side_store import SideStore
from lumos.core.platform.stash import StashedDataset
from lumos.core.platform.unreadable import UnreadableItems

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.platform.impl.snowflake.mapping.records import TableRecord

_SECTION = "dataset"


class SnowflakeHandler(CatalogHandler):
    """Databases of one account of Snowflake."""

    name = "snowflake"
    FIDELITY = FIDELITY
    BATCH = 100
    EDGE_BATCH = 100

    def __init__(self, session: SnowflakeSession, settings: SnowflakeSettings) -> None:
        self._session = session
        self._databases = settings.databases
        self._place = settings.stash_place
        self._conversion = Conversion(settings)
        self._reader = TableReader(session, settings)
        self._writer = TableWriter(session)
        self._table = StashTable(session, settings.stash_place)
        self._edges = Edges(SideStore(self._table))
        self._others = Entities(
            session,
            settings,
            table=self._table,
            writer=self._writer,
            conversion=self._conversion,
        )

    @classmethod
    @override
    def from_config(cls, config: Mapping[str, JsonValue]) -> Self:
        settings = cls._checked(SnowflakeSettings, config)
        return cls(SnowflakeSession(connector(settings), place=place_of(settings)), settings)

    @override
    def reached(self) -> str:
        ((version,),) = self._session.rows("SELECT CURRENT_VERSION()")
        for database in self._databases:
            schemata = f"{identifier(database)}.INFORMATION_SCHEMA.SCHEMATA"
            self._session.rows(f"SELECT COUNT(*) FROM {schemata}")  # noqa: S608 - quoted
        return f"{self.name} {version}"

    @override
    def apply(self, batch: Batch, seen: Mapping[str, Seen] | None = None) -> None:
        for entity in batch.entities:
            self._others.put(entity)
        if batch.datasets:
            self._put_datasets(batch.models(), seen or {})
        if batch.edges:
            self._edges.put(batch.edges)
        for edge in batch.removed_edges:
            self._edges.remove(edge)
        for urn in batch.removed_datasets:
            self._remove(Urn(urn))
        for each in batch.identities:
            self._others.put_identity(Urn(each.urn), each.catalog, external_id=each.external_id)
        for name, value in batch.extensions.items():
            self._others.put_extension(name, value)

    def _put_datasets(self, datasets: Sequence[LumosDataset], seen: Mapping[str, Seen]) -> None:
        last = {one.urn: one for one in datasets}
        tables = self._reader.read(last)
        held = self._table.texts(_SECTION, last)
        for urn, one in last.items():
            if urn in seen:
                now = self._dataset(urn, tables.get(urn), text=held.get(urn))
                if now not in (without_lineage(seen[urn].dataset), without_lineage(one)):
                    raise changed_since(urn, place=self.name)
        if any(one.tags or one.schema.fields for one in last.values()) and tables:
            self._table.make()  # the schema that tags of Lumos lie in
        documents: dict[str, JsonValue] = {}
        try:
            for urn, one in last.items():
                documents[urn] = self._written(one, tables.get(urn))
        except PlatformError as error:
            if not ends_run(error):  # tables before the one that is refused show theirs already
                self._table.write(_SECTION, documents, held=held)
            raise
        self._table.write(_SECTION, documents, held=held)
        self._edges.put_listed(datasets)

    @override
    def get_dataset(self, urn: str) -> LumosDataset:
        name = Urn(urn)
        found = next(self._read([name], self._reader.read([name])), None)
        if found is None:
            raise DatasetNotFoundError(name, platform=self.name)
        lineage = lineages(self._edges.of([name])).get(name, DatasetLineage())
        return with_parts(found, lineage=lineage)

    @override
    def find_datasets(self, urns: Sequence[str]) -> dict[str, Seen]:
        names = [*map(Urn, urns)]
        found: dict[str, Seen] = {urn: Seen() for urn in urns}
        found |= {one.urn: Seen(one) for one in self._read(names, self._reader.read(names))}
        return found

    @override
    def list_edges(self) -> Iterator[LineageEdge]:
        self._unread.begin("lineage_edge")
        return iter(self._edges.all(self._unread))

    @override
    def identity_map(self) -> dict[Urn, dict[str, str]]:
        self._unread.begin("identity")
        return self._others.identities(self._unread)

    @override
    def extensions(self) -> dict[str, JsonValue]:
        self._unread.begin("extension")
        return self._others.extensions(self._unread)

    def _remove(self, name: Urn) -> None:
        if self._reader.read([name]):
            raise PlatformError(
                f"{name} is a table of Snowflake, and Lumos does not drop tables",
                hint="drop it in Snowflake; then it is gone from this catalog, too",
            )
        if next(self._read([name], {}), None) is None:
            raise DatasetNotFoundError(name, platform=self.name)
        self._edges.remove_all(name)
        self._table.delete(_SECTION, [name])

    @override
    def close(self) -> None:
        self._session.close()

    @override
    def _entities(self, kind: EntityKind) -> Iterable[Entity]:
        return self._others.all(kind, self._unread)

    @override
    def _narrowed(self, words: tuple[str, ...]) -> Narrowed:
        heads = self._reader.heads()
        found = holding(words, heads, reader=self._reader, table=self._table, section=_SECTION)
        page, beyond = found[:WINDOW], len(found[WINDOW:])
        tables = self._reader.filled(
            [heads[urn] for urn in page if urn in heads], refused=lambda urn, error: None
        )
        page = [urn for urn in page if urn in tables or urn not in heads]  # a listing names others
        candidates = [
            Candidate(one, external_id=".".join(heads[one.urn].key) if one.urn in heads else None)
            for one in self._read(page, tables, unread=UnreadableItems())  # a listing names them
        ]
        return Narrowed(candidates, len(candidates) + beyond)

    def _written(self, dataset: LumosDataset, table: TableRecord | None) -> JsonValue:
        """Bring a table to what its dataset says, and return what else has to be kept."""
        bare = with_parts(dataset, lineage=DatasetLineage())
        if table is None:
            native = LumosDataset(urn=dataset.urn, name=dataset.name, platform=dataset.platform)
            kept = StashedDataset.of(bare, native=native).stash
            return {"name": dataset.name, "platform": dataset.platform, "stash": kept}
        wanted = self._conversion.wanted(dataset, table)
        self._writer.write(table, wanted)
        native = self._conversion.dataset(wanted)
        kept = StashedDataset.of(bare, native=native).stash
        return {"table": note_of(wanted, self._place), "stash": kept}

    def _read(
        self,
        urns: Iterable[Urn],
        tables: Mapping[Urn, TableRecord],
        *,
        unread: UnreadableItems | None = None,
    ) -> Iterator[LumosDataset]:
        """Yield those datasets that there are, in the order given, without their lineage.

        One that cannot be read is noted, if there is where to.
        """
        names = (*urns,)
        texts = self._table.texts(_SECTION, names)

        def read(urn: Urn) -> LumosDataset | None:
            return self._dataset(urn, tables.get(urn), text=texts.get(urn))

        found: Iterable[LumosDataset | None] = map(read, names)
        if unread is not None:
            found = unread.each(_SECTION, names, read, name=str, also=(PlatformAnswerError,))
        yield from (one for one in found if one is not None)

    def _dataset(
        self, urn: Urn, table: TableRecord | None, *, text: str | None
    ) -> LumosDataset | None:
        kept = parts_of(unpacked(text)) if text is not None else {}
        if table is not None:
            whole = with_lost(table, kept.get("table"), place=self._place)
            native = self._conversion.dataset(whole)
        elif text is None or "table" in kept:  # a table that was dropped since is no dataset
            return None
        else:
            native = LumosDataset(urn=urn, name=str(kept["name"]), platform=str(kept["platform"]))
        return StashedDataset.merged(native, kept.get("stash"))

    @override
    def _pages(self, platform: str | None, page_size: int) -> Iterator[LumosDataset]:
        heads = self._reader.heads()
        kept = self._unread.each(_SECTION, self._table.names(_SECTION), Urn, name=str)
        names = sorted({*heads, *kept})
        neighbours = lineages(self._edges.all(UnreadableItems())) if names else {}
        shown = {head.key[:2] for head in heads.values()}
        for start in range(0, len(names), page_size):
            page = names[start : start + page_size]
            refused: dict[Urn, PlatformError] = {}
            tables = self._reader.filled(
                [heads[urn] for urn in page if urn in heads], refused=refused.__setitem__
            )
            refused |= {urn: error for urn in page if (error := self._hidden(urn, shown))}
            for one in self._read(
                [urn for urn in page if urn in tables or urn not in heads],
                tables,
                unread=self._unread,
            ):
                refused.pop(one.urn, None)
                if platform is None or one.platform == platform:
                    lineage = neighbours.get(one.urn, DatasetLineage())
                    yield with_parts(one, lineage=lineage)
            for urn, error in refused.items():
                self._unread.add(_SECTION, urn, error=error)

    def _hidden(self, urn: Urn, shown: Collection[tuple[str, str]]) -> PlatformError | None:
        """Return the error for a table of a schema of which the role sees no table at all.

        Snowflake answers the same for dropped and hidden tables. Where all tables of a schema
        are gone at once, a grant is more likely to be missing.
        """
        key = TableKey.of(urn)
        if key is None or key.database not in self._databases or key[:2] in shown:
            return None
        return PlatformForbiddenError(
            f"the role of Lumos sees no table of the schema {key.database}.{key.schema}, where "
            "Lumos wrote to this one",
            hint="grant it USAGE of the schema and REFERENCES of its tables; if they were dropped, "
            "delete the row of this dataset from the table STASH",
        )
