"""The embedded catalog: a platform adapter over the state database, and the default."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self, cast

from pydantic import Field, SecretStr
from typing_extensions import override

from lumos.core.errors import DamagedDocumentError, DatasetNotFoundError, UsageError
from lumos.core.models import LineageEdge, LumosDataset, Snapshot, Urn
from lumos.core.models.base import CanonicalModel
from lumos.core.platform.catalog_handler import CatalogHandler
from lumos.core.platform.entities import ENTITY_MODELS, kind_of, name_of
from lumos.core.platform.interface import DEFAULT_PAGE, Capability, Entity, EntityKind
from lumos.core.platform.search_page import SearchFilters, SearchHit, SearchPage
from lumos.core.store.catalog_fingerprint import catalog_fingerprint
from lumos.core.store.catalog_tables import EDITOR, CatalogTables, EdgePosition
from lumos.core.store.checksums import DATASETS, EDGES, IDENTITIES
from lumos.core.store.database import StateDatabase
from lumos.core.store.documents import as_model, as_object
from lumos.core.store.observations import DEFAULT_RETENTION
from lumos.core.store.observed_parts import whole_document
from lumos.core.store.search import SearchIndex, Wanted

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models import Contributor
    from lumos.core.settings.retention import ObservationSettings
    from lumos.core.store.engine import Row

MOST_EXCLUDED_NAMED = 10
_EXTENSION = "extension"


def _now() -> datetime:
    return datetime.now(UTC)


class EmbeddedSettings(CanonicalModel):
    """Settings of the embedded catalog."""

    database_url: SecretStr = Field(
        default=SecretStr(".lumos/lumos.db"),
        description="A file path, sqlite:///PATH or postgresql://USER:PASSWORD@HOST/DATABASE.",
    )
    read_only: bool = Field(default=False, description="Refuse every write.")


class EmbeddedHandler(CatalogHandler):
    """The catalog that needs no server: it lives in the state database."""

    name = "embedded"
    capabilities = frozenset(Capability)

    def __init__(
        self,
        database: StateDatabase,
        *,
        clock: Callable[[], datetime] = _now,
        contributor: Contributor = EDITOR,
        retention: ObservationSettings = DEFAULT_RETENTION,
    ) -> None:
        """Work on a state database; what is emitted is said by the contributor."""
        self._contributor = contributor
        self._database = database
        self._tables = CatalogTables(database, retention=retention)
        self._index = SearchIndex.on(database)
        self._clock = clock

    @classmethod
    @override
    def from_config(cls, config: Mapping[str, JsonValue]) -> Self:
        settings = cls._checked(EmbeddedSettings, config)
        url = settings.database_url.get_secret_value()
        return cls(StateDatabase.open(url, read_only=settings.read_only))

    @override
    def emit_dataset(self, dataset: LumosDataset) -> None:
        self._tables.put_dataset(dataset, at=self._clock(), by=self._contributor)

    @override
    def get_dataset(self, urn: str) -> LumosDataset:
        name = Urn(urn)
        dataset = self._tables.dataset(name)
        if dataset is None:
            raise DatasetNotFoundError(name, platform=self.name)
        return dataset

    @override
    def find_datasets(self, urns: Sequence[str]) -> dict[str, LumosDataset]:
        # A damaged dataset is taken for one that is not there: an import then replaces it.
        found: dict[str, LumosDataset] = {}
        for page in _pages(sorted(map(Urn, urns))):
            datasets = self._tables.datasets_named(page, damaged=self._note_damage)
            found.update((dataset.urn, dataset) for dataset in datasets)
        return found

    @override
    def documents(
        self, urns: Sequence[str] | None = None, *, neighbours: bool = True
    ) -> Iterator[tuple[Urn, bytes]]:
        damaged = self._note_damage
        if urns is not None:
            for page in _pages(urns):
                yield from self._tables.documents_named(
                    page, neighbours=neighbours, damaged=damaged
                )
            return
        self._unread.begin("dataset")
        after: str | None = ""
        while after is not None:
            found, after = self._tables.documents_after(
                after, limit=DEFAULT_PAGE, neighbours=neighbours, damaged=damaged
            )
            yield from found

    @override
    def emit_edge(self, edge: LineageEdge) -> None:
        self._tables.put_edge(edge, at=self._clock())

    @override
    def emit_edges(self, edges: Sequence[LineageEdge]) -> None:
        self._tables.put_edges(edges, at=self._clock())

    @override
    def list_edges(self) -> Iterator[LineageEdge]:
        self._unread.begin(EDGES.kind)
        position: EdgePosition | None = EdgePosition()
        while position is not None:
            edges, position = self._tables.edges_after(
                position, limit=DEFAULT_PAGE, damaged=self._note_damage
            )
            yield from edges

    @override
    def remove_edge(self, edge: LineageEdge) -> None:
        self._tables.remove_edge(edge)

    @override
    def emit_entity(self, entity: Entity) -> None:
        self._tables.put_entity(
            kind_of(entity), name_of(entity), document=entity.to_json(), at=self._clock()
        )

    @override
    def emit_identity(self, urn: str, catalog: str, *, external_id: str) -> None:
        self._tables.put_identity(Urn(urn), catalog, external_id=external_id)

    @override
    def identity_map(self) -> dict[Urn, dict[str, str]]:
        self._unread.begin(IDENTITIES.kind)
        return self._tables.identity_map(damaged=self._note_damage)

    @override
    def find_identities(self, names: Collection[tuple[str, str]]) -> dict[tuple[str, str], Urn]:
        return self._tables.find_identities(names)

    @override
    def emit_extension(self, name: str, value: JsonValue) -> None:
        document = {"name": name, "value": value}
        self._tables.put_entity(_EXTENSION, name, document=document, at=self._clock())

    @override
    def extensions(self) -> dict[str, JsonValue]:
        self._unread.begin(_EXTENSION)
        documents = map(as_object, self._rows(_EXTENSION))
        return {str(document["name"]): document["value"] for document in documents}

    @override
    def search(
        self,
        query: str,
        filters: SearchFilters | None = None,
        *,
        limit: int = 20,
        offset: int = 0,
    ) -> SearchPage:
        _at_least("limit", limit, least=0)
        _at_least("offset", offset, least=0)
        chosen = filters or SearchFilters()
        wanted = Wanted(query, platform=chosen.platform, owner=chosen.owner, tag=chosen.tag)
        threshold = chosen.min_quality
        with self._database.consistent_read():
            rows = self._index.find(wanted, min_quality=threshold, limit=limit, offset=offset)
            total = self._index.count(wanted, min_quality=threshold)
            page = SearchPage(hits=tuple(map(_hit, rows)), total=total, offset=offset)
            if threshold is None:
                return page
            below = self._index.find_below(wanted, min_quality=threshold, limit=MOST_EXCLUDED_NAMED)
            excluded_total = self._index.count(wanted, min_quality=None) - total
        return page.model_copy(
            update={"excluded": tuple(map(_hit, below)), "excluded_total": excluded_total}
        )

    @override
    def delete(self, urn: str) -> None:
        name = Urn(urn)
        if not self._tables.delete_dataset(name):
            raise DatasetNotFoundError(name, platform=self.name)

    @override
    def export_all(self, *, at: datetime) -> Snapshot:
        with self.reading_at_once():
            return super().export_all(at=at)

    @property
    @override
    def derives_versions(self) -> bool:
        return True

    @override
    def content_fingerprint(self) -> str | None:
        return catalog_fingerprint(self._database)

    @override
    def reading_at_once(self) -> AbstractContextManager[None]:
        return self._database.consistent_read()

    @override
    def close(self) -> None:
        self._database.close()

    @override
    def _change(self, urn: Urn, change: Callable[[LumosDataset], LumosDataset]) -> None:
        with self._database.transaction():
            self._tables.hold_dataset(urn)
            super()._change(urn, change)

    @override
    def _pages(self, platform: str | None, page_size: int) -> Iterator[LumosDataset]:
        after: str | None = ""
        while after is not None:
            page, after = self._tables.datasets_after(
                after, limit=page_size, platform=platform, damaged=self._note_damage
            )
            yield from page

    @override
    def _entities(self, kind: EntityKind) -> Iterable[Entity]:
        return (as_model(ENTITY_MODELS[kind], document) for document in self._rows(kind))

    def _rows(self, kind: str) -> Iterator[str]:
        after: str | None = ""
        while after is not None:
            page, after = self._tables.entities_after(
                kind, after, limit=DEFAULT_PAGE, damaged=self._note_damage
            )
            yield from page

    def _note_damage(self, error: DamagedDocumentError) -> None:
        self._unread.add(error.kind, error.name, error=error)


def _hit(row: Row) -> SearchHit:
    DATASETS.require(row)
    document = whole_document(row)
    ownership = cast("dict[str, list[dict[str, str]]]", document.get("ownership") or {})
    quality = cast("dict[str, JsonValue]", document.get("quality") or {})
    documentation = cast("dict[str, JsonValue]", document.get("documentation") or {})
    statistics = cast("dict[str, JsonValue]", document.get("statistics") or {})
    return SearchHit.from_json(
        {
            "urn": row.text("urn"),
            "name": document["name"],
            "platform": document["platform"],
            "format": document.get("format"),
            "owners": [
                owner.get("user") or owner.get("group") for owner in ownership.get("owners", ())
            ],
            "tags": document.get("tags", ()),
            "quality_score": row["quality_score"],
            "freshness": quality.get("freshness"),
            "last_modified": statistics.get("last_modified"),
            "version": row["current_version"],
            "description": documentation.get("description"),
            "updated_at": row["updated_at"],
        }
    )


def _pages(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[start : start + DEFAULT_PAGE] for start in range(0, len(names), DEFAULT_PAGE))


def _at_least(name: str, value: int, *, least: int) -> None:
    if value < least:
        raise UsageError(f"{name} is {value}; the least is {least}")
