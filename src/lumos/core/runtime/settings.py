"""All that can be set for a project: each section is a model of the package that reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from lumos.core import settings as loading
from lumos.core.changes.settings import ChangePolicySettings
from lumos.core.log_settings import LoggingSettings
from lumos.core.redaction import PROCESS_SECRETS, SecretRegistry
from lumos.core.runtime.planned_settings import (
    CostModelSettings,
    DocumentationSettings,
    NotificationSettings,
    QualityIntegration,
    ScheduleSettings,
)
from lumos.core.settings import ProjectSettings
from lumos.core.settings.base import SettingName, SettingsModel
from lumos.core.store.settings import ObservationSettings, SnapshotStoreSettings
from lumos.feature.alerting.settings import AlertSettings
from lumos.feature.search.settings import SearchSettings
from lumos.feature.sync.settings import SyncSettings
from lumos.feature.watching.settings import WatchSettings
from lumos.spark.settings import SparkSettings

if TYPE_CHECKING:
    from pydantic import JsonValue


class FeatureSettings(SettingsModel):
    """Which parts of a run are switched on."""

    auto_detection: bool = Field(
        default=True, description="Find formats and datasets in storage without configuration."
    )
    schema_tracking: bool = Field(
        default=True, description="Compare with the last snapshot and version what changed."
    )
    cost_attribution: bool = Field(
        default=True, description="Attribute costs along lineage, where a cost model is given."
    )


class LumosSettings(ProjectSettings):
    """Everything that can be set for a project; `lumos.yaml` in memory."""

    read_when_used: ClassVar[frozenset[str]] = ProjectSettings.read_when_used | {
        "alerts",
        "cost_model",
        "notifications",
        "quality_integrations",
        "schedules",
        "snapshots",
        "spark",
    }
    not_read_yet: ClassVar[tuple[str, ...]] = (
        "cost_model",
        "documentation",
        "environment",
        "features.auto_detection",
        "features.cost_attribution",
        "glossary_mappings",
        "notifications",
        "path_patterns",
        "quality_integrations",
        "schedules",
    )

    environment: SettingName = Field(default="production", description="The environment described.")
    features: FeatureSettings = Field(
        default=FeatureSettings(), description="Parts of a run to switch on or off."
    )
    spark: SparkSettings = Field(
        default_factory=SparkSettings, description="Where and how Spark runs."
    )
    documentation: DocumentationSettings = Field(
        default=DocumentationSettings(), description="Documentation that datasets must have."
    )
    glossary_mappings: Mapping[str, str] = Field(
        default_factory=dict, description="Business terms by column name."
    )
    path_patterns: Mapping[str, str] = Field(
        default_factory=dict, description="Descriptions by path pattern."
    )
    notifications: Mapping[str, NotificationSettings] = Field(
        default_factory=dict, description="Messages to people, by name."
    )
    cost_model: CostModelSettings = Field(
        default_factory=CostModelSettings, description="Prices and their attribution."
    )
    quality_integrations: tuple[QualityIntegration, ...] = Field(
        default=(), description="Where data quality results come from."
    )
    change_policy: ChangePolicySettings = Field(
        default_factory=ChangePolicySettings, description="How changes are judged."
    )
    alerts: AlertSettings = Field(
        default_factory=AlertSettings, description="Who gets alerts on changes, and how."
    )
    schedules: Mapping[str, ScheduleSettings] = Field(
        default_factory=dict, description="Operations run on a schedule, by name."
    )
    cloud_version_prefix: str = Field(
        default="S-", max_length=50, description="What cloud versions begin with, as in S-312."
    )
    lock_seconds: float = Field(
        default=60,
        ge=0,
        description="How long a command waits for another that writes to the same state.",
    )
    lease_seconds: float = Field(
        default=45,
        ge=1,
        le=3600,
        description="How long the right to write lasts after a command was paused or killed, or "
        "lost the database. Another host may write after that.",
    )
    snapshots: SnapshotStoreSettings = Field(
        default=SnapshotStoreSettings(), description="Where snapshots are kept."
    )
    observations: ObservationSettings = Field(
        default=ObservationSettings(), description="How long measurements of datasets are kept."
    )
    trusted_keys: tuple[Path, ...] = Field(
        default=(),
        description="Files of public keys. Where there are any, a snapshot from outside of the "
        "project goes into a catalog only if it is signed with one of them. A relative path "
        "begins at the settings file.",
    )
    watch: WatchSettings = Field(
        default=WatchSettings(), description="How `lumos watch` gathers events."
    )
    sync: SyncSettings = Field(
        default=SyncSettings(), description="Whose edits count in a sync, and what it may remove."
    )
    search: SearchSettings = Field(
        default=SearchSettings(), description="How a search asks several catalogs."
    )
    logging: LoggingSettings = Field(
        default=LoggingSettings(), description="What commands log, how and where to."
    )

    @property
    def trusted_key_files(self) -> tuple[Path, ...]:
        """The files of trusted keys, as seen from the current folder."""
        folder = self._file.parent if self._file else Path()
        return tuple(folder / file.expanduser() for file in self.trusted_keys)


def load_settings(
    path: Path | None,
    environment: Mapping[str, str],
    *,
    working_directory: Path | None = None,
    secrets: SecretRegistry = PROCESS_SECRETS,
) -> LumosSettings:
    """Return the settings of a project: see `lumos.core.settings.load_settings`."""
    return loading.load_settings(
        path,
        environment,
        model=LumosSettings,
        working_directory=working_directory,
        secrets=secrets,
    )


def settings_from_mapping(
    values: Mapping[str, JsonValue],
    environment: Mapping[str, str],
    *,
    secrets: SecretRegistry = PROCESS_SECRETS,
) -> LumosSettings:
    """Return settings given as values, in any form that a file may have.

    Raises:
        InvalidSettingsError: with all problems.
    """
    return loading.settings_from_mapping(values, environment, model=LumosSettings, secrets=secrets)
