"""Finds the handler of a source by its type."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from lumos.core.registry import Registry
from lumos.core.settings import (
    ProjectSettings,
    RawSettings,
    SourceEntry,
    settings_from_mapping,
    validate_against,
)
from lumos.feature.ingestion.handlers.base_ingestion_handler import (
    SourceHandler,
    SourceSettings,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.settings.raw import SettingOrigin

AnyHandler: TypeAlias = SourceHandler[Any]

_HANDLERS = "lumos.feature.ingestion.handlers"
BUILT_IN: Mapping[str, str] = {
    "azure": f"{_HANDLERS}.azure:AzureHandler",
    "dbt": f"{_HANDLERS}.dbt.handler:DbtHandler",
    "gcs": f"{_HANDLERS}.gcs:GcsHandler",
    "hdfs": f"{_HANDLERS}.hdfs:HdfsHandler",
    "local": f"{_HANDLERS}.local:LocalHandler",
    "parquet": f"{_HANDLERS}.parquet:ParquetHandler",
    "postgres": f"{_HANDLERS}.postgres.handler:PostgreSQLHandler",
    "s3": f"{_HANDLERS}.s3:S3Handler",
}


class HandlerFactory:
    """Makes handlers of the source types that Lumos has or that others registered."""

    _registry: ClassVar[Registry[AnyHandler]] = Registry(
        "lumos.sources", builtins=BUILT_IN, noun="source type"
    )

    @classmethod
    def get_handler(cls, source: SourceEntry | Mapping[str, JsonValue]) -> AnyHandler:
        """Return the handler of a source, its settings validated.

        Args:
            source: an entry of `sources`, or a mapping in any form that an entry may have:
                `{"type": ...}`, `{"source": {"type": ...}}`, `{"source_type": ...}`.

        Raises:
            UnknownNameError: no handler of that type is registered.
            InvalidSettingsError: the settings do not fit the handler; no value is echoed.
        """
        entry = source if isinstance(source, SourceEntry) else _entry_of(source)
        handler = cls._registry.load(entry.type)
        named = {"type": entry.type, "name": entry.name}
        if entry.is_named and "root" in handler.settings_model.model_fields:
            named["root"] = entry.name
        raw = RawSettings(
            {**named, **entry.settings, "type": entry.type, "name": entry.name},
            origin=entry.settings.origin,
        )
        settings: SourceSettings = validate_against(
            handler.settings_model, raw, where=f"source '{entry.name}'"
        )
        return handler(_beside_settings_file(settings, raw.origin))

    @classmethod
    def settings_model(cls, source_type: str) -> type[SourceSettings]:
        """Return what the settings of a source type must look like.

        Raises:
            UnknownNameError: no handler of that type is registered.
        """
        return cls._registry.load(source_type).settings_model

    @classmethod
    def register(cls, source_type: str, handler: type[AnyHandler] | str) -> None:
        """Let a source type stand for a handler class, or for one given as `module:Class`."""
        cls._registry.register(source_type, handler)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return every source type in ascending order."""
        return cls._registry.names()


def _beside_settings_file(settings: SourceSettings, origin: SettingOrigin | None) -> SourceSettings:
    """Return settings whose relative paths begin where the settings file lies.

    What is scanned, and what its datasets are called, does not depend on where a command runs.
    """
    if origin is None:
        return settings
    folder = origin.location.absolute().parent
    paths = {
        name: folder / value.expanduser()
        for name, value in ((name, getattr(settings, name)) for name in type(settings).model_fields)
        if isinstance(value, Path)
    }
    return settings.model_copy(update=paths) if paths else settings


def _entry_of(config: Mapping[str, JsonValue]) -> SourceEntry:
    return settings_from_mapping({"sources": [dict(config)]}, {}, model=ProjectSettings).sources[0]
