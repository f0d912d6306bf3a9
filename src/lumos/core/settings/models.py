"""The settings of one Lumos project as closed, frozen models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, cast

from pydantic import (
    AfterValidator,
    Field,
    GetJsonSchemaHandler,
    PrivateAttr,
    SecretStr,
    model_validator,
)
from typing_extensions import override

from lumos.core.settings.alerts import AlertSettings
from lumos.core.settings.base import Name, SettingsModel
from lumos.core.settings.change_policy import ChangePolicySettings
from lumos.core.settings.logs import LoggingSettings
from lumos.core.settings.problems import InvalidSettingsError, KeyPath, SettingsProblem, key_text
from lumos.core.settings.raw import Origin, RawSettings
from lumos.core.settings.retention import ObservationSettings, RetentionSettings
from lumos.core.settings.search import SearchSettings
from lumos.core.settings.sync import SyncSettings

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

STATE_FOLDER = ".lumos"
SECTIONS_READ_WHEN_USED = frozenset(
    {
        "alerts",
        "cost_model",
        "database_url",
        "notifications",
        "quality_integrations",
        "schedules",
        "snapshots",
        "spark",
    }
)
"""Sections whose `${VAR}` only the commands need that read them."""
SECTIONS_WITHOUT_EFFECT = (
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
"""What may be set already, although nothing reads it yet."""

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


class SourceEntry(SettingsModel):
    """One source to scan; its handler validates `settings`."""

    type: Name = Field(description="The kind of source, such as s3, postgres or kafka.")
    name: Name = Field(description="How runs and reports call this source.")
    settings: RawSettings = Field(description="Everything else, as written.")

    @classmethod
    @override
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> JsonSchemaValue:
        kind = {"type": "string", "description": "The kind of source, such as s3 or postgres."}
        return {
            "type": "object",
            "description": "One source to scan; further keys are those of its type.",
            "properties": {
                "type": kind,
                "source_type": kind,
                "name": {"type": "string", "description": "How runs and reports call this source."},
                "config": {"type": "object", "description": "The keys of the type, nested."},
            },
            "anyOf": [
                {"required": ["type"]},
                {"required": ["source_type"]},
                {"required": ["source"]},
            ],
            "additionalProperties": True,
        }


class FeatureSettings(SettingsModel):
    """Which parts of a run are switched on."""

    auto_detection: bool = Field(
        default=True, description="Find formats and datasets in storage without being told."
    )
    schema_tracking: bool = Field(
        default=True, description="Compare with the last snapshot and version what changed."
    )
    cost_attribution: bool = Field(
        default=True, description="Attribute costs along lineage, where a cost model is given."
    )


class SparkSettings(SettingsModel):
    """How the Spark session is made."""

    master: Name = Field(default="local[*]", description="The Spark master.")
    remote: SecretStr | None = Field(
        default=None, description="A Spark Connect address, used instead of `master`."
    )
    app_name: Name = Field(default="lumos", description="The name shown by the cluster.")
    driver_memory: str | None = Field(
        default=None, pattern=r"^[0-9]+[kmgtKMGT]b?$", description="Such as 4g."
    )
    engine: Literal["auto", "never"] = Field(
        default="auto", description="Whether an engine that runs on this machine is used."
    )
    conf: RawSettings = Field(
        default_factory=lambda: RawSettings({}), description="Spark properties, as written."
    )


class EnforcementSettings(SettingsModel):
    """What happens when documentation is missing."""

    mode: Literal["block_on_missing", "warn_only"] = Field(
        default="warn_only", description="Whether missing documentation fails a check."
    )


class PatternException(SettingsModel):
    """Datasets to which a rule does not apply."""

    pattern: Name = Field(description="A path pattern with * and ?.")
    reason: str = Field(default="", description="Why they are excepted.")


class DocumentationSettings(SettingsModel):
    """Which documentation every dataset must have."""

    required_fields: tuple[Name, ...] = Field(
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
    recipients: tuple[Name, ...] = Field(
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
    checkpoint_store: Name = Field(description="Folder or URL of the checkpoint results.")


class DbtTestsIntegration(SettingsModel):
    """Results of dbt tests."""

    type: Literal["dbt_tests"]
    manifest_path: Name = Field(description="Path or URL of manifest.json.")
    run_results_path: Name = Field(description="Path or URL of run_results.json.")


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
    run: tuple[Name, ...] = Field(
        min_length=1, description="Operations in order, such as ingest:sources.yaml."
    )
    enabled: bool = Field(default=True, description="Whether the schedule is active.")


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
        description="So often all is listed, for events that were lost and for sources that tell "
        "none; 0 is never.",
    )


class LumosSettings(SettingsModel):
    """Everything that can be set for a project; `lumos.yaml` in memory."""

    platform: Name = Field(default="embedded", description="The catalog to publish to.")
    platforms: tuple[Name, ...] = Field(
        default=(),
        description="The catalogs that a search asks at once; by default only `platform`.",
    )
    platform_config: Mapping[str, RawSettings] = Field(
        default_factory=dict, description="Settings of catalogs, by platform name."
    )
    environment: Name = Field(default="production", description="The environment described.")
    sources: tuple[SourceEntry, ...] = Field(default=(), description="What to scan.")
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
        default_factory=AlertSettings, description="Who is told of changes, and how."
    )
    schedules: Mapping[str, ScheduleSettings] = Field(
        default_factory=dict, description="Operations run on a schedule, by name."
    )
    cloud_version_prefix: str = Field(
        default="S-", max_length=50, description="What cloud versions begin with, as in S-312."
    )
    database_url: SecretStr | None = Field(
        default=None, description="State database; by default SQLite in the state folder."
    )
    state_dir: Path = Field(
        default=Path(STATE_FOLDER),
        description="Folder of state and snapshots; a relative path begins at the settings file.",
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

    _file: Path | None = PrivateAttr(default=None)
    _origin: Origin | None = PrivateAttr(default=None)
    _unset: Mapping[str, tuple[SettingsProblem, ...]] = PrivateAttr(default_factory=dict)

    @override
    def __getattribute__(self, name: str) -> Any:
        """Refuse to read a section that needs a variable that is not set."""
        if name in SECTIONS_READ_WHEN_USED and (unset := self.unset_sections.get(name)):
            raise self._refused_for(unset)
        return super().__getattribute__(name)

    @property
    def unset_sections(self) -> Mapping[str, tuple[SettingsProblem, ...]]:
        """The sections that need variables that are not set, and which of their keys do."""
        private = self.__pydantic_private__ or {}
        return cast("Mapping[str, tuple[SettingsProblem, ...]]", private.get("_unset", {}))

    def unset_variables(self) -> InvalidSettingsError | None:
        """Return all keys that need a variable that is not set, whether or not they are used."""
        raws = (*(entry.settings for entry in self.sources), *self.platform_config.values())
        unset = [problem for raw in raws for problem in raw.unset]
        unset += [problem for problems in self.unset_sections.values() for problem in problems]
        return self._refused_for(unset) if unset else None

    def _refused_for(self, problems: Sequence[SettingsProblem]) -> InvalidSettingsError:
        return InvalidSettingsError(problems, file=self._origin.file if self._origin else None)

    @property
    def without_effect(self) -> tuple[str, ...]:
        """The keys that were set although nothing reads them in this version."""
        features = {f"features.{name}" for name in self.features.model_fields_set}
        given = self.model_fields_set | features | self.unset_sections.keys()
        return tuple(name for name in SECTIONS_WITHOUT_EFFECT if name in given)

    @property
    def file(self) -> Path | None:
        """The file these settings were read from, if there was one."""
        return self._file

    @property
    def trusted_key_files(self) -> tuple[Path, ...]:
        """The files of trusted keys, as seen from the current folder."""
        folder = self._file.parent if self._file else Path()
        return tuple(folder / file.expanduser() for file in self.trusted_keys)

    def platform_settings(self, name: str | None = None) -> RawSettings:
        """Return what was written for a platform, by default the chosen one; empty if nothing."""
        return self.platform_config.get(name or self.platform, RawSettings({}))

    def with_unset(self, sections: Mapping[str, tuple[SettingsProblem, ...]]) -> Self:
        """Return the same settings, knowing which sections cannot be read."""
        copied = self.model_copy()
        copied._unset = sections
        return copied

    def with_file(self, file: Path, origin: Origin | None = None) -> Self:
        """Return the same settings, knowing their file and where in it they stand."""
        copied = self.model_copy()
        copied._file = file
        copied._origin = origin
        return copied

    def refused(self, problems: Sequence[tuple[KeyPath, str]]) -> InvalidSettingsError:
        """Return the error for what only a part that uses these settings can see."""
        origin = self._origin
        return InvalidSettingsError(
            [
                SettingsProblem(
                    key_text(path),
                    origin.line_of(path) if origin else None,
                    f"{key_text(path)} {said}",
                )
                for path, said in problems
            ],
            file=origin.file if origin else None,
        )
