"""The interface behind which every catalog is the same to Lumos.

To support a catalog, subclass `MetadataPlatformInterface`, name it, declare its capabilities,
inherit the abilities that belong to them, and write `apply`, `get_dataset` and `list`. Errors are
raised, never returned. Prove it with a subclass of
`lumos.testing.platform_contract.PlatformContract`.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Concatenate, Final, ParamSpec, Self, TypeVar, final

from typing_extensions import override

import lumos
from lumos.core.errors import DatasetNotFoundError, PlatformConflictError
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
from lumos.core.platform.abilities import (
    NEEDS,
    Capability,
    EntityAbility,
    ExtensionAbility,
    IdentityAbility,
    LineageAbility,
    cannot,
    reading_at_once,
    require,
)
from lumos.core.platform.batch import Batch, Seen
from lumos.core.platform.entities import ENTITY_KINDS, Entity, EntityKind, kind_of, name_of
from lumos.core.platform.search_page import SearchFilters, SearchHit, SearchPage

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.platform.fidelity import Fidelity
    from lumos.core.platform.unreadable import Unreadable

__all__ = [
    "ENTITY_KINDS",
    "NEEDS",
    "Batch",
    "Capability",
    "Entity",
    "EntityKind",
    "MetadataPlatformInterface",
    "SearchFilters",
    "SearchHit",
    "SearchPage",
    "Seen",
    "kind_of",
    "name_of",
]

DEFAULT_PAGE = 500
_TRIES: Final = 20
"""How often a dataset is read and written anew that somebody else goes on changing."""
P = ParamSpec("P")
R = TypeVar("R")


class MetadataPlatformInterface(ABC):
    """A catalog: what can be written to it, asked of it and exported from it.

    Every method may raise `PlatformError`, `StateError` or another `LumosError`, and nothing else.
    A method whose capability is not declared raises `CapabilityError`, also where a subclass
    defines it, and so does `apply` for a batch with such a part. Writing is idempotent: an equal
    thing written again changes nothing. Methods that are final are made of the others.
    """

    name: ClassVar[str]
    capabilities: ClassVar[frozenset[Capability]]
    FIDELITY: ClassVar[Mapping[str, Fidelity]] = {}
    """What it makes of each concept of `fidelity.CONCEPTS`; empty where it keeps all as it is."""
    LIMITED: ClassVar[frozenset[str]] = frozenset()
    """Which of `owner` and `domain` it shows a part of: users or one team, and one domain."""
    CONCURRENCY: ClassVar[int] = 1
    """How many threads may call it at once."""
    BATCH: ClassVar[int] = 1
    """How many datasets it takes best in one call of `apply`."""
    EDGE_BATCH: ClassVar[int] = 1
    """How many edges it takes best in one call of `apply`."""
    LOOK_UP: ClassVar[int] = 1
    """How many datasets `find_datasets` finds by one request."""

    @override
    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        for method, capability in NEEDS.items():
            if method in cls.__dict__:
                setattr(cls, method, _guarded(cls.__dict__[method], capability))
        if "apply" in cls.__dict__:
            setattr(cls, "apply", _guarded_apply(cls.__dict__["apply"]))  # noqa: B010

    @classmethod
    @abstractmethod
    def from_config(cls, config: Mapping[str, JsonValue]) -> Self:
        """Build the adapter from its part of the settings.

        Raises:
            ConfigurationError: a setting is unknown, missing or wrong.
        """

    def reached(self) -> str:
        """Ask the catalog who it is, and return that for people to read: `atlas 2.3.0`.

        It asks for as little as shows that the address, the login and the version are right.

        Raises:
            PlatformUnavailableError: nobody answers.
            PlatformAuthError: the server does not accept the token or the password.
            PlatformNotFoundError: the server is not this catalog.
            PlatformAnswerError: the server is not this catalog.
            PlatformVersionError: it is this catalog, in a version that cannot be used.
        """
        next(iter(self.list(page_size=1)), None)
        return self.name

    def close(self) -> None:  # noqa: B027 - an adapter that holds nothing open has nothing to do
        """Close connections; the adapter cannot be used afterwards."""

    @abstractmethod
    def get_dataset(self, urn: str) -> LumosDataset:
        """Return the dataset of a URN.

        Raises:
            DatasetNotFoundError: the catalog does not hold it.
            InvalidUrnError: the text is no URN.
        """

    def find_datasets(self, urns: Sequence[str]) -> dict[str, Seen]:
        """Return for each URN what the catalog holds of it now, also that it holds nothing.

        A catalog that gives out many at once should be asked so. Their neighbours, and what others
        attached to them, may be left out. Parts that the token may not read
        are named in `Seen.hidden`.
        """
        found: dict[str, Seen] = {}
        for urn in urns:
            try:
                found[urn] = Seen(self.get_dataset(urn))
            except DatasetNotFoundError:
                found[urn] = Seen()
        return found

    @abstractmethod
    def list(
        self, *, platform: str | None = None, page_size: int = DEFAULT_PAGE
    ) -> Iterator[LumosDataset]:
        """Yield all datasets in ascending order of URN, each once, fetched page by page."""

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
        raise cannot(self, Capability.SEARCH)

    @abstractmethod
    def apply(self, batch: Batch, seen: Mapping[str, Seen] | None = None) -> None:
        """Write a batch, in the order of its fields; if it fails, any part may have been written.

        Datasets are created or brought up to date as a whole; neighbours that they list become
        edges. A dataset is removed together with its edges.

        Args:
            batch: what to write.
            seen: what `find_datasets` returned, by URN. A dataset of the batch that is among it is
                written only where the catalog still holds what was seen; any other is written over
                what is there now.

        Raises:
            PlatformConflictError: somebody changed a dataset since it was seen; the caller looks
                it up again, and whatever was not written may be given once more.
            DatasetNotFoundError: a dataset to be removed is not there.
        """

    @final
    def delete(self, urn: str) -> None:
        """Remove a dataset together with its edges.

        Raises:
            DatasetNotFoundError: the catalog does not hold it.
        """
        self.apply(Batch(removed_datasets=(Urn(urn),)))

    @final
    def emit_dataset(self, dataset: LumosDataset) -> None:
        """Create a dataset or bring it up to date; neighbours it lists become edges."""
        self.apply(Batch(datasets=(dataset,)))

    @final
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
        require(self, Capability.LINEAGE)
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
        self.apply(Batch(edges=(edge,)))

    @final
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
        require(self, Capability.OWNERSHIP)
        added = Owner.from_json({category: owner, "type": owner_type})
        keeps_edges = Capability.LINEAGE in self.capabilities
        unsaid = {"lineage": DatasetLineage()} if keeps_edges else {}

        def owned(dataset: LumosDataset) -> LumosDataset:
            owners = (*dataset.ownership.owners, added)
            return with_parts(dataset, ownership=Ownership(owners=owners), **unsaid)

        self._change(Urn(dataset_urn), owned)

    @final
    def export_all(self, *, at: datetime) -> Snapshot:
        """Return everything that the catalog holds, as a snapshot of the time given."""
        require(self, Capability.EXPORT)
        with reading_at_once(self):
            parts: dict[str, object] = {"datasets": tuple(self.list())}
            if lineage := LineageAbility.find(self):
                parts["lineage_edges"] = tuple(lineage.list_edges())
            if entities := EntityAbility.find(self):
                for kind, section in _SECTIONS.items():
                    parts[section] = tuple(entities.list_entities(kind))
            if identities := IdentityAbility.find(self):
                parts["identity_map"] = identities.identity_map()
            if extensions := ExtensionAbility.find(self):
                parts["extensions"] = extensions.extensions()
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

    def notices(self) -> tuple[str, ...]:
        """Return what people should know of what was written so far, in one line each.

        It is about what was kept otherwise than one would expect; what was refused is an error.
        """
        return ()

    def unreadable(self) -> tuple[Unreadable, ...]:
        """Return what the latest listings came upon and could not read.

        One unreadable item never ends a listing: it is left out and returned here by kind and
        name. A caller that reads a whole catalog asks afterwards, and never takes what
        is named here for removed.
        """
        return ()

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
        """Read, change and write one dataset, and begin anew where somebody else wrote between.

        Raises:
            DatasetNotFoundError: the catalog does not hold it.
        """
        for left in reversed(range(_TRIES)):
            try:
                with self._holding(urn):
                    seen = self.find_datasets([urn])
                    # What was not found is asked for once more: the error says why.
                    dataset = seen[urn].dataset or self.get_dataset(urn)
                    return self.apply(Batch(datasets=(change(dataset),)), seen)
            except PlatformConflictError:
                if not left:
                    raise
        return None

    def _holding(self, urn: Urn) -> AbstractContextManager[None]:
        """Keep others from changing a dataset within the block, where the catalog can."""
        return nullcontext()

    def _refuse_changed(self, urns: Iterable[str], seen: Mapping[str, Seen]) -> None:
        """Compare datasets with what was seen of them, where the catalog itself does not.

        Raises:
            PlatformConflictError: one is no longer what was seen.
        """
        known = [urn for urn in urns if urn in seen]
        now = self.find_datasets(known) if known else {}
        for urn in known:
            if without_lineage(now[urn].dataset) != without_lineage(seen[urn].dataset):
                raise changed_since(urn, place=self.name)


def without_lineage(dataset: LumosDataset | None) -> LumosDataset | None:
    """Return a dataset without its neighbours, which are not part of what is written of it."""
    if dataset is None or dataset.lineage == DatasetLineage():
        return dataset
    return with_parts(dataset, lineage=DatasetLineage())


def changed_since(urn: str, *, place: str) -> PlatformConflictError:
    """Return the error for a dataset that is no longer what was seen of it."""
    return PlatformConflictError(f"{place}: somebody changed {urn} in between", hint="run again")


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
        require(self, capability)
        return method(self, *args, **kwargs)

    return refuse_or_call


def _guarded_apply(
    apply: Callable[[MetadataPlatformInterface, Batch, Mapping[str, Seen] | None], None],
) -> Callable[[MetadataPlatformInterface, Batch, Mapping[str, Seen] | None], None]:
    """Make `apply` refuse a batch with a part whose capability is not declared."""

    @functools.wraps(apply)
    def refuse_or_apply(
        self: MetadataPlatformInterface,
        batch: Batch,
        seen: Mapping[str, Seen] | None = None,
    ) -> None:
        for capability in batch.needs():
            require(self, capability)
        apply(self, batch, seen)

    return refuse_or_apply
