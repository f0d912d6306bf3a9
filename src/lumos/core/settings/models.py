"""The settings that every project has, whatever parts of Lumos it uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from pydantic import Field, GetJsonSchemaHandler, PrivateAttr, SecretStr
from typing_extensions import override

from lumos.core.settings.base import SettingName, SettingsModel
from lumos.core.settings.problems import InvalidSettingsError, KeyPath, SettingsProblem, key_text
from lumos.core.settings.raw import RawSettings, SettingOrigin

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

STATE_FOLDER = ".lumos"


class SourceEntry(SettingsModel):
    """One source to scan; its handler validates `settings`."""

    type: SettingName = Field(description="The kind of source, such as s3, postgres or kafka.")
    name: SettingName = Field(description="How runs and reports call this source.")
    settings: RawSettings = Field(description="Everything else, as written.")
    is_named: bool = Field(default=False, description="Whether the name was given.")

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


class ProjectSettings(SettingsModel):
    """Catalogs, sources and the state; a subclass adds sections of the packages that read them."""

    read_when_used: ClassVar[frozenset[str]] = frozenset({"database_url"})
    """Sections whose `${VAR}` only the commands need that read them."""
    not_read_yet: ClassVar[tuple[str, ...]] = ()
    """What may be set already, although nothing reads it yet."""

    platform: SettingName = Field(default="embedded", description="The catalog to publish to.")
    platforms: tuple[SettingName, ...] = Field(
        default=(),
        description="The catalogs that a search asks at once; by default only `platform`.",
    )
    platform_config: Mapping[str, RawSettings] = Field(
        default_factory=dict, description="Settings of catalogs, by platform name."
    )
    sources: tuple[SourceEntry, ...] = Field(default=(), description="What to scan.")
    database_url: SecretStr | None = Field(
        default=None, description="State database; by default SQLite in the state folder."
    )
    state_dir: Path = Field(
        default=Path(STATE_FOLDER),
        description="Folder of state and snapshots; a relative path begins at the settings file.",
    )

    _file: Path | None = PrivateAttr(default=None)
    _origin: SettingOrigin | None = PrivateAttr(default=None)
    _unset: Mapping[str, tuple[SettingsProblem, ...]] = PrivateAttr(default_factory=dict)

    @override
    def __getattribute__(self, name: str) -> Any:
        """Refuse to read a section that needs a variable that is not set."""
        if name in type(self).read_when_used and (unset := self.unset_sections.get(name)):
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
        given = self.model_fields_set | self.unset_sections.keys()
        for section in self.model_fields_set:
            value = getattr(self, section) if section not in self.unset_sections else None
            if isinstance(value, SettingsModel):
                given |= {f"{section}.{key}" for key in value.model_fields_set}
        return tuple(name for name in self.not_read_yet if name in given)

    @property
    def file(self) -> Path | None:
        """The file these settings were read from, if there was one."""
        return self._file

    def platform_settings(self, name: str | None = None) -> RawSettings:
        """Return what was written for a platform, by default the chosen one; empty if nothing."""
        return self.platform_config.get(name or self.platform, RawSettings({}))

    def with_unset(self, sections: Mapping[str, tuple[SettingsProblem, ...]]) -> Self:
        """Return the same settings, knowing which sections cannot be read."""
        copied = self.model_copy()
        copied._unset = sections
        return copied

    def with_file(self, file: Path, origin: SettingOrigin | None = None) -> Self:
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
