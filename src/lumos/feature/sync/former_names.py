"""Lets a catalog keep the names under which it has datasets that were renamed here since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Self, TypeVar

import orjson
from pydantic import JsonValue
from typing_extensions import override

from lumos.core.errors import DatasetNotFoundError
from lumos.core.models import LineageEdge, LumosDataset, Urn
from lumos.core.models.base import CanonicalModel, canonical_json
from lumos.core.platform.abilities import (
    EntityAbility,
    ExtensionAbility,
    IdentityAbility,
    LineageAbility,
)
from lumos.core.platform.interface import DEFAULT_PAGE, MetadataPlatformInterface
from lumos.core.store.renaming import FORMER_URN, Renaming

if TYPE_CHECKING:
    from lumos.core.platform.batch import Batch, Seen
    from lumos.core.platform.entities import Entity, EntityKind
    from lumos.core.platform.unreadable import Unreadable

M = TypeVar("M", bound=CanonicalModel)
_FACTS: Final = (
    "name", "capabilities", "FIDELITY", "CONCURRENCY", "BATCH", "EDGE_BATCH", "LOOK_UP",
)  # fmt: skip


def under_former_names(
    target: MetadataPlatformInterface, former: Mapping[str, str]
) -> MetadataPlatformInterface:
    """Return a catalog that is addressed by the present URNs and keeps the former ones.

    So a sync updates what the catalog has, with all that people attached to it there, and neither
    removes nor creates anything because of a new name here.

    Args:
        target: the catalog.
        former: the URNs under which it has datasets, by their present URNs.
    """
    return _Translated(target, former) if former else target


class _Translated(
    MetadataPlatformInterface, LineageAbility, EntityAbility, IdentityAbility, ExtensionAbility
):
    name = "renamed"
    capabilities = frozenset()

    def __init__(self, target: MetadataPlatformInterface, former: Mapping[str, str]) -> None:
        vars(self).update({fact: getattr(target, fact) for fact in _FACTS})
        self._target = target
        self._there = Renaming(former)
        self._here = Renaming({old: new for new, old in former.items()})

    @classmethod
    @override
    def from_config(cls, config: Mapping[str, JsonValue]) -> Self:
        raise NotImplementedError

    @override
    def get_dataset(self, urn: str) -> LumosDataset:
        try:
            return _renamed(self._target.get_dataset(self._there.of(urn)), self._here)
        except DatasetNotFoundError:
            raise DatasetNotFoundError(Urn(urn), platform=self.name) from None

    @override
    def find_datasets(self, urns: Sequence[str]) -> dict[str, Seen]:
        found = self._target.find_datasets([self._there.of(urn) for urn in urns])
        return {self._here.of(urn): _seen(seen, self._here) for urn, seen in found.items()}

    @override
    def list(
        self, *, platform: str | None = None, page_size: int = DEFAULT_PAGE
    ) -> Iterator[LumosDataset]:
        listed = self._target.list(platform=platform, page_size=page_size)
        return (_renamed(dataset, self._here) for dataset in listed)

    @override
    def apply(self, batch: Batch, seen: Mapping[str, Seen] | None = None) -> None:
        there = self._there
        translated = replace(
            batch,
            entities=[_renamed(entity, there) for entity in batch.entities],
            datasets=[_renamed(dataset, there) for dataset in batch.models()],
            edges=[_renamed(edge, there) for edge in batch.edges],
            removed_edges=[_renamed(edge, there) for edge in batch.removed_edges],
            removed_datasets=[there.of(urn) for urn in batch.removed_datasets],
            identities=[
                each._replace(urn=there.of(each.urn))
                for each in batch.identities
                if each.external_id != there.of(each.urn)  # it is no other name there
            ],
        )
        known = {there.of(urn): _seen(each, there) for urn, each in (seen or {}).items()}
        self._target.apply(translated, known if seen is not None else None)

    @override
    def list_edges(self) -> Iterator[LineageEdge]:
        return (_renamed(edge, self._here) for edge in LineageAbility.of(self._target).list_edges())

    @override
    def list_entities(self, kind: EntityKind) -> Iterator[Entity]:
        listed = EntityAbility.of(self._target).list_entities(kind)
        return (_renamed(entity, self._here) for entity in listed)

    @override
    def identity_map(self) -> dict[Urn, dict[str, str]]:
        known = IdentityAbility.of(self._target).identity_map()
        ids = {Urn(self._here.of(urn)): {**each} for urn, each in known.items()}
        for present, former in self._there.names.items():
            ids.setdefault(Urn(present), {}).setdefault(FORMER_URN, former)
        return ids

    @override
    def extensions(self) -> dict[str, JsonValue]:
        return ExtensionAbility.of(self._target).extensions()

    @override
    def notices(self) -> tuple[str, ...]:
        return self._target.notices()

    @override
    def unreadable(self) -> tuple[Unreadable, ...]:
        return self._target.unreadable()


def _renamed(model: M, renaming: Renaming) -> M:
    text = canonical_json(model.to_json()).decode()
    new = renaming.in_text(text)
    return model if new == text else type(model).from_json(orjson.loads(new))


def _seen(seen: Seen, renaming: Renaming) -> Seen:
    dataset = seen.dataset
    return seen if dataset is None else replace(seen, dataset=_renamed(dataset, renaming))
