"""The sections `snapshots` and `observations`: where the past is kept, and how much of it."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, SecretStr, model_validator

from lumos.core.settings.base import SettingsModel

_MANY = 100_000


class RetentionSettings(SettingsModel):
    """How much of the past `lumos snapshot prune` keeps; what one of the rules keeps, stays."""

    keep_last: int | None = Field(
        default=None, ge=1, le=_MANY, description="So many of the newest."
    )
    keep_days: int | None = Field(
        default=None, ge=1, le=_MANY, description="All of the last so many days."
    )
    keep_daily: int | None = Field(
        default=None, ge=1, le=_MANY, description="The last of each day, for so many days."
    )
    keep_weekly: int | None = Field(
        default=None, ge=1, le=_MANY, description="The last of each week, for so many weeks."
    )
    keep_monthly: int | None = Field(
        default=None, ge=1, le=_MANY, description="The last of each month, for so many months."
    )

    def __bool__(self) -> bool:
        """Return whether there is any rule; without one everything is kept."""
        return any(getattr(self, name) for name in type(self).model_fields)


class ObservationSettings(SettingsModel):
    """How much is kept of what was measured of a dataset; the latest always is."""

    keep_days: int = Field(
        default=400,
        ge=1,
        le=_MANY,
        description="Measurements are kept for so many days before the newest of their series; "
        "the newest 30 are kept however old they are.",
    )
    keep_last: int = Field(
        default=1_000,
        ge=1,
        le=_MANY,
        description="At most so many measurements of each dataset, kind and contributor.",
    )


class SnapshotStoreSettings(SettingsModel):
    """Where snapshots are kept; by default in the state folder."""

    url: SecretStr | None = Field(default=None, description="Such as s3://bucket/snapshots.")
    path: Path | None = Field(
        default=None,
        description="A local folder; a relative path begins at the settings file.",
    )
    retention: RetentionSettings = Field(
        default=RetentionSettings(), description="What `lumos snapshot prune` keeps."
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.url is not None and self.path is not None:
            raise ValueError("takes either 'url' or 'path', not both")
        return self
