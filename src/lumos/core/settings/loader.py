"""Loads the settings of a project from a file, a `.env` file beside it and the environment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Generic, TypeVar

from pydantic import JsonValue, ValidationError

from lumos.core.redaction import PROCESS_SECRETS, SecretRegistry, find_secrets, looks_secret
from lumos.core.settings.addresses import address_problems
from lumos.core.settings.expansion import Expansion, read_dotenv
from lumos.core.settings.models import STATE_FOLDER, ProjectSettings
from lumos.core.settings.problems import (
    InvalidSettingsError,
    KeyPath,
    SettingsProblem,
    key_text,
)
from lumos.core.settings.raw import RawSettings, SettingOrigin
from lumos.core.settings.sources import SourceReader
from lumos.core.settings.validation import problems_of, register_fields, register_secrets
from lumos.core.settings.yaml_document import SettingsDocument, file_exists, read_document

M = TypeVar("M", bound=ProjectSettings)
SETTINGS_FILE: Final = "lumos.yaml"
ROOT_KEY: Final = "lumos_config"
PLACEHOLDER_KEY: Final = "..."
_SQLITE: Final = "sqlite:///"
_BY_ENTRY: Final = frozenset({"sources", "platform_config"})
_IN_MEMORY: Final = ":memory:"
ENVIRONMENT_KEYS: Final[Mapping[str, KeyPath]] = {
    "LUMOS_PLATFORM": ("platform",),
    "LUMOS_DATABASE_URL": ("database_url",),
    "LUMOS_STATE_DIR": ("state_dir",),
    "LUMOS_LOG_LEVEL": ("logging", "level"),
    "LUMOS_LOG_FORMAT": ("logging", "format"),
    "LUMOS_LOG_FILE": ("logging", "file"),
    "DATAHUB_GMS_URL": ("platform_config", "datahub", "gms_server"),
}
# The current folder, as shells export it: not a password, whatever its name looks like.
_SHELL_FOLDERS: Final = frozenset({"PWD", "OLDPWD"})
# Spellings of global settings that are in use too: a platform's own settings at the top, the keys
# of the earlier framework, and a short name.
_OTHER_SPELLINGS: Final[Mapping[str, KeyPath]] = {
    "changes": ("change_policy",),
    "default_env": ("environment",),
    "default_platform": ("platform",),
    **{
        name: ("platform_config", name)
        for name in ("amundsen", "atlas", "datahub", "embedded", "openmetadata", "snowflake")
    },
}


def load_settings(
    path: Path | None,
    environment: Mapping[str, str],
    *,
    model: type[M],
    working_directory: Path | None = None,
    secrets: SecretRegistry = PROCESS_SECRETS,
) -> M:
    """Return the settings of a project.

    Args:
        path: the file; None looks for `lumos.yaml` in the working directory and takes the
            defaults where there is none.
        environment: variables for `${VAR}` and for the documented overrides; they win over
            those in a `.env` file beside the settings file.
        model: the settings with all sections that the file may have.
        working_directory: where to look when no path is given; by default the current one.
        secrets: takes every secret that the settings hold.

    Raises:
        ConfigurationError: the file is missing or wrong; `InvalidSettingsError` has every
            problem with its line.
        InputUnreadableError: the file exists but cannot be read.
    """
    folder = working_directory or Path()
    file = path if path is not None else folder / SETTINGS_FILE
    shown = str(path) if path is not None else SETTINGS_FILE
    dotenv = (file.parent if path is not None else folder) / ".env"
    variables = _variables(dotenv, environment, secrets=secrets)
    if path is None and not file_exists(file, file=shown):
        return _Load(None, variables, model=model, secrets=secrets).settings({})
    document = read_document(file, shown_as=shown)
    load = _Load(document, variables, model=model, secrets=secrets, location=file)
    return load.settings(document.value).with_file(file, load.origin())


def settings_from_mapping(
    values: Mapping[str, JsonValue],
    environment: Mapping[str, str],
    *,
    model: type[M],
    secrets: SecretRegistry = PROCESS_SECRETS,
) -> M:
    """Return settings given as values, in any form that a file may have.

    Raises:
        InvalidSettingsError: with all problems.
    """
    _register_variables(environment, secrets)
    return _Load(None, environment, model=model, secrets=secrets).settings(dict(values))


def _variables(
    dotenv: Path, environment: Mapping[str, str], *, secrets: SecretRegistry
) -> dict[str, str]:
    read, problems = read_dotenv(dotenv, shown_as=str(dotenv))
    merged = {**read, **environment}
    _register_variables(merged, secrets)
    if problems:
        raise InvalidSettingsError(problems, file=str(dotenv), secrets=secrets)
    return merged


def _register_variables(environment: Mapping[str, str], secrets: SecretRegistry) -> None:
    named = {name: value for name, value in environment.items() if name not in _SHELL_FOLDERS}
    secrets.add(*(value for name, value in named.items() if looks_secret(name)))
    for name in ENVIRONMENT_KEYS:
        secrets.add(*find_secrets(environment.get(name, "")))


class _Load(Generic[M]):
    """One loading: the document, what was moved in it, and the problems found so far."""

    def __init__(
        self,
        document: SettingsDocument | None,
        environment: Mapping[str, str],
        *,
        model: type[M],
        secrets: SecretRegistry,
        location: Path | None = None,
    ) -> None:
        self._document = document
        self._model = model
        self._environment = environment
        self._secrets = secrets
        self._location = location
        self._root: KeyPath = ()
        self._moved: dict[KeyPath, KeyPath] = {}
        self._problems: list[SettingsProblem] = []
        self._unset: defaultdict[KeyPath, list[tuple[KeyPath, SettingsProblem]]] = defaultdict(list)
        """By source, catalog or section: its keys that need a variable that is not set."""

    def settings(self, value: JsonValue) -> M:
        """Return the value of a document as settings, or raise all its problems."""
        values = self._filled(self._unwrapped(_without_placeholders(value)))
        register_secrets(values, self._secrets)
        values = self._respelled(values)
        if self._location is not None:
            _begin_paths_at(self._location.parent, values)
        self._apply_environment(values)
        sections = self._without_unset_sections(values)
        self._check_addresses(values)
        reader = SourceReader(line_of=self._line_of, origin_at=self._origin_at, unset=self._unset)
        entries = reader.read(values.pop("sources", None))
        self._problems += reader.problems
        typed: dict[str, object] = {**values, "sources": entries}
        if isinstance(configs := values.get("platform_config"), dict):
            typed["platform_config"] = {
                name: self._platform(config, name) for name, config in configs.items()
            }
        settings = self._validated(typed, values)
        if settings is None or self._problems:
            file = self._document.file if self._document else None
            raise InvalidSettingsError(self._problems, file=file, secrets=self._secrets)
        return settings.with_unset(sections)

    def _unwrapped(self, value: JsonValue) -> dict[str, JsonValue]:
        if value is None:
            return {}
        if isinstance(value, list):
            self._moved["sources",] = ()
            return {"sources": value}
        if not isinstance(value, dict):
            self._problem((), "settings must be a mapping of keys")
            return {}
        if ROOT_KEY not in value:
            return value
        for key in value:
            if key != ROOT_KEY:
                self._problem((key,), f"key '{key}' must stand below '{ROOT_KEY}', not beside it")
        self._root = (ROOT_KEY,)
        inner = value[ROOT_KEY]
        if isinstance(inner, dict):
            return inner
        if inner is not None:
            self._problem((), f"{ROOT_KEY} must be a mapping of keys")
        return {}

    def _filled(self, values: dict[str, JsonValue]) -> dict[str, JsonValue]:
        expansion = Expansion(self._environment, line_of=self._line_of, secrets=self._secrets)
        filled = {key: expansion.fill(value, (key,)) for key, value in values.items()}
        self._problems += expansion.problems
        for path, problem in expansion.unset:
            owner = self._owner(path)
            if owner is None:
                self._problems.append(problem)
            else:
                self._unset[owner].append((path, problem))
        return filled

    def _without_unset_sections(
        self, values: dict[str, JsonValue]
    ) -> dict[str, tuple[SettingsProblem, ...]]:
        """Take out the sections that need variables that are not set, and return these."""
        unset = {
            str(owner[0]): tuple(problem for _, problem in keys)
            for owner, keys in self._unset.items()
            if len(owner) == 1 and keys
        }
        for section in unset:
            values.pop(section, None)
        return unset

    def _respelled(self, values: dict[str, JsonValue]) -> dict[str, JsonValue]:
        known = self._model.model_fields
        result = {
            key: value
            for key, value in values.items()
            if key not in _OTHER_SPELLINGS and not (value is None and key in known)
        }
        for key in values.keys() & _OTHER_SPELLINGS.keys():
            target = _OTHER_SPELLINGS[key]
            if _has(values, target):
                self._problem((key,), f"'{key}' is also given as {key_text(target)}; keep one")
                continue
            self._moved[target] = (key,)
            _put(result, target, values[key])
        return result

    def _apply_environment(self, values: dict[str, JsonValue]) -> None:
        for name, target in ENVIRONMENT_KEYS.items():
            if value := self._environment.get(name):
                _put(values, target, value)
                if owner := self._owner(target):
                    keys = self._unset[owner]
                    self._unset[owner] = [key for key in keys if _respelled(key[0]) != target]

    def _check_addresses(self, values: dict[str, JsonValue]) -> None:
        unset = {path for keys in self._unset.values() for path, _ in keys}
        for path, said in address_problems(values):
            if self._written(path) not in unset and path not in unset:
                line = self._line_of(path)
                self._problems.append(
                    SettingsProblem(key_text(path), line, f"{key_text(path)} {said}")
                )

    def _owner(self, path: KeyPath) -> KeyPath | None:
        """Return which source, catalog or section alone needs a key; None where all commands do."""
        path = _respelled(path)
        if path[0] in _BY_ENTRY and len(path) > 1:
            return path[:2]
        return path[:1] if path[0] in self._model.read_when_used else None

    def _platform(self, config: JsonValue, name: str) -> object:
        if config is None or isinstance(config, dict):
            origin = self._origin_at(("platform_config", name), {})
            unset = [problem for _, problem in self._unset["platform_config", name]]
            return RawSettings(config or {}, origin=origin, unset=unset)
        return config

    def _validated(self, typed: dict[str, object], values: dict[str, JsonValue]) -> M | None:
        try:
            settings = self._model.model_validate(typed)
        except ValidationError as error:
            known = {problem.path for problem in self._problems}
            self._problems += [
                problem
                for problem in problems_of(error, self._model, values=values, line_of=self._line_of)
                if problem.path not in known  # an unset variable is no second problem
            ]
            return None
        register_fields(_without_plain_address(settings), self._secrets)
        return settings

    def _written(self, path: KeyPath) -> KeyPath:
        for length in range(len(path), 0, -1):
            if path[:length] in self._moved:
                return (*self._root, *self._moved[path[:length]], *path[length:])
        return (*self._root, *path)

    def _line_of(self, path: KeyPath) -> int | None:
        return self._document.line_of(self._written(path)) if self._document else None

    def origin(self) -> SettingOrigin | None:
        """Return where the settings stand in their file."""
        moved = {
            str(target[0]): written for target, written in self._moved.items() if len(target) == 1
        }
        return self._origin_at((), moved)

    def _origin_at(self, path: KeyPath, moved: Mapping[str, KeyPath]) -> SettingOrigin | None:
        if self._document is None or self._location is None:
            return None
        return SettingOrigin(self._document.file, self._written(path), self._location, moved)

    def _problem(self, path: KeyPath, message: str) -> None:
        line = self._document.line_of(path) if self._document else None
        self._problems.append(SettingsProblem(key_text(path), line, message))


def _respelled(path: KeyPath) -> KeyPath:
    return (*_OTHER_SPELLINGS.get(str(path[0]), path[:1]), *path[1:])


def _begin_paths_at(folder: Path, values: dict[str, JsonValue]) -> None:
    """Let the relative paths of a project's state begin at the folder of its settings file.

    Where a command runs then does not decide which state it reads and writes.
    """
    state = values.get("state_dir", STATE_FOLDER)
    if isinstance(state, str):
        values["state_dir"] = str(folder / Path(state).expanduser())
    snapshots = values.get("snapshots")
    if isinstance(snapshots, dict) and isinstance(path := snapshots.get("path"), str):
        values["snapshots"] = {**snapshots, "path": str(folder / Path(path).expanduser())}
    logs = values.get("logging")
    if isinstance(logs, dict) and isinstance(path := logs.get("file"), str):
        values["logging"] = {**logs, "file": str(folder / Path(path).expanduser())}
    url = values.get("database_url")
    if isinstance(url, str) and url and url != _IN_MEMORY:
        scheme = _SQLITE if url.startswith(_SQLITE) else ""
        if scheme or "://" not in url:
            values["database_url"] = f"{scheme}{folder / url.removeprefix(scheme)}"


def _without_plain_address(settings: M) -> M:
    """Leave out a database address without credentials: masked, a message could not name it."""
    url = settings.database_url
    if url is None or find_secrets(url.get_secret_value()):
        return settings
    return settings.model_copy(update={"database_url": None})


def _without_placeholders(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {
            key: _without_placeholders(item)
            for key, item in value.items()
            if not (key == PLACEHOLDER_KEY and item is None)
        }
    if isinstance(value, list):
        return [_without_placeholders(item) for item in value]
    return value


def _has(values: Mapping[str, JsonValue], path: KeyPath) -> bool:
    here: JsonValue = dict(values)
    for part in path:
        if not isinstance(here, dict) or here.get(str(part)) is None:
            return False
        here = here[str(part)]
    return True


def _put(values: dict[str, JsonValue], path: KeyPath, value: JsonValue) -> None:
    here = values
    for part in path[:-1]:
        inner = here.get(str(part))
        here[str(part)] = here = dict(inner) if isinstance(inner, dict) else {}
    here[str(path[-1])] = value
