"""What a catalog may be able to do beyond keeping, finding and listing datasets.

An adapter declares a `Capability` and inherits the class of the ability that belongs to it. A
caller asks `LineageAbility.of(platform)`, never for the class of an adapter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final, Self

from lumos.core.errors import CapabilityError

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models import LineageEdge, Urn
    from lumos.core.platform.entities import Entity, EntityKind
    from lumos.core.platform.interface import MetadataPlatformInterface


class Capability(StrEnum):
    """What an adapter declares that its catalog can do."""

    LINEAGE = "LINEAGE"
    """It keeps edges between datasets and jobs: `LineageAbility`, `emit_lineage`."""
    OWNERSHIP = "OWNERSHIP"
    """An owner can be added to a dataset that it holds: `emit_ownership`."""
    ENTITIES = "ENTITIES"
    """It keeps people, groups, tags, terms, domains and jobs: `EntityAbility`."""
    IDENTITY_MAP = "IDENTITY_MAP"
    """It keeps what other catalogs call a dataset: `IdentityAbility`."""
    EXTENSIONS = "EXTENSIONS"
    """It keeps verbatim what Lumos does not model: `ExtensionAbility`."""
    SEARCH = "SEARCH"
    """Datasets can be found by words and filters: `search`."""
    DELETE = "DELETE"
    """Datasets can be removed: `delete`."""
    EXPORT = "EXPORT"
    """All it holds can be exported as one snapshot: `export_all`."""
    DOCUMENTS = "DOCUMENTS"
    """It keeps the canonical documents themselves and reads them as of one moment:
    `DocumentAbility`."""


class Ability(ABC):
    """A group of optional methods that belong to one capability."""

    capability: ClassVar[Capability]

    @classmethod
    def of(cls, platform: MetadataPlatformInterface) -> Self:
        """Return a catalog as one with this ability.

        Raises:
            CapabilityError: it does not have it.
        """
        found = cls.find(platform)
        if found is None:
            raise cannot(platform, cls.capability)
        return found

    @classmethod
    def find(cls, platform: MetadataPlatformInterface) -> Self | None:
        """Return a catalog as one with this ability, or None where it does not have it."""
        declared = cls.capability in platform.capabilities
        return platform if declared and isinstance(platform, cls) else None


class LineageAbility(Ability):
    """Keeps edges between datasets and jobs."""

    capability = Capability.LINEAGE

    @abstractmethod
    def list_edges(self) -> Iterator[LineageEdge]:
        """Yield all edges in a stable order, each once."""


class EntityAbility(Ability):
    """Keeps people, groups, tags, glossary terms, domains and jobs."""

    capability = Capability.ENTITIES

    @abstractmethod
    def list_entities(self, kind: EntityKind) -> Iterator[Entity]:
        """Yield all entities of a kind in ascending order of name (jobs: URN), each once."""


class IdentityAbility(Ability):
    """Keeps what other catalogs call datasets."""

    capability = Capability.IDENTITY_MAP

    @abstractmethod
    def identity_map(self) -> dict[Urn, dict[str, str]]:
        """Return what other catalogs call each dataset."""

    def find_identities(self, names: Collection[tuple[str, str]]) -> dict[tuple[str, str], Urn]:
        """Return the datasets that other catalogs mean, by catalog and the name it gives them.

        Names that nobody mapped are left out. Override it where the whole map need not be read.
        """
        return {
            name: urn
            for urn, given in self.identity_map().items()
            for name in given.items()
            if name in names
        }


class ExtensionAbility(Ability):
    """Keeps verbatim what Lumos does not model."""

    capability = Capability.EXTENSIONS

    @abstractmethod
    def extensions(self) -> dict[str, JsonValue]:
        """Return everything kept that Lumos does not model, by name."""


class DocumentAbility(Ability):
    """Keeps the canonical documents themselves, as the embedded catalog does."""

    capability = Capability.DOCUMENTS

    @abstractmethod
    def documents(
        self, urns: Sequence[str] | None = None, *, neighbours: bool = True
    ) -> Iterator[tuple[Urn, bytes]]:
        """Yield datasets as canonical JSON, in ascending order of URN.

        Args:
            urns: only those of these that the catalog holds, given in that order; without it all.
            neighbours: with the datasets that lineage leads to and from.
        """

    @abstractmethod
    def content_fingerprint(self) -> str | None:
        """Return a text that differs whenever an export would."""

    @abstractmethod
    def reading_at_once(self) -> AbstractContextManager[None]:
        """Let all reads of the block see the catalog as of one moment."""

    @property
    @abstractmethod
    def derives_versions(self) -> bool:
        """Whether a dataset's version follows from its history without being written."""


NEEDS: Final[Mapping[str, Capability]] = {
    "emit_lineage": Capability.LINEAGE,
    "list_edges": Capability.LINEAGE,
    "emit_ownership": Capability.OWNERSHIP,
    "list_entities": Capability.ENTITIES,
    "identity_map": Capability.IDENTITY_MAP,
    "find_identities": Capability.IDENTITY_MAP,
    "extensions": Capability.EXTENSIONS,
    "search": Capability.SEARCH,
    "delete": Capability.DELETE,
    "export_all": Capability.EXPORT,
    "documents": Capability.DOCUMENTS,
    "content_fingerprint": Capability.DOCUMENTS,
}
"""The capability that each optional method belongs to."""


def require(platform: MetadataPlatformInterface, capability: Capability) -> None:
    """Refuse before anything is begun.

    Raises:
        CapabilityError: the catalog cannot do this.
    """
    if capability not in platform.capabilities:
        raise cannot(platform, capability)


def cannot(platform: MetadataPlatformInterface, capability: Capability) -> CapabilityError:
    """Return the error for a capability that a catalog does not have."""
    can = ", ".join(sorted(platform.capabilities)) or "datasets only"
    return CapabilityError(
        f"the platform {platform.name} does not support {capability}", hint=f"it supports {can}"
    )


def reading_at_once(platform: MetadataPlatformInterface) -> AbstractContextManager[None]:
    """Let all reads of the block see a catalog as of one moment, where the catalog can."""
    whole = DocumentAbility.find(platform)
    return nullcontext() if whole is None else whole.reading_at_once()


def content_fingerprint(platform: MetadataPlatformInterface) -> str | None:
    """Return a text that differs whenever an export would; None where there is no such text."""
    whole = DocumentAbility.find(platform)
    return None if whole is None else whole.content_fingerprint()


def derives_versions(platform: MetadataPlatformInterface) -> bool:
    """Return whether the version of a dataset follows from its history without being written."""
    whole = DocumentAbility.find(platform)
    return whole is not None and whole.derives_versions
