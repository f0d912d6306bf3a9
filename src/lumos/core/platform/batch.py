"""What is written to a catalog in one call, and what was seen there before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from lumos.core.models import LumosDataset
from lumos.core.platform.abilities import Capability

if TYPE_CHECKING:
    from lumos.core.models import LineageEdge
    from lumos.core.platform.entities import Entity

Document = dict[str, JsonValue]
"""A dataset as `LumosDataset.to_json` writes it."""


class Identity(NamedTuple):
    """What another catalog calls a dataset."""

    urn: str
    catalog: str
    external_id: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A dataset as a catalog held it when it was looked up."""

    dataset: LumosDataset | None = None
    """None where the catalog did not hold it."""
    version: object = field(default=None, compare=False, repr=False)
    """What the adapter needs to write against that state; it means nothing to callers."""
    hidden: frozenset[str] = field(default=frozenset(), compare=False)
    """Parts that the catalog did not show and may hold all the same, such as `tags` or
    `governance:domains`: the token may not read them. What is hidden was not removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What is written in one call of `apply`, in the order of the fields."""

    definitions: Mapping[str, JsonValue] = field(default_factory=dict)
    """Extensions by name, of which only what datasets refer to is written."""
    entities: Sequence[Entity] = ()
    datasets: Sequence[LumosDataset | Document] = ()
    """Of datasets with the same URN the last one counts."""
    edges: Sequence[LineageEdge] = ()
    """Of edges with the same ends and job the last one counts."""
    removed_edges: Sequence[LineageEdge] = ()
    """Known by their ends and job; one that is not there is no error."""
    removed_datasets: Sequence[str] = ()
    """URNs."""
    identities: Sequence[Identity] = ()
    extensions: Mapping[str, JsonValue] = field(default_factory=dict)

    def models(self) -> list[LumosDataset]:
        """Return the datasets as models."""
        return [
            each if isinstance(each, LumosDataset) else LumosDataset.from_document(each)
            for each in self.datasets
        ]

    def documents(self) -> list[Document]:
        """Return the datasets as JSON documents, which are not to be changed."""
        return [each.document if isinstance(each, LumosDataset) else each for each in self.datasets]

    def needs(self) -> Iterator[Capability]:
        """Yield the capabilities that a catalog needs to take it."""
        if self.entities:
            yield Capability.ENTITIES
        if self.edges or self.removed_edges:
            yield Capability.LINEAGE
        if self.removed_datasets:
            yield Capability.DELETE
        if self.identities:
            yield Capability.IDENTITY_MAP
        if self.definitions or self.extensions:
            yield Capability.EXTENSIONS
