"""The settings of a project: one file, the environment, closed models, problems with lines."""

from lumos.core.settings.base import SettingsModel as SettingsModel
from lumos.core.settings.loader import ENVIRONMENT_KEYS as ENVIRONMENT_KEYS
from lumos.core.settings.loader import SETTINGS_FILE as SETTINGS_FILE
from lumos.core.settings.loader import load_settings as load_settings
from lumos.core.settings.loader import settings_from_mapping as settings_from_mapping
from lumos.core.settings.models import ProjectSettings as ProjectSettings
from lumos.core.settings.models import SourceEntry as SourceEntry
from lumos.core.settings.problems import InvalidSettingsError as InvalidSettingsError
from lumos.core.settings.problems import SettingsProblem as SettingsProblem
from lumos.core.settings.raw import RawSettings as RawSettings
from lumos.core.settings.raw import SettingOrigin as SettingOrigin
from lumos.core.settings.schema import settings_json_schema as settings_json_schema
from lumos.core.settings.validation import validate_against as validate_against
from lumos.core.settings.yaml_document import SettingsDocument as SettingsDocument
from lumos.core.settings.yaml_document import read_document as read_document
