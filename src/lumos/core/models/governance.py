"""Tags, glossary terms and domains, and the documentation of a dataset."""

from __future__ import annotations

from datetime import date
from enum import StrEnum

from pydantic import Field

from lumos.core.models.base import CanonicalModel, Count, Name, NameSet


class Tag(CanonicalModel):
    """A label that datasets and fields may carry."""

    name: Name
    description: str | None = None
    sensitive: bool = False


class GlossaryTerm(CanonicalModel):
    """A business term and what it means."""

    name: Name
    definition: str | None = None
    parent: str | None = None
    synonyms: NameSet = ()


class Domain(CanonicalModel):
    """A part of the business to which datasets belong."""

    name: Name
    description: str | None = None
    parent: str | None = None


class Deprecation(CanonicalModel):
    """That something is on its way out, until when, and what to use instead."""

    note: str | None = None
    since: date | None = Field(default=None, description="The day from which it is deprecated.")
    sunset: date | None = Field(default=None, description="The last day on which it is there.")
    replacement: str | None = None


class Stability(StrEnum):
    """How far a dataset can be relied on, the least first."""

    DRAFT = "DRAFT"
    ALPHA = "ALPHA"
    BETA = "BETA"
    STABLE = "STABLE"


class Access(StrEnum):
    """Who may build on a dataset, the fewest first."""

    PRIVATE = "PRIVATE"
    PROTECTED = "PROTECTED"
    PUBLIC = "PUBLIC"


class Governance(CanonicalModel):
    """The governance of a dataset beyond its tags, which stand on the dataset itself."""

    domains: NameSet = ()
    glossary_terms: NameSet = ()
    deprecation: Deprecation | None = None
    stability: Stability | None = None
    access: Access | None = Field(
        default=None, description="PRIVATE: its own team; PROTECTED: some; PUBLIC: everyone."
    )
    retention_days: Count | None = Field(
        default=None, description="How long rows are kept; without a number, for ever."
    )


class Link(CanonicalModel):
    """A page that says more."""

    url: Name
    description: str | None = None


class Documentation(CanonicalModel):
    """What people wrote about a dataset: its institutional memory."""

    description: str | None = None
    business_context: str | None = None
    sla: str | None = None
    links: tuple[Link, ...] = ()
