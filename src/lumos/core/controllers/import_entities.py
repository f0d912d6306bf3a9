"""Users, groups, tags, terms, domains and jobs of a snapshot, as an import wants them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from lumos.core.models import Job, User
from lumos.core.platform.interface import Entity, MetadataPlatformInterface, kind_of
from lumos.feature.snapshot.import_plan import ImportMode, combined_entity

if TYPE_CHECKING:
    from lumos.core.models import Snapshot


def entities_of(snapshot: Snapshot) -> list[Entity]:
    """Return all entities of a snapshot, those of one kind side by side."""
    return [
        *snapshot.users,
        *snapshot.groups,
        *snapshot.tags,
        *snapshot.glossary,
        *snapshot.domains,
        *snapshot.jobs,
    ]


def planned_entities(
    platform: MetadataPlatformInterface, snapshot: Snapshot, *, mode: ImportMode
) -> Iterator[tuple[str, Entity]]:
    """Yield what is to be written, each with the name that a report calls it by."""
    for kind, entities in groupby(entities_of(snapshot), key=kind_of):
        known = {_key(entity): entity for entity in platform.list_entities(kind)}
        for entity in entities:
            present = known.get(_key(entity))
            if present is not None and mode is ImportMode.SKIP_EXISTING:
                continue
            wanted = entity
            if present is not None and mode is not ImportMode.OVERWRITE:
                wanted = combined_entity(present, entity)
            if wanted != present:
                yield f"{kind} {_key(entity)}", wanted


def _key(entity: Entity) -> str:
    if isinstance(entity, User):
        return entity.username
    return entity.urn if isinstance(entity, Job) else entity.name
