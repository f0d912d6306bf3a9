"""The interface behind which every catalog is the same to Lumos.

To support a catalog, subclass `MetadataPlatformInterface`, name it, declare its capabilities, and
write the methods that belong to them. Errors are raised, never returned. Prove it with a subclass
of `lumos.testing.platform_contract.PlatformContract`.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from enum import StrEnum
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Concatenate, ParamSpec, Self, TypeVar

from typing_extensions import override

import lumos
from lumos.core.errors import CapabilityError, DatasetNotFoundError
from lumos.core.models import (
    SNAPSHOT_SCHEMA_VERSION,
    ColumnMapping,
    DatasetLineage,
    LineageEdge,
    LumosDataset,
    Owner,
    Ownership,
    Snapshot,
    Urn,
    with_parts,
)
from lumos.core.models.base import canonical_json
from lumos.core.platform.entities import ENTITY_KINDS, Entity, EntityKind, kind_of, name_of
from lumos.core.platform.search_page import SearchFilters, SearchHit, SearchPage

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.platform.fidelity import Fidelity
    from lumos.core.platform.unreadable import Unreadable

__all__ = [
    "ENTITY_KINDS",
    "Capability",
    "Entity",
    "EntityKind",
    "MetadataPlatformInterface",
    "SearchFilters",
    "SearchHit",
    "SearchPage",
    "kind_of",
    "name_of",
]

DEFAULT_PAGE = 500
P = ParamSpec("P")
R = TypeVar("R")


class Capability(StrEnum):
    """What a catalog may be able to do beyond keeping and listing datasets."""

    LINEAGE = "LINEAGE"
    """It keeps edges between datasets and jobs.

    `emit_edge`, `emit_edges`, `emit_lineage`, `list_edges`, `remove_edge`.
    """
    OWNERSHIP = "OWNERSHIP"
    """An owner can be added to a dataset that it holds: `emit_ownership`."""
    ENTITIES = "ENTITIES"
    """It keeps people, groups, tags, terms, domains and jobs: `emit_entity`, `list_entities`."""
    IDENTITY_MAP = "IDENTITY_MAP"
    """It keeps what other catalogs call a dataset: `emit_identity`, `identity_map`."""
    EXTENSIONS = "EXTENSIONS"
    """It keeps verbatim what Lumos does not model: `emit_extension`, `extensions`."""
    SEARCH = "SEARCH"
    """Datasets can be found by words and filters: `search`."""
    DELETE = "DELETE"
    """Datasets can be removed: `delete`."""
    EXPORT = "EXPORT"
    """All it holds can be taken out as one snapshot: `export_all`."""


NEEDS: Mapping[str, Capability] = {
    "emit_edge": Capability.LINEAGE,
    "emit_edges": Capability.LINEAGE,
    "emit_lineage": Capability.LINEAGE,
    "list_edges": Capability.LINEAGE,
    "remove_edge": Capability.LINEAGE,
    "emit_ownership": Capability.OWNERSHIP,
    "emit_entity": Capability.ENTITIES,
    "list_entities": Capability.ENTITIES,
    "emit_identity": Capability.IDENTITY_MAP,
    "identity_map": Capability.IDENTITY_MAP,
    "emit_extension": Capability.EXTENSIONS,
    "extensions": Capability.EXTENSIONS,
    "search": Capability.SEARCH,
    "delete": Capability.DELETE,
    "export_all": Capability.EXPORT,
}
"""The capability that each optional method belongs to."""


class MetadataPlatformInterface(ABC):
    """A catalog: what can be put into it, asked of it and taken out of it.

    Every method may raise `PlatformError`, `StateError` or another `LumosError`, and nothing else.
    A method whose capability is not declared raises `CapabilityError`, also where a subclass
    defines it. Emitting is idempotent: an equal thing emitted again changes nothing.
    """

    name: ClassVar[str]
    capabilities: ClassVar[frozenset[Capability]]
    FIDELITY: ClassVar[Mapping[str, Fidelity]] = {}
    """What it makes of each concept of `fidelity.CONCEPTS`; empty where it keeps all as it is."""
    CONCURRENCY: ClassVar[int] = 1
    """How many threads may call it at once."""
    BATCH: ClassVar[int] = 1
    """How many datasets it likes to be told of in one call of `emit_datasets`."""
    EDGE_BATCH: ClassVar[int] = 1
    """How many edges it likes to be told of in one call of `emit_edges`."""
    LOOK_UP: ClassVar[int] = 1
    """How many datasets `find_datasets` finds by one request."""

    @override
    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        for method, capability in NEEDS.items():
            if method in cls.__dict__:
                setattr(cls, method, _guarded(cls.__dict__[method], capability))

    @classmethod
    @abstractmethod
    def from_config(cls, config: Mapping[str, JsonValue]) -> Self:
        """Build the adapter from its part of the settings.

        Raises:
            ConfigurationError: a setting is unknown, missing or wrong.
        """

    @abstractmethod
    def emit_dataset(self, dataset: LumosDataset) -> None:
        """Create a dataset or bring it up to date; neighbours it lists become edges."""

    def emit_datasets(self, datasets: Sequence[LumosDataset]) -> None:
        """Create or update several datasets; if it fails, any of them may have been written."""
        for dataset in datasets:
            self.emit_dataset(dataset)

    def update_datasets(self, datasets: Sequence[LumosDataset]) -> None:
        """Create or update several datasets that `find_datasets` was asked for before.

        Raises:
            PlatformConflictError: one was changed since, in a catalog that can tell; the caller
                looks at it again, and whatever was not written may be given once more.
        """
        self.emit_datasets(datasets)

    def update_documents(self, documents: Sequence[dict[str, JsonValue]]) -> None:
        """Do the same with datasets given as `to_json` writes them.

        A catalog that is told of them as JSON need not build them first.
        """
        self.update_datasets([LumosDataset.from_document(document) for document in documents])

    @abstractmethod
    def get_dataset(self, urn: str) -> LumosDataset:
        """Return the dataset of a URN.

        Raises:
            DatasetNotFoundError: the catalog does not hold it.
            InvalidUrnError: the text is no URN.
        """

    @abstractmethod
    def list(
        self, *, platform: str | None = None, page_size: int = DEFAULT_PAGE
    ) -> Iterator[LumosDataset]:
        """Yield all datasets in ascending order of URN, each once, fetched page by page."""

    def find_dataset(self, urn: str) -> LumosDataset | None:
        """Return the dataset of a URN, or nothing where the catalog does not hold it."""
        try:
            return self.get_dataset(urn)
        except DatasetNotFoundError:
            return None

    def find_datasets(self, urns: Sequence[str]) -> dict[str, LumosDataset]:
        """Return those of some datasets that the catalog holds, by URN.

        A catalog that gives out many at once should be asked so. Their neighbours, and what others
        attached to them, may be left out.
        """
        found = ((urn, self.find_dataset(urn)) for urn in urns)
        return {urn: dataset for urn, dataset in found if dataset is not None}

    def documents(
        self, urns: Sequence[str] | None = None, *, neighbours: bool = True
    ) -> Iterator[tuple[Urn, bytes]]:
        """Yield datasets as canonical JSON, in ascending order of URN.

        Args:
            urns: only those of these that the catalog holds, given in that order; without it all.
            neighbours: with the datasets that lineage leads to and from.
        """
        found = self.list() if urns is None else filter(None, map(self.find_dataset, urns))
        for dataset in found:
            shown = dataset if neighbours else with_parts(dataset, lineage=DatasetLineage())
            yield dataset.urn, canonical_json(shown.document)

    def emit_lineage(
        self,
        upstream_urn: str,
        downstream_urn: str,
        lineage_type: str = "TRANSFORMED",
        *,
        column_mappings: Iterable[ColumnMapping] = (),
        job_urn: str | None = None,
        basis: str = "DECLARED",
        confidence: float = 1.0,
        provenance: str | None = None,
        created_at: datetime | None = None,
        created_by: str | None = None,
    ) -> None:
        """Add a step of lineage, or bring it up to date.

        Raises:
            InvalidModelError: the arguments do not make an edge.
        """
        edge = LineageEdge.from_json(
            {
                "upstream_urn": upstream_urn,
                "downstream_urn": downstream_urn,
                "lineage_type": lineage_type,
                "column_mappings": tuple(column_mappings),
                "job_urn": job_urn,
                "basis": basis,
                "confidence": confidence,
                "provenance": provenance,
                "created_at": created_at,
                "created_by": created_by,
            }
        )
        self.emit_edge(edge)

    def emit_edge(self, edge: LineageEdge) -> None:
        """Add an edge, or bring the one with the same ends and job up to date."""
        raise self._cannot(Capability.LINEAGE)

    def emit_edges(self, edges: Sequence[LineageEdge]) -> None:
        """Add or update several edges; if it fails, any of them may have been written.

        Of edges with the same ends and job the last one counts.
        """
        self.require(Capability.LINEAGE)
        for edge in edges:
            self.emit_edge(edge)

    def list_edges(self) -> Iterator[LineageEdge]:
        """Yield all edges in a stable order, each once."""
        raise self._cannot(Capability.LINEAGE)

    def remove_edge(self, edge: LineageEdge) -> None:
        """Remove the edge with the same ends and job; one that is not there is no error."""
        raise self._cannot(Capability.LINEAGE)

    def emit_ownership(
        self,
        dataset_urn: str,
        owner: str,
        owner_type: str = "TECHNICAL_OWNER",
        *,
        category: str = "user",
    ) -> None:
        """Add an owner, a `user` or a `group`, to a dataset; other owners stay.

        Raises:
            DatasetNotFoundError: the catalog does not hold the dataset.
            InvalidModelError: the arguments do not make an owner.
        """
        self.require(Capability.OWNERSHIP)
        added = Owner.from_json({category: owner, "type": owner_type})
        keeps_edges = Capability.LINEAGE in self.capabilities
        unsaid = {"lineage": DatasetLineage()} if keeps_edges else {}

        def owned(dataset: LumosDataset) -> LumosDataset:
            owners = (*dataset.ownership.owners, added)
            return with_parts(dataset, ownership=Ownership(owners=owners), **unsaid)

        self._change(Urn(dataset_urn), owned)

    def emit_entity(self, entity: Entity) -> None:
        """Create a user, group, tag, glossary term, domain or job, or bring it up to date."""
        raise self._cannot(Capability.ENTITIES)

    def list_entities(self, kind: EntityKind) -> Iterator[Entity]:
        """Yield all entities of a kind in ascending order of name (jobs: URN), each once."""
        raise self._cannot(Capability.ENTITIES)

    def emit_identity(self, urn: str, catalog: str, *, external_id: str) -> None:
        """Record what another catalog calls a dataset."""
        raise self._cannot(Capability.IDENTITY_MAP)

    def identity_map(self) -> dict[Urn, dict[str, str]]:
        """Return what other catalogs call each dataset."""
        raise self._cannot(Capability.IDENTITY_MAP)

    def find_identities(self, names: Collection[tuple[str, str]]) -> dict[tuple[str, str], Urn]:
        """Return the datasets that other catalogs mean, by catalog and the name it gives them.

        Of names that nobody mapped nothing is said. A catalog that need not read its whole map
        for this should not.
        """
        return {
            name: urn
            for urn, given in self.identity_map().items()
            for name in given.items()
            if name in names
        }

    def prepare_extension(self, name: str, value: JsonValue) -> None:  # noqa: B027
        """Write what of an extension has to be there before anything that refers to it.

        It is told of each extension before the datasets, and `emit_extension` after them.
        """

    def emit_extension(self, name: str, value: JsonValue) -> None:
        """Keep something that Lumos does not model, under a name that says whose it is."""
        raise self._cannot(Capability.EXTENSIONS)

    def extensions(self) -> dict[str, JsonValue]:
        """Return everything kept that Lumos does not model."""
        raise self._cannot(Capability.EXTENSIONS)

    def search(
        self,
        query: str,
        filters: SearchFilters | None = None,
        *,
        limit: int = 20,
        offset: int = 0,
    ) -> SearchPage:
        """Find datasets that have a word with each of the query's words as its beginning.

        A match in the name comes before any other. No query text is an error; an empty one finds
        everything.
        """
        raise self._cannot(Capability.SEARCH)

    def delete(self, urn: str) -> None:
        """Remove a dataset together with its edges.

        Raises:
            DatasetNotFoundError: the catalog does not hold it.
        """
        raise self._cannot(Capability.DELETE)

    def export_all(self, *, at: datetime) -> Snapshot:
        """Return everything that the catalog holds, as a snapshot of the time given."""
        self.require(Capability.EXPORT)
        parts: dict[str, object] = {"datasets": tuple(self.list())}
        if Capability.LINEAGE in self.capabilities:
            parts["lineage_edges"] = tuple(self.list_edges())
        if Capability.ENTITIES in self.capabilities:
            for kind, section in _SECTIONS.items():
                parts[section] = tuple(self.list_entities(kind))
        if Capability.IDENTITY_MAP in self.capabilities:
            parts["identity_map"] = self.identity_map()
        if Capability.EXTENSIONS in self.capabilities:
            parts["extensions"] = self.extensions()
        snapshot = Snapshot.from_json(
            {
                "snapshot_schema_version": SNAPSHOT_SCHEMA_VERSION,
                "lumos_version": lumos.__version__,
                "export_timestamp": at,
                "source_platform": self.name,
                **parts,
            }
        )
        return snapshot.model_copy(update={"statistics": snapshot.counted()})

    @property
    def derives_versions(self) -> bool:
        """Whether a dataset's version follows from its history without being emitted."""
        return False

    def content_fingerprint(self) -> str | None:
        """Return what differs whenever an export would; None where only an export could tell."""
        return None

    def remarks(self) -> tuple[str, ...]:
        """Return what people should know of what was written so far, in one line each.

        It is about what was kept otherwise than one would expect; what was refused is an error.
        """
        return ()

    def unreadable(self) -> tuple[Unreadable, ...]:
        """Return what the latest listings came upon and could not read.

        One odd item never ends a listing: it is passed over and told here, by kind and by what
        the catalog calls it. Whoever takes all of a catalog asks afterwards, and never takes what
        is named here for removed.
        """
        return ()

    def reading_at_once(self) -> AbstractContextManager[None]:
        """Let all reads of the block see the catalog as of one moment, where the catalog can."""
        return nullcontext()

    def reached(self) -> str:
        """Ask the catalog who it is, and return that for people to read: `atlas 2.3.0`.

        It asks for as little as shows that the address, the login and the version are right.

        Raises:
            PlatformUnavailableError: nobody answers.
            PlatformAuthError: whoever answers does not accept the token or the password.
            PlatformNotFoundError: whoever answers is not this catalog.
            PlatformAnswerError: whoever answers is not this catalog.
            PlatformVersionError: it is this catalog, in a version that cannot be used.
        """
        next(iter(self.list(page_size=1)), None)
        return self.name

    def require(self, capability: Capability) -> None:
        """Refuse before anything is begun.

        Raises:
            CapabilityError: the catalog cannot do this.
        """
        if capability not in self.capabilities:
            raise self._cannot(capability)

    def close(self) -> None:  # noqa: B027 - an adapter that holds nothing open has nothing to do
        """Let go of connections; the adapter is of no use afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _change(self, urn: Urn, change: Callable[[LumosDataset], LumosDataset]) -> None:
        """Write what becomes of a dataset; a catalog that can lets nobody write in between."""
        self.emit_dataset(change(self.get_dataset(urn)))

    def _cannot(self, capability: Capability) -> CapabilityError:
        can = ", ".join(sorted(self.capabilities)) or "datasets only"
        return CapabilityError(
            f"the platform {self.name} does not support {capability}", hint=f"it supports {can}"
        )


_SECTIONS: dict[EntityKind, str] = {
    "user": "users",
    "group": "groups",
    "tag": "tags",
    "glossary_term": "glossary",
    "domain": "domains",
    "job": "jobs",
}


def _guarded(
    method: Callable[Concatenate[MetadataPlatformInterface, P], R], capability: Capability
) -> Callable[Concatenate[MetadataPlatformInterface, P], R]:
    """Make a method refuse before it starts when its capability is not declared."""

    @functools.wraps(method)
    def refuse_or_call(self: MetadataPlatformInterface, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if capability not in self.capabilities:
            raise self._cannot(capability)
        return method(self, *args, **kwargs)

    return refuse_or_call
