"""How `lumos sync` brings another catalog up to date."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from lumos.core.settings.base import SettingsModel

_MANY = 1_000_000


class Truth(StrEnum):
    """Who is right when Lumos and a catalog differ."""

    LUMOS = "lumos"
    """What Lumos has replaces what the catalog has."""
    CATALOG = "catalog"
    """Lumos fills in what the catalog lacks, and changes nothing else."""
    NEWEST = "newest"
    """The side that changed it since the last sync; the catalog, where both did."""


class TruthSettings(SettingsModel):
    """Who is right, part by part; all else of a dataset is Lumos's."""

    documentation: Truth = Field(
        default=Truth.NEWEST, description="Of descriptions: of datasets and of their columns."
    )
    tags: Truth = Field(
        default=Truth.NEWEST,
        description="Of tags, and of what is personal: of datasets and of columns.",
    )
    owners: Truth = Field(default=Truth.NEWEST, description="Of owners.")
    governance: Truth = Field(
        default=Truth.NEWEST,
        description="Of terms, domains, deprecation, stability, access and retention; and of "
        "users, groups, tags, terms and domains themselves.",
    )
    properties: Truth = Field(
        default=Truth.NEWEST,
        description="Of properties, and of what Lumos does not model of the catalog.",
    )

    @property
    def asks(self) -> bool:
        """Whether it matters what the catalog has."""
        return any(getattr(self, name) is not Truth.LUMOS for name in type(self).model_fields)


class SyncSettings(SettingsModel):
    """How `lumos sync` brings another catalog up to date."""

    truth: TruthSettings = Field(
        default=TruthSettings(), description="Whose edits count when both sides differ."
    )
    max_removals: int = Field(
        default=100,
        ge=0,
        le=_MANY,
        description="If more datasets than this are gone, none is removed; 0 removes never.",
    )
    workers: int = Field(
        default=8,
        ge=1,
        le=256,
        description="How many requests may be under way at once, where the catalog takes as many.",
    )
    batch_size: int = Field(
        default=500,
        ge=1,
        le=100_000,
        description="After how many datasets it is kept how far the sync came.",
    )
