"""The `logging` section: what is logged by commands, how and where to."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from lumos.core.settings.base import SettingsModel

LogLevel = Literal["error", "warning", "info", "debug"]
LogFormat = Literal["human", "json"]


class LoggingSettings(SettingsModel):
    """What commands log; options such as `--log-level` win over it."""

    level: LogLevel | None = Field(
        default=None,
        description="What is logged at least; info with a file, and without one only notices.",
    )
    format: LogFormat = Field(default="human", description="Lines for people, or JSON.")
    file: Path | None = Field(
        default=None,
        description="The file to append to, instead of standard error; a relative path begins at "
        "the settings file.",
    )
