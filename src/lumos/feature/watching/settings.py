"""The section `watch`: how events are gathered."""

from __future__ import annotations

from pydantic import Field

from lumos.core.settings.base import SettingsModel


class WatchSettings(SettingsModel):
    """When events lead to a refresh, and how often all is listed."""

    quiet_seconds: float = Field(
        default=2, ge=0, le=3600, description="A refresh begins when it was quiet for so long."
    )
    longest_seconds: float = Field(
        default=10, ge=0, le=3600, description="It begins so long after the first event at latest."
    )
    list_minutes: float = Field(
        default=60,
        ge=0,
        description="So often all is listed, for events that were lost and for sources that send "
        "none; 0 is never.",
    )
