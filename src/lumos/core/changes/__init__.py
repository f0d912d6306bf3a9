"""The change engine: a pure diff, rules as data, a type lattice and version algebra."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lumos.core.changes.applying import apply_changes
    from lumos.core.changes.declared import declared_version_changes
    from lumos.core.changes.diff import (
        diff_datasets,
        diff_edges,
        diff_observations,
        severity_order,
    )
    from lumos.core.changes.policy import ChangePolicy, DeprecationWindow, PolicyException
    from lumos.core.changes.profiles import DEFAULT_PROFILE, PROFILES, Profile, resolve_profile
    from lumos.core.changes.rules import RULES, RULES_BY_ID, Rule
    from lumos.core.changes.transitive import diff_against_history
    from lumos.core.changes.versions import (
        DEFAULT_CLOUD_VERSION_PREFIX,
        bump_of,
        category_of,
        change_details_of,
        change_type_of,
        change_type_of_rule,
        is_backward_compatible,
        next_cloud_version,
        next_version,
    )

__all__ = [
    "DEFAULT_CLOUD_VERSION_PREFIX",
    "DEFAULT_PROFILE",
    "PROFILES",
    "RULES",
    "RULES_BY_ID",
    "ChangePolicy",
    "DeprecationWindow",
    "PolicyException",
    "Profile",
    "Rule",
    "apply_changes",
    "bump_of",
    "category_of",
    "change_details_of",
    "change_type_of",
    "change_type_of_rule",
    "declared_version_changes",
    "diff_against_history",
    "diff_datasets",
    "diff_edges",
    "diff_observations",
    "is_backward_compatible",
    "next_cloud_version",
    "next_version",
    "resolve_profile",
    "severity_order",
]
_LATE = {
    "ChangePolicy": "policy",
    "DEFAULT_CLOUD_VERSION_PREFIX": "versions",
    "DEFAULT_PROFILE": "profiles",
    "DeprecationWindow": "policy",
    "PROFILES": "profiles",
    "PolicyException": "policy",
    "Profile": "profiles",
    "RULES": "rules",
    "RULES_BY_ID": "rules",
    "Rule": "rules",
    "apply_changes": "applying",
    "bump_of": "versions",
    "category_of": "versions",
    "change_details_of": "versions",
    "change_type_of": "versions",
    "change_type_of_rule": "versions",
    "declared_version_changes": "declared",
    "diff_against_history": "transitive",
    "diff_datasets": "diff",
    "diff_edges": "diff",
    "diff_observations": "diff",
    "is_backward_compatible": "versions",
    "next_cloud_version": "versions",
    "next_version": "versions",
    "resolve_profile": "profiles",
    "severity_order": "diff",
}
"""In which module each name is: settings are loaded without the engine."""


def __getattr__(name: str) -> object:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
