"""Finds URLs in settings that cannot be meant as they are written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from lumos.core.settings.problems import KeyPath, nearest

if TYPE_CHECKING:
    from pydantic import JsonValue

_SECTIONS: Final = ("database_url", "platform_config", "snapshots", "sources")
_KEYS: Final = re.compile(r"(?:^|_)(?:url|uri|endpoint|server)$")
_SCHEMES: Final = frozenset(
    {
        *("http", "https", "file", "s3", "s3a", "gs", "abfs", "abfss", "wasb", "wasbs", "azure"),
        *("hdfs", "webhdfs", "swebhdfs", "sqlite", "postgres", "postgresql", "mysql", "mariadb"),
        *("mongodb", "bolt", "neo4j", "kafka", "sc", "jdbc", "sqs"),
    }
)
_OF_SERVERS: Final = frozenset({"http", "https", "hdfs", "webhdfs", "swebhdfs"})
_ONE_SLASH: Final = re.compile(r"(?:https?|s3a?|gs|hdfs|postgres(?:ql)?):/?(?!/)", re.IGNORECASE)
_EXPECTED: Final = "expected something like https://HOST:PORT/PATH"


def address_problems(values: dict[str, JsonValue]) -> Iterator[tuple[KeyPath, str]]:
    """Yield the keys whose URL is malformed, and what is wrong; never the value itself."""
    for section in _SECTIONS:
        yield from _below(values.get(section), (section,))


def _below(value: JsonValue, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _below(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _below(item, (*path, number))
    elif isinstance(value, str) and (said := _problem(value.strip(), path)):
        yield path, said


def _problem(text: str, path: KeyPath) -> str | None:
    key = next((part for part in reversed(path) if isinstance(part, str)), "")
    if not _KEYS.search(key):
        return None
    if "://" not in text:
        is_cut = _ONE_SLASH.match(text)
        return f"is no URL: '//' is missing after its first ':'; {_EXPECTED}" if is_cut else None
    scheme = text.partition("://")[0].lower()
    if scheme.partition("+")[0] not in _SCHEMES:
        near = nearest(scheme, _SCHEMES)
        return f"begins with no known scheme; did you mean '{near}://'?" if near else None
    return _server_problem(text) if scheme in _OF_SERVERS else None


def _server_problem(text: str) -> str | None:
    if any(char.isspace() or not char.isprintable() for char in text):
        return f"is no URL: it holds a space or a control character; {_EXPECTED}"
    try:
        parts = urlsplit(text)
        if not parts.hostname:
            return f"is no URL: it names no host; {_EXPECTED}"
        _ = parts.port
    except ValueError as error:
        port = "port" in str(error).lower()
        what = "its port is not a number up to 65535" if port else "its host cannot be read"
        return f"is no URL: {what}; {_EXPECTED}"
    return None
