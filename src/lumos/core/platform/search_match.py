"""One rule of what matches a search and what comes first, for catalogs that only narrow it down.

A catalog's own index is asked for whatever holds the words anywhere; what it gives is then read
and judged as the embedded catalog would, so that a search means the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from lumos.core.errors import UsageError
from lumos.core.json_reading import find_object, find_objects, find_text, find_texts
from lumos.core.platform.search_page import SearchFilters, SearchHit, SearchPage
from lumos.core.store.catalog.search import SearchText, Wanted, label, labels_of
from lumos.core.store.catalog.search_words import distinct_words, name_key, query_words

if TYPE_CHECKING:
    from datetime import datetime

    from lumos.core.json_reading import Json
    from lumos.core.models import LumosDataset

WINDOW: Final = 500
"""How many datasets a catalog is asked for at most; what lies beyond is counted, not ranked."""
MOST_EXCLUDED_NAMED: Final = 10
_MOST_WORDS: Final = 8
_SHORTENED: Final = 4
_MOST_PLACES: Final = 5
_KINDS: Final = ("platform", "format", "database", "namespace", "environment")
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
    wanted = wanted_of(query, chosen)
    if not wanted.words and wanted.text not in _EVERYTHING:
        return SearchPage(offset=offset)
    if wanted.column is not None and not wanted.column_words:
        return SearchPage(offset=offset)
    words = _asked(wanted)
    found = narrow(words)
    matching = _matching(wanted, found.candidates)
    whole = (*wanted.words, *wanted.column_words)[:_MOST_WORDS]
    shortened = tuple(dict.fromkeys(word[:_SHORTENED] for word in whole))
    if not matching and shortened != words:
        found = narrow(shortened)
        matching = _matching(wanted, found.candidates)
        beyond = 0  # what holds no more than the beginning of a word is no match
    else:
        beyond = max(0, found.total - len(found.candidates))
    hits = [hit_of(candidate, wanted) for candidate in matching]
    return _page(hits, chosen.min_quality, limit=limit, offset=offset, beyond=beyond)


def wanted_of(query: str, filters: SearchFilters) -> Wanted:
    """Return what a search looks for, but for its quality."""
    return Wanted(
        query,
        platform=filters.platform,
        owner=filters.owner,
        tag=filters.tag,
        column=filters.column,
    )


def matched_in(wanted: Wanted, document: Json) -> tuple[str, ...]:
    """Return where the words of a search are found in a dataset, best places first."""
    found: dict[str, None] = {}
    for word in wanted.words:
        place = next((place for place, text in _places(document) if _holds(text, word)), None)
        if place is not None:
            found[place] = None
    if wanted.column_words:
        for name, _ in _columns(document):
            if all(_holds(name, word) for word in wanted.column_words):
                found[f"column {name}"] = None
    return tuple(found)[:_MOST_PLACES]


def _places(document: Json) -> Iterator[tuple[str, str]]:
    """Yield what a person would call the places of a dataset, with their texts."""
    yield "name", find_text(document, "name") or ""
    columns = [*_columns(document)]
    for name, _ in columns:
        yield f"column {name}", name
    for tag in find_texts(document, "tags"):
        yield f"tag {tag}", tag
    for owner in find_objects(document, "ownership", "owners"):
        name = find_text(owner, "user") or find_text(owner, "group") or ""
        yield f"owner {name}", name
    for kind, called in (("domains", "domain"), ("glossary_terms", "term")):
        for name in find_texts(document, "governance", kind):
            yield f"{called} {name}", name
    for part in ("description", "business_context"):
        yield "description", find_text(document, "documentation", part) or ""
    for name, description in columns:
        yield f"description of column {name}", description
    urn = find_text(document, "urn") or ""
    kinds = (find_text(document, name) or "" for name in _KINDS)
    yield "path", " ".join((unquote(urn), *kinds))


def _columns(document: Json) -> Iterator[tuple[str, str]]:
    """Yield name and description of every column, at any depth."""
    stack = [*find_objects(document, "schema", "fields")][::-1]
    while stack:
        node = stack.pop()
        if name := find_text(node, "name"):
            yield name, find_text(node, "description") or ""
        inner = [*find_objects(node, "fields"), *find_objects(node, "branches")]
        inner += [each for key in ("items", "key", "value") if (each := find_object(node, key))]
        stack.extend(reversed(inner))


def _holds(text: str, beginning: str) -> bool:
    return bool(text) and _begins(beginning, distinct_words([text]))


def tier_of(name: str, query: str) -> int:
    """Return 0 for a name that is the query, 1 for one with all its words, 2 for any other."""
    words = query_words(query)
    if words and name_key(name) == name_key(query):
        return 0
    return 1 if all(_begins(word, distinct_words([name])) for word in words) else 2


def _asked(wanted: Wanted) -> tuple[str, ...]:
    texts = (wanted.platform, wanted.owner, wanted.tag, wanted.column)
    filters = [word for text in texts if text is not None for word in query_words(text)]
    return tuple(dict.fromkeys((*wanted.words, *filters)))[:_MOST_WORDS]


def _matching(wanted: Wanted, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return what matches, best first."""
    ranked = []
    for candidate in candidates:
        dataset = candidate.dataset
        text = SearchText.of(dataset)
        if not all(_begins(word, text.fields) for word in wanted.column_words):
            continue
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
    hits: Sequence[SearchHit],
    threshold: float | None,
    *,
    limit: int,
    offset: int,
    beyond: int,
) -> SearchPage:
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


def hit_of(candidate: Candidate, wanted: Wanted) -> SearchHit:
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
        matched=matched_in(wanted, dataset.to_json()),
    )
