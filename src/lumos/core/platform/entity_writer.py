"""Writes people, groups and vocabulary to a catalog, leaving alone what is there already."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from lumos.core.errors import LumosError
from lumos.core.models import Domain, GlossaryTerm, Group, Tag, User
from lumos.core.platform.abilities import EntityAbility
from lumos.core.platform.batch import Batch
from lumos.core.platform.entities import name_of
from lumos.core.platform.refusals import ends_run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lumos.core.platform.interface import Entity, EntityKind, MetadataPlatformInterface
    from lumos.core.run_report import RunRecorder
    from lumos.core.settings.item_document import DocumentItem

UNCHANGED = "unchanged"

EntityT = TypeVar("EntityT", User, Group, Tag, GlossaryTerm, Domain)


class EntityWriter:
    """Brings the entities of one kind in a catalog to what a document says."""

    def __init__(self, platform: MetadataPlatformInterface) -> None:
        self._platform = platform

    def write(
        self,
        items: Iterable[DocumentItem],
        model: type[EntityT],
        *,
        kind: EntityKind,
        recorder: RunRecorder,
    ) -> None:
        """Write each item; one that cannot be read or written is reported and spares the rest.

        Raises:
            CapabilityError: the catalog keeps no such entities.
            PlatformError: the catalog is out of reach, or no longer accepts the token.
        """
        listed = EntityAbility.of(self._platform).list_entities(kind)
        held = {name_of(entity): entity for entity in listed}
        given: dict[str, Entity] = {}
        for item in items:
            label = item.label
            try:
                entity = item.read(model)
                label = f"{kind} {name_of(entity)}"
                if given.setdefault(name_of(entity), entity) != entity:
                    message = f"{label} is given twice, and differently"
                    raise item.document.invalid((item.path, message))
                if held.get(name_of(entity)) == entity:
                    recorder.skipped(label, reason=UNCHANGED)
                    continue
                self._platform.apply(Batch(entities=(entity,)))
            except LumosError as error:
                if ends_run(error):
                    raise
                recorder.failed(label, error, scope_seen=True)
                continue
            held[name_of(entity)] = entity
            recorder.done(label)
