"""The section `spark`: where and how Spark runs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from lumos.core.settings.base import SettingName, SettingsModel
from lumos.core.settings.raw import RawSettings


class SparkSettings(SettingsModel):
    """How the Spark session is made."""

    master: SettingName = Field(default="local[*]", description="The Spark master.")
    remote: SecretStr | None = Field(
        default=None, description="A Spark Connect address, used instead of `master`."
    )
    app_name: SettingName = Field(default="lumos", description="The name shown by the cluster.")
    driver_memory: str | None = Field(
        default=None, pattern=r"^[0-9]+[kmgtKMGT]b?$", description="Such as 4g."
    )
    engine: Literal["auto", "never"] = Field(
        default="auto", description="Whether an engine that runs on this machine is used."
    )
    conf: RawSettings = Field(
        default_factory=lambda: RawSettings({}), description="Spark properties, as written."
    )
