"""What a rule is: one row of the table that says what each kind of change means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple

from typing_extensions import override

from lumos.core.changes.profiles import BASES, DEFAULT_PROFILE
from lumos.core.models import Bump, ChangeLevel, ChangeScope, Direction

Mark = Literal["B", "N", "N!", "I"]
"""A verdict in short: breaking, non-breaking, non-breaking with caution, informational."""

_STRUCTURAL = frozenset({Bump.MAJOR, Bump.MINOR})


class Verdict(NamedTuple):
    """How much a change matters, and whether it is worth a second look although it passes."""

    level: ChangeLevel
    caution: bool = False

    @override
    def __str__(self) -> str:
        return self.level.value + ("!" if self.caution else "")


_VERDICTS: Mapping[Mark, Verdict] = MappingProxyType(
    {
        "B": Verdict(ChangeLevel.BREAKING),
        "N": Verdict(ChangeLevel.NON_BREAKING),
        "N!": Verdict(ChangeLevel.NON_BREAKING, caution=True),
        "I": Verdict(ChangeLevel.INFORMATIONAL),
    }
)
Levels = Mapping[str, Verdict]


def worse(one: Verdict, other: Verdict) -> Verdict:
    """Return the verdict that matters more."""
    return max(one, other, key=lambda each: (each.level.rank, each.caution))


def judged(
    lumos: Mark, *, readers: Mark, writers: Mark, iceberg: Mark, delta: Mark, avro: Mark
) -> Levels:
    """Return the verdicts of a rule by profile; `full` follows from readers and writers."""
    marks = {
        "lumos": lumos,
        "readers": readers,
        "writers": writers,
        "iceberg": iceberg,
        "delta": delta,
        "avro": avro,
    }
    return MappingProxyType({name: _VERDICTS[mark] for name, mark in marks.items()})


def everywhere(mark: Mark) -> Levels:
    """Return the verdicts of a rule on which all profiles agree."""
    return judged(mark, readers=mark, writers=mark, iceberg=mark, delta=mark, avro=mark)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What one kind of change means, and how it is worded.

    `message` is a template: `{at}` is the field or the dataset, `{subject}` what is named besides,
    `{old}` and `{new}` the two values. Templates of rules whose values people typed in (defaults,
    properties, documentation) do not use `{old}` and `{new}`.
    """

    id: str
    scope: ChangeScope
    direction: Direction
    levels: Levels
    bump: Bump
    change_type: str = field(metadata={"doc": "The name of the change in a version history."})
    mirrors: tuple[str, ...] = field(metadata={"doc": "What the change may be in reverse."})
    title: str
    message: str
    rationale: str
    example: str
    widening: bool = False
    unmirrored: str | None = field(
        default=None, metadata={"doc": "Why the change has no mirror, where it has none."}
    )
    by_case: tuple[str, ...] = field(
        default=(), metadata={"doc": "Profiles whose level depends on more, such as the types."}
    )

    @property
    def level(self) -> ChangeLevel:
        """The level under the default profile."""
        return self.level_in(DEFAULT_PROFILE)

    @property
    def caution(self) -> bool:
        """Whether the change is worth a second look under the default profile."""
        return self.verdict_in(DEFAULT_PROFILE).caution

    def verdict_in(self, profile: str) -> Verdict:
        """Return the verdict under a profile; `full` is the worse of readers and writers."""
        if profile == "full":
            return worse(self.levels["readers"], self.levels["writers"])
        known = self.levels.get(profile)
        return self.levels[BASES.get(profile, DEFAULT_PROFILE)] if known is None else known

    def level_in(self, profile: str) -> ChangeLevel:
        """Return the level under a profile."""
        return self.verdict_in(profile).level

    def bump_in(self, profile: str) -> Bump:
        """Return the bump under a profile."""
        return self.bump_at(self.level_in(profile))

    def bump_at(self, level: ChangeLevel) -> Bump:
        """Return the bump of a level: breaking is major, and what is only observed is none."""
        if self.bump is Bump.NONE:
            return Bump.NONE
        if level is ChangeLevel.BREAKING:
            return Bump.MAJOR
        if level is ChangeLevel.INFORMATIONAL:
            return Bump.PATCH
        if self.scope is ChangeScope.DATASET:
            return Bump.MINOR if self.bump in _STRUCTURAL else Bump.PATCH
        return Bump.MINOR if self.scope is ChangeScope.SCHEMA else Bump.PATCH
