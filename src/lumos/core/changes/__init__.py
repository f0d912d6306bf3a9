"""The change engine: a pure diff, rules as data, a type lattice and version algebra."""

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
