"""The settings of a project: one file, the environment, closed models, problems with lines."""

from lumos.core.settings.alerts import AlertRoute as AlertRoute
from lumos.core.settings.alerts import AlertSettings as AlertSettings
from lumos.core.settings.alerts import Channel as Channel
from lumos.core.settings.alerts import EmailChannel as EmailChannel
from lumos.core.settings.alerts import SlackChannel as SlackChannel
from lumos.core.settings.alerts import WebhookChannel as WebhookChannel
from lumos.core.settings.base import SettingsModel as SettingsModel
from lumos.core.settings.change_policy import ChangeException as ChangeException
from lumos.core.settings.change_policy import ChangePolicySettings as ChangePolicySettings
from lumos.core.settings.change_policy import (
    DeprecationWindowSettings as DeprecationWindowSettings,
)
from lumos.core.settings.loader import ENVIRONMENT_KEYS as ENVIRONMENT_KEYS
from lumos.core.settings.loader import SETTINGS_FILE as SETTINGS_FILE
from lumos.core.settings.loader import load_settings as load_settings
from lumos.core.settings.loader import settings_from_mapping as settings_from_mapping
from lumos.core.settings.logs import LoggingSettings as LoggingSettings
from lumos.core.settings.models import AttributionSettings as AttributionSettings
from lumos.core.settings.models import ComputeRates as ComputeRates
from lumos.core.settings.models import CostModelSettings as CostModelSettings
from lumos.core.settings.models import CustomApiIntegration as CustomApiIntegration
from lumos.core.settings.models import DbtTestsIntegration as DbtTestsIntegration
from lumos.core.settings.models import DocumentationSettings as DocumentationSettings
from lumos.core.settings.models import FeatureSettings as FeatureSettings
from lumos.core.settings.models import GreatExpectationsIntegration as GreatExpectationsIntegration
from lumos.core.settings.models import LumosSettings as LumosSettings
from lumos.core.settings.models import NotificationSettings as NotificationSettings
from lumos.core.settings.models import PatternException as PatternException
from lumos.core.settings.models import ScheduleSettings as ScheduleSettings
from lumos.core.settings.models import SnapshotStoreSettings as SnapshotStoreSettings
from lumos.core.settings.models import SourceEntry as SourceEntry
from lumos.core.settings.models import SparkSettings as SparkSettings
from lumos.core.settings.models import StorageRates as StorageRates
from lumos.core.settings.models import WatchSettings as WatchSettings
from lumos.core.settings.problems import InvalidSettingsError as InvalidSettingsError
from lumos.core.settings.problems import SettingsProblem as SettingsProblem
from lumos.core.settings.raw import Origin as Origin
from lumos.core.settings.raw import RawSettings as RawSettings
from lumos.core.settings.schema import settings_json_schema as settings_json_schema
from lumos.core.settings.sync import SyncSettings as SyncSettings
from lumos.core.settings.sync import Truth as Truth
from lumos.core.settings.sync import TruthSettings as TruthSettings
from lumos.core.settings.validation import validate_against as validate_against
from lumos.core.settings.yaml_document import SettingsDocument as SettingsDocument
from lumos.core.settings.yaml_document import read_document as read_document
