"""What a search asks for, and what it finds."""

from __future__ import annotations

from pydantic import Field

from lumos.core.models.base import CanonicalModel, Count, Percent, UtcDatetime
from lumos.core.models.quality import Freshness
from lumos.core.models.urn import Urn


class SearchFilters(CanonicalModel):
    """Conditions that every hit meets; names are compared in any case."""

    platform: str | None = None
    owner: str | None = None
    tag: str | None = None
    min_quality: Percent | None = None


class HeldBy(CanonicalModel):
    """A catalog that holds a dataset, and what it calls it."""

    catalog: str
    external_id: str | None = None


class SearchHit(CanonicalModel):
    """One dataset that was found, with what people choose by."""

    urn: Urn
    name: str
    platform: str
    format: str | None = None
    owners: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    quality_score: Percent | None = None
    freshness: Freshness | None = None
    last_modified: UtcDatetime | None = None
    version: str | None = None
    description: str | None = None
    updated_at: UtcDatetime | None = None
    external_id: str | None = Field(
        default=None, description="What the catalog calls it, where that is not its URN."
    )
    catalogs: tuple[HeldBy, ...] = Field(
        default=(), description="The catalogs that hold it, where several were asked."
    )


class CatalogAnswer(CanonicalModel):
    """What one of several catalogs said to a search."""

    catalog: str
    total: Count = 0
    code: str | None = Field(default=None, description="The code of what went wrong.")
    problem: str | None = Field(
        default=None, description="Why its datasets are missing; absent where it answered."
    )
    hint: str | None = Field(default=None, description="What to do about it.")


class SearchPage(CanonicalModel):
    """Part of what a search found, best first.

    `total` counts all that meets every filter. With a quality threshold, `excluded_total` counts
    what meets all other filters but has a lower score or none; `excluded` names the first of them.
    """

    hits: tuple[SearchHit, ...] = ()
    total: Count = 0
    offset: Count = 0
    excluded: tuple[SearchHit, ...] = ()
    excluded_total: Count = 0
    exact: bool = Field(
        default=True,
        description="Whether `total` was counted; else more was there than was looked at.",
    )
    catalogs: tuple[CatalogAnswer, ...] = Field(
        default=(), description="What each catalog said, where several were asked."
    )

    @property
    def problems(self) -> tuple[CatalogAnswer, ...]:
        """The catalogs whose datasets are missing."""
        return tuple(answer for answer in self.catalogs if answer.problem is not None)
