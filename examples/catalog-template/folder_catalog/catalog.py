"""The adapter: what Lumos asks of a catalog, answered from a folder."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from pydantic import JsonValue
from typing_extensions import override

from folder_catalog.json_files import JsonFiles
from lumos.core.errors import ConfigurationError, DatasetNotFoundError, UsageError
from lumos.core.models import (
    DatasetLineage,
    LineageEdge,
    LumosDataset,
    NeighboursBuilder,
    Urn,
    with_parts,
)
from lumos.core.platform.abilities import (
    Capability,
    EntityAbility,
    ExtensionAbility,
    IdentityAbility,
    LineageAbility,
)
from lumos.core.platform.batch import Batch, Seen  # noqa: TC001
from lumos.core.platform.entities import ENTITY_MODELS, Entity, EntityKind, kind_of, name_of
from lumos.core.platform.interface import (
    DEFAULT_PAGE,
    MetadataPlatformInterface,
    SearchFilters,
    SearchPage,
)
from lumos.core.platform.search_match import Candidate, Narrowed, searched
from lumos.core.platform.unreadable import Unreadable, UnreadableItems


class FolderCatalog(
    MetadataPlatformInterface, LineageAbility, EntityAbility, IdentityAbility, ExtensionAbility
):
    """Keeps all that Lumos knows as files of JSON."""

    name = "folder"
    capabilities = frozenset(Capability) - {Capability.DOCUMENTS}

    def __init__(self, folder: Path) -> None:
        self._datasets = JsonFiles(folder / "datasets")
        self._edges = JsonFiles(folder / "edges")
        self._entities = {kind: JsonFiles(folder / kind) for kind in ENTITY_MODELS}
        self._identities = JsonFiles(folder / "identities")
        self._extensions = JsonFiles(folder / "extensions")
        self._unread = UnreadableItems()

    @classmethod
    @override
    def from_config(cls, config: Mapping[str, JsonValue]) -> Self:
        path = config.get("path")
        if set(config) != {"path"} or not isinstance(path, str):
            raise ConfigurationError(
                "platform_config.folder takes one key, path", hint="path: ./catalog"
            )
        return cls(Path(path))

    # What every catalog has to do

    @override
    def apply(self, batch: Batch, seen: Mapping[str, Seen] | None = None) -> None:
        for entity in batch.entities:
            self._entities[kind_of(entity)].put(name_of(entity), entity.to_json())
        datasets = batch.models()
        self._refuse_changed([dataset.urn for dataset in datasets], seen or {})
        for dataset in datasets:
            bare = with_parts(dataset, lineage=DatasetLineage())
            self._datasets.put(dataset.urn, bare.to_json())
            self._add_missing_edges(dataset.lineage.ends(dataset.urn))
        for edge in batch.edges:
            self._edges.put(_key(edge), edge.to_json())
        for edge in batch.removed_edges:
            self._edges.remove(_key(edge))
        for urn in batch.removed_datasets:
            self._remove(Urn(urn))
        for identity in batch.identities:
            parts: JsonValue = {
                "urn": identity.urn, "catalog": identity.catalog, "id": identity.external_id,
            }  # fmt: skip
            self._identities.put(f"{identity.urn} {identity.catalog}", parts)
        for name, value in batch.extensions.items():
            self._extensions.put(name, {"name": name, "value": value})

    @override
    def get_dataset(self, urn: str) -> LumosDataset:
        known = Urn(urn)
        document = self._datasets.get(known)
        if document is None:
            raise DatasetNotFoundError(known, platform=self.name)
        return _with_lineage(LumosDataset.from_json(document), self.list_edges())

    @override
    def list(
        self, *, platform: str | None = None, page_size: int = DEFAULT_PAGE
    ) -> Iterator[LumosDataset]:
        self._unread.begin("dataset")
        documents = self._datasets.all()
        found = [*self._unread.each("dataset", documents, LumosDataset.from_json, name=_named)]
        touching = defaultdict(set)
        for edge in self.list_edges():
            touching[edge.upstream_urn].add(edge)
            touching[edge.downstream_urn].add(edge)
        for dataset in sorted(found, key=lambda dataset: dataset.urn):
            if platform in (None, dataset.platform):
                yield _with_lineage(dataset, touching[dataset.urn])

    @override
    def unreadable(self) -> tuple[Unreadable, ...]:
        return tuple(self._unread)

    # LINEAGE

    @override
    def list_edges(self) -> Iterator[LineageEdge]:
        edges = (LineageEdge.from_json(document) for document in self._edges.all())
        return iter(sorted(edges, key=lambda edge: edge.key))

    # ENTITIES

    @override
    def list_entities(self, kind: EntityKind) -> Iterator[Entity]:
        if kind not in ENTITY_MODELS:
            known = ", ".join(ENTITY_MODELS)
            raise UsageError(f"there are no entities of that kind; known: {known}")
        model = ENTITY_MODELS[kind]
        found = [model.from_json(document) for document in self._entities[kind].all()]
        return iter(sorted(found, key=name_of))

    # IDENTITY_MAP

    @override
    def identity_map(self) -> dict[Urn, dict[str, str]]:
        found: dict[Urn, dict[str, str]] = defaultdict(dict)
        for parts in self._identities.all():
            assert isinstance(parts, dict)  # noqa: S101 - as it was written above
            found[Urn(str(parts["urn"]))][str(parts["catalog"])] = str(parts["id"])
        return dict(sorted(found.items()))

    # EXTENSIONS

    @override
    def extensions(self) -> dict[str, JsonValue]:
        found: dict[str, JsonValue] = {}
        for parts in self._extensions.all():
            assert isinstance(parts, dict)  # noqa: S101 - as it was written above
            found[str(parts["name"])] = parts["value"]
        return dict(sorted(found.items()))

    # SEARCH: a catalog with an index asks it for the words; this one has none and gives all

    @override
    def search(
        self,
        query: str,
        filters: SearchFilters | None = None,
        *,
        limit: int = 20,
        offset: int = 0,
    ) -> SearchPage:
        everything = [*map(Candidate, self.list())]
        found = Narrowed(everything, total=len(everything))
        return searched(query, filters, narrow=lambda words: found, limit=limit, offset=offset)

    def _remove(self, urn: Urn) -> None:
        """Remove a dataset and the edges that lead to it and from it."""
        if self._datasets.get(urn) is None:
            raise DatasetNotFoundError(urn, platform=self.name)
        for edge in self.list_edges():
            if urn in edge.key:
                self._edges.remove(_key(edge))
        self._datasets.remove(urn)

    def _add_missing_edges(self, ends: Sequence[tuple[Urn, Urn]]) -> None:
        """Add a plain edge between each pair of ends that has none."""
        known = {edge.key[:2] for edge in self.list_edges()} if ends else set()
        for upstream, downstream in ends:
            if (upstream, downstream) not in known:
                edge = LineageEdge(upstream_urn=upstream, downstream_urn=downstream)
                self._edges.put(_key(edge), edge.to_json())


def _named(document: JsonValue) -> str:
    return str(document.get("urn")) if isinstance(document, dict) else "without a name"


def _with_lineage(dataset: LumosDataset, edges: Iterable[LineageEdge]) -> LumosDataset:
    """Return a dataset with the neighbours that it has by the edges of the catalog."""
    return with_parts(dataset, lineage=NeighboursBuilder(edges).of(dataset.urn))


def _key(edge: LineageEdge) -> str:
    return " ".join(edge.key)
