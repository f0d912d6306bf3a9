"""Puts the answers of several catalogs together: one order, each dataset once.

A hit comes before another where its name fits the query better; among those that fit alike, where
it stands higher in the answer of the catalog that puts it highest; then by the order in which the
catalogs were named.
Scores of different servers are never compared: they have no common measure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.platform.search_match import MOST_EXCLUDED_NAMED, tier_of
from lumos.core.platform.search_page import HeldBy, SearchHit, SearchPage

if TYPE_CHECKING:
    from lumos.core.models import Urn

Identities = Mapping[tuple[str, str], "Urn"]
"""The dataset that has this name in a catalog."""
_EVERYTHING = frozenset({"", "*"})


class Answered(NamedTuple):
    """What one catalog found, from its first hit on."""

    catalog: str
    page: SearchPage


class _Place(NamedTuple):
    """What decides where a hit comes; the least is first."""

    tier: int
    rank: int
    catalog: int
    urn: Urn


@dataclass
class _Dataset:
    """What all catalogs say of one dataset."""

    place: _Place
    hits: dict[str, SearchHit] = field(default_factory=dict)


def own_names(answers: Sequence[Answered]) -> set[tuple[str, str]]:
    """Return what the catalogs call all that they found, each with the name of its catalog."""
    return {
        _own_name(catalog, hit) for catalog, page in answers for hit in (*page.hits, *page.excluded)
    }


def merged(
    query: str,
    answers: Sequence[Answered],
    *,
    identities: Identities,
    limit: int,
    offset: int,
) -> SearchPage:
    """Return one page of all answers; a dataset that several catalogs hold is one hit."""
    pages = [answer.page for answer in answers]
    good = _datasets(query, [(name, page.hits) for name, page in answers], identities=identities)
    poor = _datasets(
        query, [(name, page.excluded) for name, page in answers], identities=identities
    )
    left_out = [found for urn, found in poor.items() if urn not in good]
    twice = sum(len(found.hits) - 1 for found in good.values())
    not_left_out = sum(len(found.hits) for found in poor.values()) - len(left_out)
    return SearchPage(
        hits=_in_order([*good.values()])[offset : offset + limit],
        total=sum(page.total for page in pages) - twice,
        offset=offset,
        excluded=_in_order(left_out)[:MOST_EXCLUDED_NAMED],
        excluded_total=sum(page.excluded_total for page in pages) - not_left_out,
        exact=all(page.exact and len(page.hits) >= page.total for page in pages),
    )


def _own_name(catalog: str, hit: SearchHit) -> tuple[str, str]:
    return catalog, hit.external_id or hit.urn


def _datasets(
    query: str,
    found: Iterable[tuple[str, Sequence[SearchHit]]],
    *,
    identities: Identities,
) -> dict[Urn, _Dataset]:
    everything = query.strip() in _EVERYTHING
    datasets: dict[Urn, _Dataset] = {}
    for number, (catalog, hits) in enumerate(found):
        ranks: Counter[int] = Counter()
        for hit in hits:
            urn = identities.get(_own_name(catalog, hit), hit.urn)
            tier = tier_of(hit.name, query)
            # Where nothing was asked for nothing fits better: all is in the order of URNs.
            place = _Place(0, 0, 0, urn) if everything else _Place(tier, ranks[tier], number, urn)
            ranks[tier] += 1
            dataset = datasets.setdefault(urn, _Dataset(place))
            dataset.place = min(dataset.place, place)
            dataset.hits.setdefault(catalog, hit)
    return datasets


def _in_order(datasets: Sequence[_Dataset]) -> tuple[SearchHit, ...]:
    return tuple(_one(found) for found in sorted(datasets, key=lambda found: found.place))


def _one(found: _Dataset) -> SearchHit:
    """Return what the catalogs say of a dataset together: of each thing, what the first knows."""
    hits = [*found.hits.values()]
    known = {
        name: next((value for hit in hits if (value := getattr(hit, name)) is not None), None)
        for name in ("format", "quality_score", "freshness", "version", "description")
    }
    return hits[0].model_copy(
        update={
            **known,
            "urn": found.place.urn,
            "owners": _all_of(hit.owners for hit in hits),
            "tags": _all_of(hit.tags for hit in hits),
            "last_modified": max(filter(None, (hit.last_modified for hit in hits)), default=None),
            "updated_at": max(filter(None, (hit.updated_at for hit in hits)), default=None),
            "external_id": None,
            "catalogs": tuple(
                HeldBy(catalog=catalog, external_id=hit.external_id)
                for catalog, hit in found.hits.items()
            ),
        }
    )


def _all_of(given: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in given for name in names))
