"""The snapshot: all metadata at one time, portable between catalogs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from operator import attrgetter
from typing import Annotated, Self, TypeVar

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from lumos.core.models.base import CanonicalModel, Count, Properties, UtcDatetime, canonical_json
from lumos.core.models.dataset import LumosDataset, with_parts
from lumos.core.models.frozen import FrozenDict
from lumos.core.models.governance import Domain, GlossaryTerm, Tag
from lumos.core.models.lineage import Job, LineageEdge, NeighboursBuilder
from lumos.core.models.ownership import Group, User
from lumos.core.models.urn import Urn

SNAPSHOT_SCHEMA_VERSION = 1

_ModelT = TypeVar("_ModelT", bound=CanonicalModel)


def _in_order_of(identity: str) -> Callable[[tuple[_ModelT, ...]], tuple[_ModelT, ...]]:
    """Return what sorts items by an attribute, and those that share it by their content."""
    key_of = attrgetter(identity)

    def in_order(items: tuple[_ModelT, ...]) -> tuple[_ModelT, ...]:
        keys = [key_of(item) for item in items]
        if all(earlier < later for earlier, later in pairwise(keys)):
            return items
        shared = {key for key, count in Counter(keys).items() if count > 1}

        def rank(item: _ModelT) -> tuple[object, bytes]:
            key = key_of(item)
            return key, canonical_json(item.to_json()) if key in shared else b""

        return tuple(sorted(items, key=rank))

    return in_order


def _identities(
    document: object, validate: ValidatorFunctionWrapHandler
) -> Mapping[Urn, Mapping[str, str]]:
    known: Mapping[Urn, Mapping[str, str]] = validate(document)
    if isinstance(document, Mapping) and len(known) != len(document):
        raise PydanticCustomError("duplicate_urn", "two keys are spellings of the same URN")
    return FrozenDict({urn: FrozenDict(ids) for urn, ids in known.items()})


class SnapshotStatistics(CanonicalModel):
    """How much a snapshot holds."""

    datasets: Count = 0
    fields: Count = 0
    jobs: Count = 0
    lineage_edges: Count = 0
    owners: Count = 0
    tags: Count = 0
    glossary: Count = 0
    domains: Count = 0
    users: Count = 0
    groups: Count = 0


DOCUMENT_CHECKSUM = "document_sha256"
"""The last key of a document that Lumos wrote: the SHA-256 of all bytes before its value."""
CONTENT_CHECKSUM = "content_sha256"
"""The key before it: the SHA-256 of the content, which JSON tools leave as it is."""
CHECKSUMS = (CONTENT_CHECKSUM, DOCUMENT_CHECKSUM)


def _with_checksums(schema: dict[str, JsonValue]) -> None:
    """Allow the checksums of a document, which are not part of its content."""
    properties = schema["properties"]
    if isinstance(properties, dict):
        of_what = {
            CONTENT_CHECKSUM: "The SHA-256 of the content, however the JSON is laid out.",
            DOCUMENT_CHECKSUM: "The SHA-256 of all bytes before this value, as Lumos wrote them.",
        }
        for name, description in of_what.items():
            properties[name] = {
                "type": "string",
                "pattern": "^[0-9a-f]{64}$",
                "description": description,
            }


class Snapshot(CanonicalModel):
    """All metadata of one place at one time."""

    model_config = ConfigDict(json_schema_extra=_with_checksums)

    snapshot_schema_version: int = Field(ge=1, le=SNAPSHOT_SCHEMA_VERSION)
    lumos_version: str
    export_timestamp: UtcDatetime
    source_platform: str
    complete: bool = Field(
        default="true",  # validated to True, so that it is always written out
        validate_default=True,
        json_schema_extra={"default": True},
        description="False when part of the source could not be seen: what is missing may exist.",
    )
    statistics: SnapshotStatistics = SnapshotStatistics()
    datasets: Annotated[tuple[LumosDataset, ...], AfterValidator(_in_order_of("urn"))] = ()
    jobs: Annotated[tuple[Job, ...], AfterValidator(_in_order_of("urn"))] = ()
    lineage_edges: Annotated[tuple[LineageEdge, ...], AfterValidator(_in_order_of("key"))] = ()
    glossary: Annotated[tuple[GlossaryTerm, ...], AfterValidator(_in_order_of("name"))] = ()
    tags: Annotated[tuple[Tag, ...], AfterValidator(_in_order_of("name"))] = ()
    domains: Annotated[tuple[Domain, ...], AfterValidator(_in_order_of("name"))] = ()
    users: Annotated[tuple[User, ...], AfterValidator(_in_order_of("username"))] = ()
    groups: Annotated[tuple[Group, ...], AfterValidator(_in_order_of("name"))] = ()
    identity_map: Annotated[Mapping[Urn, Mapping[str, str]], WrapValidator(_identities)] = Field(
        default_factory=FrozenDict
    )
    extensions: Properties = Field(default_factory=FrozenDict)

    @model_validator(mode="after")
    def _urns_are_unique(self) -> Self:
        sections: dict[str, tuple[LumosDataset | Job, ...]] = {
            "datasets": self.datasets,
            "jobs": self.jobs,
        }
        for section, items in sections.items():
            for earlier, later in pairwise(items):
                if earlier.urn == later.urn:
                    raise PydanticCustomError(
                        "duplicate_urn",
                        "two {section} have the URN {urn}",
                        {"section": section, "urn": str(later.urn)},
                    )
        return self

    def with_derived_parts(self) -> Self:
        """Return the snapshot with statistics counted and datasets' lineage taken from edges."""
        datasets = with_lineage_from(self.lineage_edges, self.datasets)
        derived = self.model_copy(update={"datasets": tuple(datasets)})
        return derived.model_copy(update={"statistics": derived.counted()})

    def counted(self) -> SnapshotStatistics:
        """Count what the snapshot holds, whatever its `statistics` say."""
        owners = {
            (owner.category, owner.name)
            for dataset in self.datasets
            for owner in dataset.ownership.owners
        }
        used_tags = {tag for dataset in self.datasets for tag in dataset.tags}
        return SnapshotStatistics(
            datasets=len(self.datasets),
            fields=sum(len(dataset.schema.fields) for dataset in self.datasets),
            jobs=len(self.jobs),
            lineage_edges=len(self.lineage_edges),
            owners=len(owners),
            tags=len(used_tags | {tag.name for tag in self.tags}),
            glossary=len(self.glossary),
            domains=len(self.domains),
            users=len(self.users),
            groups=len(self.groups),
        )


def with_lineage_from(
    edges: Iterable[LineageEdge], datasets: Iterable[LumosDataset]
) -> Iterator[LumosDataset]:
    """Yield the datasets with their neighbours as the edges, which are the truth, have them."""
    neighbours = NeighboursBuilder(edges)
    for dataset in datasets:
        lineage = neighbours.of(dataset.urn)
        yield dataset if lineage == dataset.lineage else with_parts(dataset, lineage=lineage)
