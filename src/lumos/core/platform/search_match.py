"""One rule of what matches a search and what comes first, for catalogs that only narrow it down.

A catalog's own index is asked for whatever holds the words anywhere; what it gives is then read
and judged as the embedded catalog would, so that a search means the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.errors import UsageError
from lumos.core.platform.search_page import SearchFilters, SearchHit, SearchPage
from lumos.core.store.catalog.search import SearchText, Wanted, label, labels_of
from lumos.core.store.catalog.search_words import distinct_words, name_key, query_words

if TYPE_CHECKING:
    from datetime import datetime

    from lumos.core.models import LumosDataset

WINDOW: Final = 500
"""How many datasets a catalog is asked for at most; what lies beyond is counted, not ranked."""
MOST_EXCLUDED_NAMED: Final = 10
_MOST_WORDS: Final = 8
_SHORTENED: Final = 4
_WEIGHTS: Final = (8, 4, 2, 1)
_EVERYTHING: Final = frozenset({"", "*"})


class Candidate(NamedTuple):
    """A dataset that a catalog's index gave for some words."""

    dataset: LumosDataset
    updated_at: datetime | None = None
    external_id: str | None = None


class Narrowed(NamedTuple):
    """What a catalog's index gave, and how many it said there are."""

    candidates: Sequence[Candidate]
    total: int


Narrow = Callable[[tuple[str, ...]], Narrowed]
"""Gives up to `WINDOW` datasets that hold all of the words somewhere; all, for no word."""


def searched(
    query: str, filters: SearchFilters | None, *, narrow: Narrow, limit: int, offset: int
) -> SearchPage:
    """Return a page of what matches, judged by the words of each dataset that a catalog gives.

    Where a catalog's index finds nothing by the words as they are, it is asked once more by
    their beginnings: `customerid` is a way to write `customer_id` that few indexes know.

    Raises:
        UsageError: the page cannot be.
    """
    for name, value in (("limit", limit), ("offset", offset)):
        if value < 0:
            raise UsageError(f"{name} is {value}; the least is 0")
    chosen = filters or SearchFilters()
    wanted = Wanted(query, platform=chosen.platform, owner=chosen.owner, tag=chosen.tag)
    if not wanted.words and wanted.text not in _EVERYTHING:
        return SearchPage(offset=offset)
    words = _asked(wanted)
    found = narrow(words)
    matching = _matching(wanted, found.candidates)
    shortened = tuple(dict.fromkeys(word[:_SHORTENED] for word in wanted.words[:_MOST_WORDS]))
    if not matching and shortened != words:
        found = narrow(shortened)
        matching = _matching(wanted, found.candidates)
        beyond = 0  # what holds no more than the beginning of a word is no match
    else:
        beyond = max(0, found.total - len(found.candidates))
    return _page(matching, chosen.min_quality, limit=limit, offset=offset, beyond=beyond)


def tier_of(name: str, query: str) -> int:
    """Return 0 for a name that is the query, 1 for one with all its words, 2 for any other."""
    words = query_words(query)
    if words and name_key(name) == name_key(query):
        return 0
    return 1 if all(_begins(word, distinct_words([name])) for word in words) else 2


def _asked(wanted: Wanted) -> tuple[str, ...]:
    texts = (wanted.platform, wanted.owner, wanted.tag)
    filters = [word for text in texts if text is not None for word in query_words(text)]
    return tuple(dict.fromkeys((*wanted.words, *filters)))[:_MOST_WORDS]


def _matching(wanted: Wanted, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return what matches, best first."""
    ranked = []
    for candidate in candidates:
        dataset = candidate.dataset
        text = SearchText.of(dataset)
        if _meets_filters(dataset, wanted) and (score := _score(wanted.words, text)) is not None:
            tier = tier_of(dataset.name, wanted.text) if wanted.words else 0
            ranked.append((tier, -score, dataset.urn, candidate))
    return [candidate for *_, candidate in sorted(ranked, key=lambda each: each[:3])]


def _meets_filters(dataset: LumosDataset, wanted: Wanted) -> bool:
    if wanted.platform is not None and label(dataset.platform) != label(wanted.platform):
        return False
    asked = {
        (kind, label(value))
        for kind, value in (("owner", wanted.owner), ("tag", wanted.tag))
        if value is not None
    }
    return not asked or asked <= labels_of(dataset)


def _score(words: tuple[str, ...], text: SearchText) -> int | None:
    """Return how tellingly a dataset holds the words, None where it does not hold all."""
    score = 0
    for word in words:
        weights = (
            weight for weight, column in zip(_WEIGHTS, text, strict=True) if _begins(word, column)
        )
        best = next(weights, 0)
        if not best:
            return None
        score += best
    return score


def _begins(beginning: str, words: Sequence[str]) -> bool:
    return any(word.startswith(beginning) for word in words)


def _page(
    matching: Sequence[Candidate],
    threshold: float | None,
    *,
    limit: int,
    offset: int,
    beyond: int,
) -> SearchPage:
    hits = [hit_of(candidate) for candidate in matching]
    good = [
        hit
        for hit in hits
        if threshold is None or (hit.quality_score is not None and hit.quality_score >= threshold)
    ]
    kept = {hit.urn for hit in good}
    poor = [hit for hit in hits if hit.urn not in kept]
    return SearchPage(
        hits=tuple(good[offset : offset + limit]),
        total=len(good) + beyond,
        offset=offset,
        excluded=tuple(poor[:MOST_EXCLUDED_NAMED]),
        excluded_total=len(poor),
        exact=not beyond,
    )


def hit_of(candidate: Candidate) -> SearchHit:
    """Return a dataset as search results show it."""
    dataset = candidate.dataset
    quality, statistics = dataset.quality, dataset.statistics
    return SearchHit(
        urn=dataset.urn,
        name=dataset.name,
        platform=dataset.platform,
        format=dataset.format,
        owners=tuple(owner.name for owner in dataset.ownership.owners),
        tags=dataset.tags,
        quality_score=quality.score if quality else None,
        freshness=quality.freshness if quality else None,
        last_modified=statistics.last_modified if statistics else None,
        version=dataset.version,
        description=dataset.documentation.description,
        updated_at=candidate.updated_at,
        external_id=candidate.external_id,
    )
