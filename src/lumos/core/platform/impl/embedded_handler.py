"""The embedded catalog: a platform adapter over the state database, and the default."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from pydantic import Field, SecretStr
from typing_extensions import override

from lumos.core.errors import (
    DamagedDocumentError,
    DatasetNotFoundError,
    InvalidModelError,
    UsageError,
)
from lumos.core.json_reading import find_objects, find_value
from lumos.core.models import LineageEdge, LumosDataset, Urn
from lumos.core.models.base import CanonicalModel
from lumos.core.platform.abilities import Capability, DocumentAbility
from lumos.core.platform.batch import Batch, Seen
from lumos.core.platform.catalog_handler import CatalogHandler
from lumos.core.platform.entities import ENTITY_MODELS, kind_of, name_of
from lumos.core.platform.interface import DEFAULT_PAGE, Entity, EntityKind
from lumos.core.platform.search_match import MOST_EXCLUDED_NAMED, matched_in, wanted_of
from lumos.core.platform.search_page import SearchFilters, SearchHit, SearchPage
from lumos.core.store.catalog.catalog_fingerprint import catalog_fingerprint
from lumos.core.store.catalog.catalog_tables import CatalogTables
from lumos.core.store.catalog.dataset_rows import EDITOR
from lumos.core.store.catalog.edge_table import EdgePosition
from lumos.core.store.catalog.observations import DEFAULT_RETENTION
from lumos.core.store.catalog.observed_parts import whole_document
from lumos.core.store.catalog.search import SearchIndex, Wanted
from lumos.core.store.checksums import DATASETS, EDGES, IDENTITIES, current_version, refuse_damage
from lumos.core.store.database import StateDatabase
from lumos.core.store.documents import as_model, stored_object

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models import Contributor
    from lumos.core.store.engine import Row
    from lumos.core.store.settings import ObservationSettings

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


class EmbeddedHandler(CatalogHandler, DocumentAbility):
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
    def apply(self, batch: Batch, seen: Mapping[str, Seen] | None = None) -> None:
        """Write a batch whole or not at all."""
        at, tables = self._clock(), self._tables
        with self._database.transaction():
            for entity in batch.entities:
                kind, name = kind_of(entity), name_of(entity)
                tables.entities.put(kind, name, document=entity.to_json(), at=at)
            if batch.datasets:
                self._put_datasets(batch.models(), seen, at=at)
            if batch.edges:
                tables.put_edges(batch.edges, at=at)
            for edge in batch.removed_edges:
                tables.remove_edge(edge)
            for urn in batch.removed_datasets:
                if not tables.delete_dataset(urn):
                    raise DatasetNotFoundError(Urn(urn), platform=self.name)
            for each in batch.identities:
                tables.identities.put(Urn(each.urn), each.catalog, external_id=each.external_id)
            for name, value in batch.extensions.items():
                document = {"name": name, "value": value}
                tables.entities.put(_EXTENSION, name, document=document, at=at)

    def _put_datasets(
        self, datasets: Sequence[LumosDataset], seen: Mapping[str, Seen] | None, *, at: datetime
    ) -> None:
        if seen:
            for urn in sorted(each.urn for each in datasets if each.urn in seen):
                self._tables.hold_dataset(urn)
            self._refuse_changed([each.urn for each in datasets], seen)
        for dataset in datasets:
            self._tables.put_dataset(dataset, at=at, by=self._contributor)

    @override
    def get_dataset(self, urn: str) -> LumosDataset:
        name = Urn(urn)
        dataset = self._tables.dataset(name)
        if dataset is None:
            raise DatasetNotFoundError(name, platform=self.name)
        return dataset

    @override
    def find_datasets(self, urns: Sequence[str]) -> dict[str, Seen]:
        # A damaged dataset is taken for one that is not there: an import then replaces it.
        found: dict[str, Seen] = {urn: Seen() for urn in urns}
        for page in _pages(sorted(map(Urn, urns))):
            datasets = self._tables.datasets_named(page, damaged=self._note_damage)
            found.update((dataset.urn, Seen(dataset)) for dataset in datasets)
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
    def list_edges(self) -> Iterator[LineageEdge]:
        self._unread.begin(EDGES.kind)
        position: EdgePosition | None = EdgePosition()
        while position is not None:
            edges, position = self._tables.edges.after(
                position, limit=DEFAULT_PAGE, damaged=self._note_damage
            )
            yield from edges

    @override
    def identity_map(self) -> dict[Urn, dict[str, str]]:
        self._unread.begin(IDENTITIES.kind)
        return self._tables.identities.all(damaged=self._note_damage)

    @override
    def find_identities(self, names: Collection[tuple[str, str]]) -> dict[tuple[str, str], Urn]:
        return self._tables.identities.find(names)

    @override
    def extensions(self) -> dict[str, JsonValue]:
        self._unread.begin(_EXTENSION)
        documents = map(stored_object, self._rows(_EXTENSION))
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
        wanted = wanted_of(query, chosen)
        threshold = chosen.min_quality
        with self._database.consistent_read():
            rows = self._index.find(wanted, min_quality=threshold, limit=limit, offset=offset)
            total = self._index.count(wanted, min_quality=threshold)
            hits = tuple(_hit(row, wanted) for row in rows)
            page = SearchPage(hits=hits, total=total, offset=offset)
            if threshold is None:
                return page
            below = self._index.find_below(wanted, min_quality=threshold, limit=MOST_EXCLUDED_NAMED)
            excluded_total = self._index.count(wanted, min_quality=None) - total
        return page.model_copy(
            update={
                "excluded": tuple(_hit(row, wanted) for row in below),
                "excluded_total": excluded_total,
            }
        )

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
    @contextmanager
    def _holding(self, urn: Urn) -> Iterator[None]:
        with self._database.transaction():
            self._tables.hold_dataset(urn)
            yield

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
            page, after = self._tables.entities.after(
                kind, after, limit=DEFAULT_PAGE, damaged=self._note_damage
            )
            yield from page

    def _note_damage(self, error: DamagedDocumentError) -> None:
        self._unread.add(error.kind, error.name, error=error)


def _hit(row: Row, wanted: Wanted) -> SearchHit:
    DATASETS.require(row)
    document = whole_document(row)
    owners = find_objects(document, "ownership", "owners")
    version = current_version(row, refuse_damage)
    found = {
        "urn": row.text("urn"),
        "name": document["name"],
        "platform": document["platform"],
        "format": document.get("format"),
        "owners": [owner.get("user") or owner.get("group") for owner in owners],
        "tags": document.get("tags", ()),
        "quality_score": row["quality_score"],
        "freshness": find_value(document, "quality", "freshness"),
        "last_modified": find_value(document, "statistics", "last_modified"),
        "version": version,
        "description": find_value(document, "documentation", "description"),
        "updated_at": row["updated_at"],
        "matched": matched_in(wanted, document),
    }
    try:
        return SearchHit.from_json(found)
    except InvalidModelError:  # of a column that the checksum does not cover
        raise DATASETS.error(row) from None


def _pages(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[start : start + DEFAULT_PAGE] for start in range(0, len(names), DEFAULT_PAGE))


def _at_least(name: str, value: int, *, least: int) -> None:
    if value < least:
        raise UsageError(f"{name} is {value}; the least is {least}")
