"""Where a catalog is: the settings that identify it among others of its kind, and no more."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from lumos.core.models.base import sha256_of
from lumos.core.redaction import looks_secret

if TYPE_CHECKING:
    from pydantic import JsonValue

_PORTS: Final = {"http": 80, "https": 443}
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class _Key(NamedTuple):
    """One part of the address of a catalog, under any of its names in the settings."""

    names: tuple[str, ...]
    default: JsonValue = None


_WHERE: Final[Mapping[str, tuple[_Key, ...]]] = {
    "amundsen": (
        _Key(("database_url",)),
        _Key(("neo4j_url",)),
        _Key(("neo4j_database",), "neo4j"),
    ),
    "atlas": (_Key(("url",), "http://localhost:21000"),),
    "datahub": (
        _Key(("gms_server", "server", "gms_url", "url")),
        _Key(("environment", "env"), "PROD"),
    ),
    "openmetadata": (_Key(("server",), "http://localhost:8585"),),
    "snowflake": (
        _Key(("account",)),
        _Key(("host",)),
        _Key(("stash_database",)),
        _Key(("stash_schema",), "LUMOS"),
    ),
}
_HOW: Final = frozenset({
    "attempts", "batch_size", "max_compression_ratio", "max_response_bytes", "page_size",
    "request_seconds", "timeout", "timeout_seconds", "verify", "workers",
})  # fmt: skip
"""What adapters of others may call how they are to work, which says nothing of where."""


def place_of(name: str, settings: Mapping[str, JsonValue]) -> str:
    """Return an identifier of a catalog, unique also among those of one kind, without secrets.

    Who asks, with which password and how patiently, makes no difference: all that Lumos remembers
    of a catalog outlasts a change of these.

    Args:
        name: that of the platform, or the address of a Lumos catalog.
        settings: what was written for it.
    """
    return sha256_of([_normalized(name), _where(name, settings)])


def _where(name: str, settings: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    keys = _WHERE.get(name)
    if keys is None:
        return {
            key: _normalized(value)
            for key, value in settings.items()
            if key not in _HOW and not looks_secret(key)
        }
    where = {key.names[0]: _normalized(_given(key, settings)) for key in keys}
    databases = settings.get("databases")
    if name == "snowflake" and where["stash_database"] is None and isinstance(databases, list):
        where["stash_database"] = databases[0] if databases else None
    return where


def _given(key: _Key, settings: Mapping[str, JsonValue]) -> JsonValue:
    return next((settings[name] for name in key.names if name in settings), key.default)


def _normalized(value: JsonValue) -> JsonValue:
    """Return a value, an address without who asks and without differences of spelling."""
    if not isinstance(value, str) or not _ADDRESS.match(value):
        return value
    try:
        parts = urlsplit(value)
        host, port = parts.hostname, parts.port
    except ValueError:
        return value
    if not host:
        return value  # a file
    scheme = parts.scheme.partition("+")[0]
    served = "" if port in (None, _PORTS.get(scheme)) else f":{port}"
    path = parts.path.rstrip("/").removesuffix("/api")
    return f"{scheme}://{host}{served}{path}"
