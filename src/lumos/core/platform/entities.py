"""The kinds of things beside datasets that a catalog keeps, and what each is found by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from lumos.core.models import Domain, GlossaryTerm, Group, Job, Tag, User

Entity = User | Group | Tag | GlossaryTerm | Domain | Job
EntityKind = Literal["user", "group", "tag", "glossary_term", "domain", "job"]
ENTITY_MODELS: Final[Mapping[EntityKind, type[Entity]]] = {
    "user": User,
    "group": Group,
    "tag": Tag,
    "glossary_term": GlossaryTerm,
    "domain": Domain,
    "job": Job,
}
ENTITY_KINDS: Final[tuple[EntityKind, ...]] = tuple(ENTITY_MODELS)
_KINDS: Final[Mapping[type[Entity], EntityKind]] = {
    model: kind for kind, model in ENTITY_MODELS.items()
}


def kind_of(entity: Entity) -> EntityKind:
    """Return the kind of an entity."""
    return _KINDS[type(entity)]


def name_of(entity: Entity) -> str:
    """Return the name that is unique among entities of its kind."""
    if isinstance(entity, User):
        return entity.username
    return entity.urn if isinstance(entity, Job) else entity.name
