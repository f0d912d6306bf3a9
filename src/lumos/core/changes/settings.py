"""How a project judges changes: the section `change_policy`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from lumos.core.settings.base import SettingName, SettingsModel


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


Level = Annotated[Literal["breaking", "non_breaking", "informational"], BeforeValidator(_lower)]
Judgement = Annotated[
    Literal["breaking", "non_breaking", "informational", "ignore"], BeforeValidator(_lower)
]
Pattern = Annotated[
    SettingName,
    Field(
        description="With * and ?: a URN (lumos://…), a path from its beginning (/…), or the end "
        "of a path."
    ),
]


class ChangeException(SettingsModel):
    """Changes that are judged otherwise, why, and until when."""

    pattern: Pattern
    rules: tuple[SettingName, ...] = Field(
        default=(), description="Rules by id, also with *; all where none is named."
    )
    fields: tuple[SettingName, ...] = Field(
        default=(), description="Paths of fields, also with *; all where none is named."
    )
    level: Judgement = Field(
        default="ignore",
        description="The level instead; ignore reports the change and lets it pass.",
    )
    reason: SettingName = Field(description="Why.")
    owner: SettingName | None = Field(default=None, description="Who answers for it.")
    expires: date | None = Field(
        default=None, description="The last day on which it holds, such as 2027-01-31."
    )


class DeprecationWindowSettings(SettingsModel):
    """How long something must have been deprecated before it may go."""

    pattern: Pattern = "*"
    days: int = Field(
        ge=0,
        le=3650,
        description="Days from `deprecation.since` to the removal; sooner it is breaking, also "
        "after its `sunset`.",
    )


class ChangePolicySettings(SettingsModel):
    """How changes are judged, and which of them a gate refuses."""

    profile: SettingName = Field(
        default="lumos",
        description="Whom the rules protect: lumos, readers, writers, full, iceberg, delta, avro.",
    )
    rules: Mapping[str, Level] = Field(
        default_factory=dict, description="Levels by rule id, replacing those of the profile."
    )
    exceptions: tuple[ChangeException, ...] = Field(
        default=(), description="Changes judged otherwise; the first that fits and holds decides."
    )
    deprecation_windows: tuple[DeprecationWindowSettings, ...] = Field(
        default=(),
        description="How long a deprecation must last; the first whose pattern fits decides.",
    )
    fail_on: Literal["breaking", "caution", "any", "never"] = Field(
        default="never",
        description="What `lumos diff` ends with 1 for, unless `--fail-on` says otherwise.",
    )
