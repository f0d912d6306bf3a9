"""What the adapters that come with Lumos have in common, whatever stands behind them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, TypeVar

from typing_extensions import override

from lumos.core.errors import UsageError
from lumos.core.models.base import CanonicalModel
from lumos.core.platform.abilities import (
    Capability,
    EntityAbility,
    ExtensionAbility,
    IdentityAbility,
    LineageAbility,
    cannot,
)
from lumos.core.platform.interface import (
    DEFAULT_PAGE,
    ENTITY_KINDS,
    Entity,
    EntityKind,
    MetadataPlatformInterface,
    SearchFilters,
    SearchPage,
)
from lumos.core.platform.search_match import Narrowed, searched
from lumos.core.platform.unreadable import UNFORESEEN, UnreadableItems, as_lumos_error
from lumos.core.settings.validation import validate_against

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models import LumosDataset
    from lumos.core.platform.unreadable import Unreadable

T = TypeVar("T")
SettingsT = TypeVar("SettingsT", bound=CanonicalModel)


class CatalogHandler(
    MetadataPlatformInterface, LineageAbility, EntityAbility, IdentityAbility, ExtensionAbility
):
    """An adapter with all abilities but that of whole documents, which checks what it is asked."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {Capability.DOCUMENTS}

    @cached_property
    def _unread(self) -> UnreadableItems:
        """What listings passed over; an adapter notes it there."""
        return UnreadableItems()

    @override
    def unreadable(self) -> tuple[Unreadable, ...]:
        return tuple(self._unread)

    @override
    def list(
        self, *, platform: str | None = None, page_size: int = DEFAULT_PAGE
    ) -> Iterator[LumosDataset]:
        if page_size < 1:
            raise UsageError(f"page_size is {page_size}; the least is 1")
        self._unread.begin("dataset")
        return _telling(self._pages(platform, page_size))

    @override
    def list_entities(self, kind: EntityKind) -> Iterator[Entity]:
        if kind not in ENTITY_KINDS:
            known = ", ".join(ENTITY_KINDS)
            raise UsageError(f"there are no entities of that kind; known: {known}")
        self._unread.begin(kind)
        return _telling(iter(self._entities(kind)))

    @override
    def search(
        self,
        query: str,
        filters: SearchFilters | None = None,
        *,
        limit: int = 20,
        offset: int = 0,
    ) -> SearchPage:
        return searched(query, filters, narrow=self._narrowed, limit=limit, offset=offset)

    @classmethod
    def _checked(cls, model: type[SettingsT], config: Mapping[str, JsonValue]) -> SettingsT:
        """Return the settings of this catalog.

        Raises:
            InvalidSettingsError: a setting is unknown, missing or wrong.
        """
        return validate_against(model, config, where=f"platform_config.{cls.name}")

    @abstractmethod
    def _pages(self, platform: str | None, page_size: int) -> Iterator[LumosDataset]:
        """Yield what `list` promises."""

    @abstractmethod
    def _entities(self, kind: EntityKind) -> Iterable[Entity]:
        """Return what `list_entities` promises, for a kind that there is."""

    def _narrowed(self, words: tuple[str, ...]) -> Narrowed:
        """Return what holds all of the words; a catalog that searches by itself needs none."""
        raise cannot(self, Capability.SEARCH)


def _telling(found: Iterator[T]) -> Iterator[T]:
    """Yield what a catalog lists; an unexpected error is reported as a wrong answer."""
    try:
        yield from found
    except UNFORESEEN as error:
        raise as_lumos_error(error) from error
