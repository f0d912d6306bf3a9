"""The rules as data: one table, one row for each kind of change."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lumos.core.changes.profiles import DEFAULT_PROFILE
from lumos.core.changes.rules.constraint_rules import CONSTRAINT_RULES
from lumos.core.changes.rules.dataset_rules import DATASET_RULES
from lumos.core.changes.rules.departure_rules import DEPARTURE_RULES
from lumos.core.changes.rules.field_rules import FIELD_RULES
from lumos.core.changes.rules.metadata_rules import METADATA_RULES
from lumos.core.changes.rules.observation_rules import OBSERVATION_RULES
from lumos.core.changes.rules.promise_rules import PROMISE_RULES
from lumos.core.changes.rules.rule import Rule
from lumos.core.changes.rules.type_rules import TYPE_RULES

RULES: tuple[Rule, ...] = (
    *DATASET_RULES,
    *FIELD_RULES,
    *TYPE_RULES,
    *CONSTRAINT_RULES,
    *DEPARTURE_RULES,
    *METADATA_RULES,
    *PROMISE_RULES,
    *OBSERVATION_RULES,
)
RULES_BY_ID: Mapping[str, Rule] = MappingProxyType({rule.id: rule for rule in RULES})

__all__ = ["DEFAULT_PROFILE", "RULES", "RULES_BY_ID", "Rule"]
