"""Asks several catalogs at once, each for a limited time, and puts together what they say."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.errors import LumosError, PlatformUnavailableError, UsageError
from lumos.core.platform.http import impatient
from lumos.core.platform.search_page import CatalogAnswer, SearchFilters, SearchPage
from lumos.feature.search.merging import Answered, Identities, merged, own_names

if TYPE_CHECKING:
    from lumos.core.platform.interface import MetadataPlatformInterface

MOST_AT_ONCE: Final = 8
LAST_HIT: Final = 10_000
_LOOKED_AT: Final = 100
"""How many hits each catalog is asked for at least, so that most duplicates are seen."""


class Catalog(NamedTuple):
    """A catalog to be asked, by the name that people give it."""

    name: str
    platform: MetadataPlatformInterface


_Said = tuple[str, SearchPage | Exception]


class UnifiedSearch:
    """One search over several catalogs; one that fails or is late is named, the others count."""

    def __init__(
        self,
        *,
        timeout: float,
        identities: Callable[[Collection[tuple[str, str]]], Identities],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Get ready.

        Args:
            timeout: how many seconds all catalogs together may take.
            identities: returns which datasets have these names in other catalogs, each given with
                the name of its catalog.
            monotonic: a clock that only goes forward.
        """
        self._timeout = timeout
        self._identities = identities
        self._monotonic = monotonic

    def search(
        self,
        query: str,
        filters: SearchFilters | None = None,
        *,
        catalogs: Sequence[Catalog],
        unopened: Sequence[tuple[str, LumosError]] = (),
        limit: int = 20,
        offset: int = 0,
    ) -> SearchPage:
        """Return one page of what all catalogs found, each dataset once, and what failed.

        Args:
            query: words, or beginnings of words.
            filters: what every hit meets.
            catalogs: whom to ask; of equal hits, those of the first come first.
            unopened: catalogs that could not be asked at all, and why.
            limit: how many hits to return.
            offset: how many to pass over.

        Raises:
            UsageError: the page lies beyond what is looked at.
            PlatformUnavailableError: no catalog answered.
        """
        if offset + limit > LAST_HIT:
            raise UsageError(
                f"several catalogs together give their first {LAST_HIT:,} hits only",
                hint="search for more words, or filter by owner, tag or platform",
            )
        most = max(offset + limit, _LOOKED_AT)
        said = dict(unopened) | self._asked(query, filters, catalogs=catalogs, most=most)
        order = [*(catalog.name for catalog in catalogs), *(name for name, _ in unopened)]
        answers = [
            Answered(name, page) for name in order if isinstance(page := said[name], SearchPage)
        ]
        told = tuple(_answer(name, said[name]) for name in order)
        if not answers:
            raise _nobody_answered(told)
        identities = self._identities(own_names(answers))
        page = merged(query, answers, identities=identities, limit=limit, offset=offset)
        return page.model_copy(update={"catalogs": told})

    def _asked(
        self,
        query: str,
        filters: SearchFilters | None,
        *,
        catalogs: Sequence[Catalog],
        most: int,
    ) -> dict[str, SearchPage | LumosError]:
        deadline = self._monotonic() + self._timeout
        waiting: SimpleQueue[Catalog] = SimpleQueue()
        for catalog in catalogs:
            waiting.put(catalog)
        heard: SimpleQueue[_Said] = SimpleQueue()

        def work() -> None:
            while not waiting.empty():
                try:
                    catalog = waiting.get_nowait()
                except Empty:
                    return
                with impatient(self._timeout):
                    heard.put((catalog.name, _said(catalog, query, filters, most=most)))

        for number in range(min(len(catalogs), MOST_AT_ONCE)):
            # No pool: Python would wait at its end for a thread that a dead server holds.
            Thread(target=work, name=f"lumos-search-{number}", daemon=True).start()
        said: dict[str, SearchPage | LumosError] = {}
        while len(said) < len(catalogs):
            try:
                name, answer = heard.get(timeout=max(0.0, deadline - self._monotonic()))
            except Empty:
                break
            if isinstance(answer, Exception) and not isinstance(answer, LumosError):
                raise answer
            said[name] = answer
        late = PlatformUnavailableError(
            f"no answer within {self._timeout:g} seconds", hint="raise search.timeout_seconds"
        )
        return {catalog.name: said.get(catalog.name, late) for catalog in catalogs}


def _said(
    catalog: Catalog, query: str, filters: SearchFilters | None, *, most: int
) -> SearchPage | Exception:
    try:
        return catalog.platform.search(query, filters, limit=most)
    except Exception as error:  # noqa: BLE001 - raised again in the thread that waits for it
        return error


def _answer(name: str, said: SearchPage | LumosError) -> CatalogAnswer:
    if isinstance(said, SearchPage):
        return CatalogAnswer(catalog=name, total=said.total)
    return CatalogAnswer(catalog=name, code=said.code, problem=said.message, hint=said.hint)


def _nobody_answered(told: Sequence[CatalogAnswer]) -> PlatformUnavailableError:
    reasons = "; ".join(f"{answer.catalog}: {answer.problem}" for answer in told)
    return PlatformUnavailableError(
        f"no catalog answered: {reasons}", hint="look at each with: lumos doctor"
    )
