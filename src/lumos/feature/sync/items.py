"""What a catalog holds as items to send, each by a name and a hash, those it needs first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import orjson

from lumos.core.json_reading import as_texts
from lumos.core.models import DatasetLineage, Domain, GlossaryTerm, LineageEdge, with_parts
from lumos.core.models.base import canonical_json, sha256_of
from lumos.core.platform.abilities import (
    Capability,
    EntityAbility,
    ExtensionAbility,
    IdentityAbility,
    LineageAbility,
)
from lumos.core.platform.batch import Batch, Identity
from lumos.core.platform.entities import name_of

if TYPE_CHECKING:
    from lumos.core.models import LumosDataset
    from lumos.core.platform.interface import Entity, EntityKind, MetadataPlatformInterface

DATASET: Final = "dataset"
EDGE: Final = "lineage_edge"
IDENTITY: Final = "identity"
JOB: Final = "job"
EXTENSION: Final = "catalog_extension"
BEFORE_DATASETS: Final[tuple[EntityKind, ...]] = (
    "user", "group", "tag", "glossary_term", "domain",
)  # fmt: skip


class SyncItem(NamedTuple):
    """One thing to send."""

    name: str
    hash: str
    send: Callable[[], None]
    content: object


def items_of(
    kind: str,
    source: MetadataPlatformInterface,
    target: MetadataPlatformInterface,
    *,
    wanted: Callable[[LineageEdge], bool],
) -> Iterator[SyncItem]:
    """Yield what a catalog has of a kind other than datasets.

    Args:
        kind: which.
        source: where to read.
        target: where to send it.
        wanted: which steps of lineage.
    """
    if kind == EDGE:
        return _edges(source, target, wanted=wanted)
    if kind == IDENTITY:
        return _identities(source, target)
    if kind == EXTENSION:
        return _extensions(source, target)
    return _entities(cast("EntityKind", kind), source, target)


def _entities(
    kind: EntityKind, source: MetadataPlatformInterface, target: MetadataPlatformInterface
) -> Iterator[SyncItem]:
    """Yield the entities of a kind, parents before their children."""
    for entity in _parents_first(EntityAbility.of(source).list_entities(kind)):
        mark = sha256_of(entity.to_json())
        send = partial(target.apply, Batch(entities=(entity,)))
        yield SyncItem(name_of(entity), mark, send, entity)


def _edges(
    source: MetadataPlatformInterface,
    target: MetadataPlatformInterface,
    *,
    wanted: Callable[[LineageEdge], bool],
) -> Iterator[SyncItem]:
    for edge in filter(wanted, LineageAbility.of(source).list_edges()):
        mark = sha256_of(edge.to_json())
        yield SyncItem(edge_name(edge), mark, partial(target.apply, Batch(edges=(edge,))), edge)


def _identities(
    source: MetadataPlatformInterface, target: MetadataPlatformInterface
) -> Iterator[SyncItem]:
    """Yield what other catalogs call each dataset."""
    for urn, ids in sorted(IdentityAbility.of(source).identity_map().items()):
        named = [Identity(urn, *each) for each in sorted(ids.items())]
        send = partial(target.apply, Batch(identities=named))
        yield SyncItem(urn, sha256_of(ids), send, ids)


def _extensions(
    source: MetadataPlatformInterface, target: MetadataPlatformInterface
) -> Iterator[SyncItem]:
    """Yield what Lumos does not model."""
    for name, value in sorted(ExtensionAbility.of(source).extensions().items()):
        send = partial(target.apply, Batch(extensions={name: value}))
        yield SyncItem(name, sha256_of(value), send, value)


def edge_name(edge: LineageEdge) -> str:
    """Return what a step of lineage is remembered by."""
    return canonical_json(list(edge.key)).decode()


def edge_ends(name: str) -> tuple[str, str, str]:
    """Return the ends and the job of a step of lineage, given what it is remembered by."""
    upstream, downstream, job = as_texts(orjson.loads(name), "name of an edge")
    return upstream, downstream, job


def as_sent(dataset: LumosDataset, target: MetadataPlatformInterface) -> LumosDataset:
    """Return a dataset without its neighbours, where lineage is sent as edges."""
    if Capability.LINEAGE not in target.capabilities or dataset.lineage == DatasetLineage():
        return dataset
    return with_parts(dataset, lineage=DatasetLineage())


def _parents_first(entities: Iterable[Entity]) -> Iterator[Entity]:
    """Yield entities so that a parent comes before its children; a circle is broken somewhere."""
    waiting: dict[str, Entity] = {name_of(entity): entity for entity in entities}
    while waiting:
        chain = [next(iter(waiting))]
        while True:
            entity = waiting[chain[-1]]
            parent = entity.parent if isinstance(entity, GlossaryTerm | Domain) else None
            if parent is None or parent not in waiting or parent in chain:
                break
            chain.append(parent)
        yield from (waiting.pop(name) for name in reversed(chain))
