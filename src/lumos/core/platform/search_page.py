"""What a search asks for, and what it finds."""

from __future__ import annotations

import re
from typing import NamedTuple

from pydantic import Field

from lumos.core.errors import UsageError
from lumos.core.models.base import CanonicalModel, Count, Percent, UtcDatetime
from lumos.core.models.quality import Freshness
from lumos.core.models.urn import Urn

_TERM = re.compile(
    r"(?<!\S)(?P<name>column|owner|platform|tag):(?:\"(?P<quoted>[^\"]*)\"|(?P<bare>\S*))",
    re.IGNORECASE,
)


class SearchFilters(CanonicalModel):
    """Conditions that every hit meets; names are compared in any case."""

    platform: str | None = None
    owner: str | None = None
    tag: str | None = None
    column: str | None = Field(
        default=None, description="Words, or beginnings of words, of the name of a column."
    )
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
    matched: tuple[str, ...] = Field(
        default=(), description="Where the words were found, such as `name` or `column email`."
    )
    catalogs: tuple[HeldBy, ...] = Field(
        default=(), description="The catalogs that hold it, where several were asked."
    )


class SearchTerms(NamedTuple):
    """A query as people type it: words, and terms such as `column:email` or `owner:"ada byron"`."""

    text: str
    filters: SearchFilters

    @classmethod
    def of(cls, query: str, filters: SearchFilters) -> SearchTerms:
        """Take the terms out of a query and add them to the filters.

        Raises:
            UsageError: a term is empty, or the same filter is given twice with different values.
        """
        found: dict[str, str] = {}

        def take(match: re.Match[str]) -> str:
            name, value = match["name"].lower(), (match["quoted"] or match["bare"] or "").strip()
            given = found.get(name) or getattr(filters, name)
            if not value:
                raise UsageError(f"{name}: has no value", hint=f"write it as {name}:VALUE")
            if given is not None and given.casefold() != value.casefold():
                raise UsageError(
                    f"the search asks for two values of {name}: {given} and {value}",
                    hint="a dataset is looked for by one of each; give one of them as a word",
                )
            found[name] = value
            return " "

        text = _TERM.sub(take, query)
        return cls(text.strip(), filters.model_copy(update=dict(found)) if found else filters)


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
    suggestions: tuple[str, ...] = Field(
        default=(), description="Names that are nearly what was typed, where nothing was found."
    )

    @property
    def problems(self) -> tuple[CatalogAnswer, ...]:
        """The catalogs whose datasets are missing."""
        return tuple(answer for answer in self.catalogs if answer.problem is not None)
