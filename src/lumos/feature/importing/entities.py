"""Users, groups, tags, terms, domains and jobs of a snapshot, as an import wants them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lumos.core.models import Domain, GlossaryTerm, Group, Job, Tag, User
from lumos.core.platform.abilities import EntityAbility
from lumos.core.platform.entities import name_of
from lumos.core.store.snapshots.part_format import item_of
from lumos.feature.importing.plan import ImportMode, combined_entity
from lumos.feature.snapshot.source import section_lines

if TYPE_CHECKING:
    from lumos.core.platform.interface import Entity, EntityKind, MetadataPlatformInterface
    from lumos.feature.snapshot.source import SnapshotSource

_KINDS: Mapping[str, tuple[EntityKind, type[Entity]]] = {
    "users": ("user", User),
    "groups": ("group", Group),
    "tags": ("tag", Tag),
    "glossary": ("glossary_term", GlossaryTerm),
    "domains": ("domain", Domain),
    "jobs": ("job", Job),
}


def entity_count(source: SnapshotSource) -> int:
    """Return how many entities a snapshot has."""
    return sum(source.section_count(section) for section in _KINDS)


def planned_entities(
    platform: MetadataPlatformInterface, source: SnapshotSource, *, mode: ImportMode
) -> Iterator[tuple[str, Entity]]:
    """Yield what is to be written, each with the name that a report calls it by."""
    for section, (kind, model) in _KINDS.items():
        if not source.section_count(section):
            continue
        listed = EntityAbility.of(platform).list_entities(kind)
        known = {name_of(entity): entity for entity in listed}
        for line in section_lines(source, section):
            entity = model.from_json(item_of(line))
            present = known.get(name_of(entity))
            if present is not None and mode is ImportMode.SKIP_EXISTING:
                continue
            wanted = entity
            if present is not None and mode is not ImportMode.OVERWRITE:
                wanted = combined_entity(present, entity)
            if wanted != present:
                yield f"{kind} {name_of(entity)}", wanted
