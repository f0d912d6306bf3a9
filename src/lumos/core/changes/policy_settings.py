"""Makes the change policy of a project from its settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lumos.core.changes.policy import ChangePolicy, DeprecationWindow, PolicyException, matches
from lumos.core.changes.profiles import CONFLUENT_ALIASES, PROFILES, resolve_profile
from lumos.core.changes.rules import RULES_BY_ID
from lumos.core.errors import UnknownNameError
from lumos.core.models import ChangeLevel
from lumos.core.models.frozen import FrozenDict
from lumos.core.settings.problems import KeyPath, nearest

if TYPE_CHECKING:
    from lumos.core.changes.settings import ChangePolicySettings
    from lumos.core.settings import ProjectSettings

SECTION = "change_policy"


def policy_of(given: ChangePolicySettings, project: ProjectSettings) -> ChangePolicy:
    """Return the change policy of a project.

    Args:
        given: the section.
        project: the settings that it is part of.

    Raises:
        InvalidSettingsError: a profile or a rule is unknown; every such key is named, with a
            suggestion and its line.
    """
    if problems := list(_problems(given)):
        raise project.refused(problems)
    return ChangePolicy(
        profile=str(resolve_profile(given.profile)),
        rules=FrozenDict({rule: _level(level) for rule, level in given.rules.items()}),
        exceptions=tuple(
            PolicyException(
                pattern=each.pattern,
                reason=each.reason,
                rules=each.rules,
                fields=each.fields,
                level=None if each.level == "ignore" else _level(each.level),
                owner=each.owner,
                expires=each.expires,
            )
            for each in given.exceptions
        ),
        deprecation_windows=tuple(
            DeprecationWindow(days=each.days, pattern=each.pattern)
            for each in given.deprecation_windows
        ),
    )


def _level(text: str) -> ChangeLevel:
    return ChangeLevel(text.upper())


def _problems(given: ChangePolicySettings) -> Iterator[tuple[KeyPath, str]]:
    try:
        resolve_profile(given.profile)
    except UnknownNameError:
        names = (*PROFILES, *(alias.upper() for alias in CONFLUENT_ALIASES))
        near = nearest(given.profile, names)
        told = f"did you mean '{near}'?" if near else f"known profiles: {', '.join(PROFILES)}"
        yield (SECTION, "profile"), f"is not a profile of change rules; {told}"
    for rule in given.rules:
        if rule not in RULES_BY_ID:
            yield (SECTION, "rules", rule), _unknown_rule(rule)
    for number, exception in enumerate(given.exceptions):
        for place, rule in enumerate(exception.rules):
            if not any(matches(rule, known) for known in RULES_BY_ID):
                yield (SECTION, "exceptions", number, "rules", place), _unknown_rule(rule)


def _unknown_rule(rule: str) -> str:
    near = nearest(rule, RULES_BY_ID)
    told = f"did you mean '{near}'?" if near else "see them with: lumos rules"
    return f"is no rule; {told}"
