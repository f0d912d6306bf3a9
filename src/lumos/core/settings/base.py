"""What all settings share: frozen, closed, and silent about their input when they refuse it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

SettingName = Annotated[str, Field(min_length=1, max_length=200)]


class SettingsModel(BaseModel):
    """Base of settings: frozen, closed, and silent about its input when it refuses it."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        allow_inf_nan=False,
        coerce_numbers_to_str=True,
        defer_build=True,  # a section is built once, as a part of all settings
    )
