"""Brings the accepted spellings of a source into one form and gives each a name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from lumos.core.redaction import looks_secret, redact
from lumos.core.settings.models import SourceEntry
from lumos.core.settings.problems import KeyPath, SettingsProblem, key_text
from lumos.core.settings.raw import RawSettings, SettingOrigin

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.settings.validation import LineOf

OriginAt = Callable[[KeyPath, Mapping[str, KeyPath]], SettingOrigin | None]
UnsetKeys = Sequence[tuple[KeyPath, SettingsProblem]]
"""Keys that need an environment variable that is not set."""

_NESTING_KEYS = ("config", "source")
_RENAMED = {"source_type": "type", "source_path": "path"}
_IDENTIFYING_KEYS = frozenset({"type", "source_type", "name"})
_NAMING_KEYS = (
    "bucket",
    "buckets",
    "container",
    "project",
    "account",
    "workspace",
    "host",
    "bootstrap_servers",
    "database",
    "databases",
    "topic_patterns",
    "prefix",
    "prefixes",
    "path",
    "folder",
    "url",
    "uri",
    "endpoint",
)
_LONGEST_NAME = 80
_NAME_PARTS = 2
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._\-]+")


class _Draft(NamedTuple):
    type: str
    name: str | None
    default_name: str
    settings: RawSettings


class SourceReader:
    """Turns the `sources` list into entries, gathering problems on the way."""

    def __init__(
        self, *, line_of: LineOf, origin_at: OriginAt, unset: Mapping[KeyPath, UnsetKeys]
    ) -> None:
        """Get ready.

        Args:
            line_of: the line of a key.
            origin_at: where the settings below a key stand.
            unset: by the path of a source, which of its keys need a variable that is not set.
        """
        self._line_of = line_of
        self._origin_at = origin_at
        self._unset = unset
        self._given: dict[str, KeyPath] = {}
        self.problems: list[SettingsProblem] = []

    def read(self, value: JsonValue) -> tuple[SourceEntry, ...]:
        """Return the entries of the list in order, each with a unique name."""
        if value is None:
            return ()
        if not isinstance(value, list):
            self._problem(("sources",), "sources must be a list")
            return ()
        drafts = [self._draft(item, ("sources", i)) for i, item in enumerate(value)]
        taken = set(self._given)
        entries: list[SourceEntry] = []
        for draft in drafts:
            if draft is None:
                continue
            unique = draft.name or _unique(draft.default_name, taken)
            taken.add(unique)
            entries.append(
                SourceEntry(
                    type=draft.type,
                    name=unique,
                    settings=draft.settings,
                    is_named=draft.name is not None,
                )
            )
        return tuple(entries)

    def _draft(self, item: JsonValue, path: KeyPath) -> _Draft | None:
        if not isinstance(item, dict):
            self._problem(path, f"{key_text(path)} must be a mapping with a key 'type'")
            return None
        values, moved = self._flattened(item, path)
        kind = values.pop("type", None)
        name = values.pop("name", None)
        unset = self._unset.get(path, ())
        if needed := [problem for key, problem in unset if _identifies(key, has_name=bool(name))]:
            self.problems += needed
            return None
        if not isinstance(kind, str) or not kind.strip():
            said = "is missing" if kind is None else "must be text"
            self._problem((*path, "type"), f"key 'type' {said} in {key_text(path)}")
            return None
        if name is not None:
            name = self._checked_name(name, (*path, "name"))
        origin = self._origin_at(path, moved)
        settings = RawSettings(values, origin=origin, unset=[problem for _, problem in unset])
        return _Draft(kind.strip(), name, _default_name(kind.strip(), values), settings)

    def _flattened(
        self, item: dict[str, JsonValue], path: KeyPath
    ) -> tuple[dict[str, JsonValue], dict[str, KeyPath]]:
        values: dict[str, JsonValue] = {}
        moved: dict[str, KeyPath] = {}
        for key, value, written in _pairs(item):
            if key in values:
                self._problem((*path, *written), f"key '{key}' is given twice in {key_text(path)}")
                continue
            values[key] = value
            if written != (key,):
                moved[key] = written
        return values, moved

    def _checked_name(self, name: JsonValue, path: KeyPath) -> str | None:
        text = str(name).strip() if isinstance(name, str | int) else ""
        if not text:
            self._problem(path, f"{key_text(path)} must be text")
            return None
        if text in self._given:
            first = self._line_of(self._given[text])
            at = f", first on line {first}" if first else ""
            self._problem(path, f"source name '{text}' is given twice{at}")
            return text
        self._given[text] = path
        return text

    def _problem(self, path: KeyPath, message: str) -> None:
        self.problems.append(SettingsProblem(key_text(path), self._line_of(path), message))


def _pairs(item: Mapping[str, JsonValue]) -> list[tuple[str, JsonValue, KeyPath]]:
    pairs: list[tuple[str, JsonValue, KeyPath]] = []
    for key, value in item.items():
        if key in _NESTING_KEYS and (isinstance(value, dict) or value is None):
            for inner, inner_value in (value or {}).items():
                pairs.append((_RENAMED.get(inner, inner), inner_value, (key, inner)))
        else:
            pairs.append((_RENAMED.get(key, key), value, (key,)))
    return pairs


def _identifies(key: KeyPath, *, has_name: bool) -> bool:
    """Return whether a key says what a source is or is called, which every command asks."""
    named = {part for part in key if isinstance(part, str)}
    return bool(named & _IDENTIFYING_KEYS) or not (has_name or named.isdisjoint(_NAMING_KEYS))


def _default_name(kind: str, settings: Mapping[str, JsonValue]) -> str:
    parts = [kind]
    for key in _NAMING_KEYS:
        value = settings.get(key)
        first = value[0] if isinstance(value, list) and value else value
        if isinstance(first, str) and not looks_secret(key) and (slug := _slug(first)):
            parts.append(slug)
        if len(parts) > _NAME_PARTS:
            break
    return "-".join(parts)[:_LONGEST_NAME].rstrip("-.")


def _slug(text: str) -> str:
    shown = redact(text)
    if "://" in shown:
        try:
            address = urlsplit(shown)
            shown = f"{address.hostname or ''}{address.path}"
        except ValueError:  # brackets that are not an IPv6 address
            return ""
    return _NOT_IN_NAMES.sub("-", shown).strip("-.")


def _unique(name: str, taken: set[str]) -> str:
    candidate, number = name, 2
    while candidate in taken:
        candidate = f"{name}-{number}"
        number += 1
    return candidate
