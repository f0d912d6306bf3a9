"""How `lumos search` asks several catalogs."""

from __future__ import annotations

from pydantic import Field

from lumos.core.settings.base import SettingsModel


class SearchSettings(SettingsModel):
    """How `lumos search` asks several catalogs."""

    timeout_seconds: float = Field(
        default=10,
        gt=0,
        le=600,
        description="How long all catalogs together may take; one that is later is left out.",
    )
