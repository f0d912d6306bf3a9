"""Version algebra: from changes to the next version and its entry in the history."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lumos.core.changes.diff import severity_order
from lumos.core.changes.rules import RULES_BY_ID
from lumos.core.models import (
    FIRST_VERSION,
    Bump,
    Change,
    ChangeLevel,
    ChangeScope,
    SemanticVersion,
    VersionCategory,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

DEFAULT_CLOUD_VERSION_PREFIX = "S-"

_TRAILING_NUMBER = re.compile(r"[0-9]+\Z")
_NAMES_OF_VALUES: dict[str, tuple[str, str]] = {
    "COLUMN_ADDED": ("type", "type"),
    "COLUMN_REMOVED": ("type", "type"),
    "COLUMN_TYPE_CHANGED": ("old_type", "new_type"),
    "COLUMN_NULLABILITY_CHANGED": ("old_nullable", "new_nullable"),
    "COLUMN_DEFAULT_CHANGED": ("old_default", "new_default"),
}


def bump_of(changes: Iterable[Change]) -> Bump:
    """Return the highest bump that any change asks for; nothing changed is no bump."""
    return max((change.bump for change in changes), key=lambda bump: bump.rank, default=Bump.NONE)


def next_version(current: SemanticVersion | None, bump: Bump) -> SemanticVersion:
    """Return the version after `current`; the first one is 1.0.0, whatever the bump."""
    if current is None:
        return FIRST_VERSION
    match bump:
        case Bump.MAJOR:
            return SemanticVersion(current.major + 1, 0, 0)
        case Bump.MINOR:
            return SemanticVersion(current.major, current.minor + 1, 0)
        case Bump.PATCH:
            return SemanticVersion(current.major, current.minor, current.patch + 1)
        case Bump.NONE:
            return current


def next_cloud_version(current: str | None, *, prefix: str = DEFAULT_CLOUD_VERSION_PREFIX) -> str:
    """Return the cloud version after `current`: after `S-311` comes `S-312`, first is `S-1`.

    The number goes on when the prefix changes, and leading zeros keep their width.
    """
    number = _TRAILING_NUMBER.search(current or "")
    if number is None:
        return f"{prefix}1"
    return f"{prefix}{int(number[0]) + 1:0{len(number[0])}d}"


def is_backward_compatible(changes: Iterable[Change]) -> bool:
    """Return whether no change is breaking."""
    return all(change.level is not ChangeLevel.BREAKING for change in changes)


def change_type_of(changes: Iterable[Change]) -> str | None:
    """Return the name in a version history of the most severe change; none if nothing changed."""
    worst = min(changes, key=severity_order, default=None)
    return None if worst is None else change_type_of_rule(worst.rule)


def change_type_of_rule(rule: str) -> str:
    """Return the history's name for what a rule finds, such as `COLUMN_ADDED`."""
    known = RULES_BY_ID.get(rule)
    return known.change_type if known else rule.upper().replace(".", "_")


def category_of(changes: Iterable[Change]) -> VersionCategory | None:
    """Return whether the schema changed or only what is known about it."""
    kinds = [_is_structural(change) for change in changes]
    if not kinds:
        return None
    return VersionCategory.SCHEMA_CHANGE if any(kinds) else VersionCategory.METADATA_UPDATE


def _is_structural(change: Change) -> bool:
    if change.scope is ChangeScope.DATASET:
        return change.bump.rank >= Bump.MINOR.rank
    return change.scope is ChangeScope.SCHEMA


def change_details_of(changes: Sequence[Change]) -> dict[str, JsonValue]:
    """Return the text of the history: the most severe change, and all of them if there are more."""
    ordered = sorted(changes, key=severity_order)
    if not ordered:
        return {}
    details = _details(ordered[0])
    if len(ordered) > 1:
        details["changes"] = [_listed(change) for change in ordered]
    return details


def _details(change: Change) -> dict[str, JsonValue]:
    name_of_old, name_of_new = _NAMES_OF_VALUES.get(
        change_type_of_rule(change.rule), ("old", "new")
    )
    details: dict[str, JsonValue] = {"column": change.path} if change.path else {}
    if change.old is not None:
        details[name_of_old] = change.old
    if change.new is not None:
        details[name_of_new] = change.new
    return details


def _listed(change: Change) -> dict[str, JsonValue]:
    return {
        "change_type": change_type_of_rule(change.rule),
        "rule": change.rule,
        "level": change.level.value,
        **_details(change),
    }
