"""Searching: one catalog, or several at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Self
from urllib.parse import urlsplit

from lumos.core.errors import (
    CapabilityError,
    ConfigurationError,
    LumosError,
    NoCatalogError,
    UsageError,
)
from lumos.core.events import running
from lumos.core.platform.abilities import IdentityAbility
from lumos.core.platform.factory import PlatformFactory
from lumos.core.platform.search_page import SearchFilters, SearchPage, SearchTerms
from lumos.core.runtime.unit_of_work import is_database

if TYPE_CHECKING:
    from lumos.core.runtime.settings import LumosSettings
    from lumos.core.runtime.unit_of_work import UnitOfWork
    from lumos.feature.search.merging import Identities

_ALSO_DATA: Final = frozenset({"snowflake"})
"""Names of catalogs that datasets have as their platform too."""


class CatalogNames(NamedTuple):
    """Which catalogs there are to choose from."""

    chosen: tuple[str, ...]
    """Those of the settings, in their order: `platforms`, or else `platform`."""
    configured: Collection[str]
    known: Collection[str]

    @classmethod
    def of(cls, settings: LumosSettings) -> Self:
        """Return the catalogs of the settings."""
        return cls(
            chosen=tuple(dict.fromkeys(settings.platforms)) or (settings.platform,),
            configured=frozenset(settings.platform_config),
            known=frozenset(PlatformFactory.names()),
        )

    def means_a_catalog(self, name: str) -> bool:
        """Return whether a name given to `--platform` is that of a catalog and not of data."""
        if name in self.chosen or is_database(name):
            return True
        return name not in _ALSO_DATA and (name in self.configured or name in self.known)

    def shown(self, name: str) -> str:
        """Return what answers call a catalog; an address without user and password."""
        if not is_database(name):
            return name
        place = urlsplit(name)
        return f"{place.scheme}://{place.netloc.rpartition('@')[2]}{place.path}"


class SearchController:
    """What `lumos search` does."""

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work
        self._names = CatalogNames.of(work.settings)

    @running("search")
    def search(
        self,
        query: str,
        filters: SearchFilters | None = None,
        *,
        catalogs: Sequence[str] = (),
        platforms: Sequence[str] = (),
        limit: int = 20,
        offset: int = 0,
    ) -> SearchPage:
        """Return the datasets that match, best first, each once.

        Args:
            query: words, or beginnings of words, and terms such as `column:email`.
            filters: what every hit meets.
            catalogs: whom to ask; by default the catalogs of the settings.
            platforms: names that people give to `--platform`: more catalogs, or a platform of data.
            limit: how many hits to return.
            offset: how many to pass over.

        Raises:
            UsageError: two values of one filter are given.
            LumosError: the only catalog, or every one of several, failed.
        """
        named, given = self._told_apart(platforms, filters or SearchFilters())
        names = tuple(dict.fromkeys((*catalogs, *named))) or self._names.chosen
        text, wanted = SearchTerms.of(query, given)
        page = self._found(names, text, filters=wanted, limit=limit, offset=offset)
        if page.total or page.excluded_total or not text:
            return page
        return page.model_copy(update={"suggestions": self._near(text)})

    def _found(
        self,
        names: Sequence[str],
        query: str,
        *,
        filters: SearchFilters,
        limit: int,
        offset: int,
    ) -> SearchPage:
        """Return what one catalog, or several at once, find."""
        if len(names) == 1:
            platform = self._work.platform(names[0])
            return platform.search(query, filters, limit=limit, offset=offset)
        from lumos.feature.search.unified_search import Catalog, UnifiedSearch

        opened: list[Catalog] = []
        unopened: list[tuple[str, LumosError]] = []
        for name in names:
            try:
                opened.append(Catalog(self._names.shown(name), self._work.platform(name)))
            except ConfigurationError:
                raise
            except LumosError as error:
                unopened.append((self._names.shown(name), error))
        search = UnifiedSearch(
            timeout=self._work.settings.search.timeout_seconds, identities=self._identities
        )
        return search.search(
            query, filters, catalogs=opened, unopened=unopened, limit=limit, offset=offset
        )

    def _near(self, text: str) -> tuple[str, ...]:
        """Return names of the state that are nearly the text."""
        from lumos.core.store.catalog.near_names import near_names

        try:
            return near_names(self._work.reader, text)
        except NoCatalogError:
            return ()

    def _told_apart(
        self, given: Sequence[str], filters: SearchFilters
    ) -> tuple[tuple[str, ...], SearchFilters]:
        """Return the catalogs among some names, and filters with the data platform among them."""
        catalogs = dict.fromkeys(name for name in given if self._names.means_a_catalog(name))
        data = [*dict.fromkeys(name for name in given if name not in catalogs)]
        if filters.platform is not None:
            data.append(filters.platform)
        if len(data) > 1:
            raise UsageError(
                f"a search is for one platform of data, not for {' and '.join(data)}",
                hint=f"catalogs may be several: {', '.join(sorted(self._names.known))}",
            )
        if data:
            filters = filters.model_copy(update={"platform": data[0]})
        return tuple(catalogs), filters

    def _identities(self, names: Collection[tuple[str, str]]) -> Identities:
        """Return which datasets catalogs mean, as far as the embedded catalog knows."""
        try:
            return IdentityAbility.of(self._work.platform("embedded")).find_identities(names)
        except (NoCatalogError, CapabilityError):
            return {}
