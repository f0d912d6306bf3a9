"""The one place that knows which class stands behind a platform's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import RLock
from typing import TYPE_CHECKING, ClassVar

from lumos.core.models.base import sha256_of
from lumos.core.registry import Registry, RegistryEntry

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models import Contributor
    from lumos.core.platform.interface import MetadataPlatformInterface
    from lumos.core.store.database import StateDatabase
    from lumos.core.store.settings import ObservationSettings

EMBEDDED = "embedded"
_BUILTINS = {
    "amundsen": "lumos.core.platform.impl.amundsen.handler:AmundsenHandler",
    "atlas": "lumos.core.platform.impl.atlas.handler:AtlasHandler",
    "datahub": "lumos.core.platform.impl.datahub.handler:DataHubHandler",
    EMBEDDED: "lumos.core.platform.impl.embedded_handler:EmbeddedHandler",
    "openmetadata": "lumos.core.platform.impl.openmetadata.handler:OpenMetadataHandler",
    "snowflake": "lumos.core.platform.impl.snowflake.handler:SnowflakeHandler",
}


class PlatformFactory:
    """Makes platform adapters by name."""

    _registry: ClassVar[Registry[MetadataPlatformInterface]] = Registry(
        "lumos.platforms", builtins=_BUILTINS, noun="platform"
    )
    _instances: ClassVar[dict[tuple[str, str], MetadataPlatformInterface]] = {}
    _lock: ClassVar[RLock] = RLock()

    @classmethod
    def get_instance(
        cls, name: str, config: Mapping[str, JsonValue] | None = None
    ) -> MetadataPlatformInterface:
        """Return the adapter of a platform, the same one for the same configuration.

        For scripts that use adapters without a project. A project makes its adapters with
        `create`, so that no other project of the process uses or closes them.

        Raises:
            UnknownNameError: nobody registered the platform; the known names are listed.
            MissingExtraError: the packages that it needs are not installed.
            ConfigurationError: its settings are wrong.
        """
        settings = {} if config is None else config
        key = (name, sha256_of(dict(settings)))
        with cls._lock:
            if key not in cls._instances:
                cls._instances[key] = cls.create(name, settings)
            return cls._instances[key]

    @classmethod
    def create(cls, name: str, config: Mapping[str, JsonValue]) -> MetadataPlatformInterface:
        """Return a new adapter of a platform, which the caller closes.

        Raises:
            UnknownNameError: nobody registered the platform; the known names are listed.
            MissingExtraError: the packages that it needs are not installed.
            ConfigurationError: its settings are wrong.
        """
        return cls._registry.load(name).from_config(config)

    @classmethod
    def embedded_over(
        cls,
        database: StateDatabase,
        *,
        contributor: Contributor | None = None,
        retention: ObservationSettings | None = None,
    ) -> MetadataPlatformInterface:
        """Return the embedded catalog over a state database that is open already.

        Args:
            database: the database.
            contributor: who says what is emitted; without one, an editor of the catalog.
            retention: how long measurements are kept, if not as by default.
        """
        over: Callable[..., MetadataPlatformInterface] = cls._registry.load(EMBEDDED)
        given = {"contributor": contributor, "retention": retention}
        return over(database, **{name: each for name, each in given.items() if each is not None})

    @classmethod
    def handler(cls, name: str) -> type[MetadataPlatformInterface]:
        """Return the class behind a platform's name."""
        return cls._registry.load(name)

    @classmethod
    def register(cls, name: str, handler: type[MetadataPlatformInterface] | str) -> None:
        """Let a name stand for an adapter class, or for one given as `module:Class`."""
        cls._registry.register(name, handler)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return every registered platform in ascending order."""
        return cls._registry.names()

    @classmethod
    def summary(cls) -> tuple[RegistryEntry, ...]:
        """Return every platform and whether it can be used here."""
        return cls._registry.summary()

    @classmethod
    def close_all(cls) -> None:
        """Close and forget all adapters of `get_instance`, so that its next call makes new ones."""
        with cls._lock:
            while cls._instances:
                cls._instances.popitem()[1].close()
