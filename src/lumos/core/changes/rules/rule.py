"""What a rule is: one row of the table that says what each kind of change means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lumos.core.changes.profiles import BASES, DEFAULT_PROFILE
from lumos.core.models import Bump, ChangeLevel, ChangeScope

_NO_OVERRIDES: Mapping[str, ChangeLevel] = MappingProxyType({})
_STRUCTURAL = frozenset({ChangeScope.SCHEMA, ChangeScope.DATASET})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What one kind of change means, and how it is told.

    `message` is a template: `{at}` is the field or the dataset, `{subject}` what is named besides,
    `{old}` and `{new}` the two values. Templates of rules whose values people typed in (defaults,
    properties, documentation) do not use `{old}` and `{new}`.
    """

    id: str
    scope: ChangeScope
    level: ChangeLevel
    bump: Bump
    change_type: str = field(metadata={"doc": "The name of the change in a version history."})
    mirrors: tuple[str, ...] = field(metadata={"doc": "What the change may be in reverse."})
    title: str
    message: str
    rationale: str
    example: str
    caution: bool = False
    widening: bool = False
    profiles: Mapping[str, ChangeLevel] = field(default_factory=lambda: _NO_OVERRIDES)

    def level_in(self, profile: str) -> ChangeLevel:
        """Return the level under a profile; a profile that says nothing agrees with its base."""
        base = BASES.get(profile, DEFAULT_PROFILE)
        if profile in self.profiles or base == profile:
            return self.profiles.get(profile, self.level)
        return self.level_in(base)

    def bump_in(self, profile: str) -> Bump:
        """Return the bump under a profile."""
        return self.bump_at(self.level_in(profile))

    def bump_at(self, level: ChangeLevel) -> Bump:
        """Return the bump of a level: breaking is major, and nothing else is."""
        if level is ChangeLevel.BREAKING:
            return Bump.MAJOR
        if self.bump is not Bump.MAJOR:
            return self.bump
        return Bump.MINOR if self.scope in _STRUCTURAL else Bump.PATCH
