"""Sections of the product's documents that may be set already, although nothing reads them yet.

A section moves to the package that comes to read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr

from lumos.core.settings.base import SettingName, SettingsModel

_CRON_FIELDS = 5

_CRON_WORDS = frozenset(
    {"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"}
)


def _checked_schedule(text: str) -> str:
    if text in _CRON_WORDS:
        return text
    # Late: few projects have a schedule.
    from cronsim import CronSim, CronSimError

    wanted = "must be a cron schedule of five fields, such as '0 9 * * 1'"
    if len(text.split()) != _CRON_FIELDS:
        raise ValueError(wanted)
    try:
        CronSim(text, datetime(2000, 1, 1))
    except CronSimError as error:
        raise ValueError(f"{wanted}: {str(error).lower()}") from None
    return text


Schedule = Annotated[str, AfterValidator(_checked_schedule)]
Price = Annotated[Decimal, Field(ge=0, allow_inf_nan=False)]


class EnforcementSettings(SettingsModel):
    """What happens when documentation is missing."""

    mode: Literal["block_on_missing", "warn_only"] = Field(
        default="warn_only", description="Whether missing documentation fails a check."
    )


class PatternException(SettingsModel):
    """Datasets to which a rule does not apply."""

    pattern: SettingName = Field(description="A path pattern with * and ?.")
    reason: str = Field(default="", description="Why they are excepted.")


class DocumentationSettings(SettingsModel):
    """Which documentation every dataset must have."""

    required_fields: tuple[SettingName, ...] = Field(
        default=(), description="Fields that must not be empty, such as description or owner."
    )
    enforcement: EnforcementSettings = Field(
        default=EnforcementSettings(), description="What happens when one is missing."
    )
    exceptions: tuple[PatternException, ...] = Field(
        default=(), description="Datasets that need no documentation."
    )


class NotificationSettings(SettingsModel):
    """A message sent on a schedule."""

    schedule: Schedule | None = Field(default=None, description="When, as a cron schedule.")
    recipients: tuple[SettingName, ...] = Field(
        default=(), description="Roles such as dataset_owner, users, groups or addresses."
    )
    template: str | None = Field(
        default=None, description="The text, with {placeholders} filled for each dataset."
    )


class StorageRates(SettingsModel):
    """What stored data costs on one platform."""

    cost_per_gb_month: Price | None = Field(default=None, description="Price of a GB-month.")
    cost_per_tb_month: Price | None = Field(default=None, description="Price of a TB-month.")


class ComputeRates(SettingsModel):
    """What computing costs on one platform."""

    cost_per_dbu: Price | None = Field(default=None, description="Price of a Databricks unit.")
    cost_per_credit: Price | None = Field(default=None, description="Price of a credit.")
    cost_per_hour: Price | None = Field(default=None, description="Price of an hour.")
    cost_per_vcpu_hour: Price | None = Field(default=None, description="Price of a vCPU-hour.")
    cost_per_gb_hour: Price | None = Field(default=None, description="Price of a GB-hour.")
    cost_per_tb_scanned: Price | None = Field(default=None, description="Price of a TB scanned.")


class AttributionSettings(SettingsModel):
    """How costs move along lineage."""

    method: Literal["lineage_weighted", "equal_split", "last_touch"] = Field(
        default="lineage_weighted", description="How a dataset's cost is shared by its consumers."
    )


class CostModelSettings(SettingsModel):
    """Prices and how they are attributed."""

    currency: str = Field(default="USD", pattern=r"^[A-Z]{3}$", description="ISO 4217 code.")
    storage: Mapping[str, StorageRates] = Field(
        default_factory=dict, description="Storage prices by platform."
    )
    compute: Mapping[str, ComputeRates] = Field(
        default_factory=dict, description="Compute prices by engine."
    )
    attribution: AttributionSettings = Field(
        default=AttributionSettings(), description="How costs are shared."
    )


class GreatExpectationsIntegration(SettingsModel):
    """Results of Great Expectations checkpoints."""

    type: Literal["great_expectations"]
    checkpoint_store: SettingName = Field(description="Folder or URL of the checkpoint results.")


class DbtTestsIntegration(SettingsModel):
    """Results of dbt tests."""

    type: Literal["dbt_tests"]
    manifest_path: SettingName = Field(description="Path or URL of manifest.json.")
    run_results_path: SettingName = Field(description="Path or URL of run_results.json.")


class CustomApiIntegration(SettingsModel):
    """Results served by an HTTP endpoint."""

    type: Literal["custom_api"]
    endpoint: SecretStr = Field(description="URL that returns the results; may hold a token.")
    auth_token: SecretStr | None = Field(default=None, description="Sent as a bearer token.")


QualityIntegration = Annotated[
    GreatExpectationsIntegration | DbtTestsIntegration | CustomApiIntegration,
    Field(discriminator="type"),
]


class ScheduleSettings(SettingsModel):
    """Operations that the scheduler starts."""

    schedule: Schedule = Field(description="When, as a cron schedule.")
    run: tuple[SettingName, ...] = Field(
        min_length=1, description="Operations in order, such as ingest:sources.yaml."
    )
    enabled: bool = Field(default=True, description="Whether the schedule is active.")
