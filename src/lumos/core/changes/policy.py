"""A project's own judgement of changes: profile, overrides, exceptions, deprecation windows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache

from lumos.core.changes.diff import (
    diff_datasets,
    diff_edges,
    diff_observations,
    severity_order,
)
from lumos.core.changes.profiles import resolve_profile
from lumos.core.changes.rules import DEFAULT_PROFILE
from lumos.core.changes.text import member_path
from lumos.core.changes.transitive import diff_against_history
from lumos.core.models import (
    Bump,
    Change,
    ChangeLevel,
    ChangeScope,
    Deprecation,
    Field,
    FieldType,
    LineageEdge,
    LumosDataset,
    PolicyEffect,
    Urn,
)
from lumos.core.models.frozen import FrozenDict

REMOVALS = frozenset({"dataset.removed.after_sunset", "field.removed.after_sunset"})
"""What a deprecation window may refuse; a removal before its sunset is breaking anyway."""

_PREFIX = "change_policy."
"""Where a policy stands in the settings."""

_URN = "lumos://"
_STRUCTURAL = frozenset({ChangeScope.SCHEMA, ChangeScope.DATASET})
_NO_OVERRIDES: Mapping[str, ChangeLevel] = FrozenDict()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyException:
    """Changes that are judged otherwise, why, and until when.

    `pattern` is matched by `matches_dataset`, `fields` and `rules` by `matches`; without any, all
    are meant. Without a level the change is ignored: reported as informational, never a reason to
    refuse or to alert.
    """

    pattern: str
    reason: str
    rules: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    level: ChangeLevel | None = None
    owner: str | None = None
    expires: date | None = None

    def covers(self, change: Change) -> bool:
        """Return whether the exception covers a change, at any time."""
        return (
            (not self.rules or any(matches(rule, change.rule) for rule in self.rules))
            and (not self.fields or any(matches(path, change.path) for path in self.fields))
            and matches_dataset(self.pattern, change.dataset)
        )

    def has_expired(self, at: datetime | None) -> bool:
        """Return whether the last day of the exception is over."""
        return self.expires is not None and at is not None and at.date() > self.expires


@dataclass(frozen=True, slots=True, kw_only=True)
class DeprecationWindow:
    """How long something must have been deprecated before it may go, besides its sunset."""

    days: int
    pattern: str = "*"

    def missing(self, deprecation: Deprecation | None, at: datetime) -> str | None:
        """Return what a deprecation lacked; nothing when it was long enough."""
        if self.days == 0:
            return None
        if deprecation is None or deprecation.since is None:
            return f"{self.days} days are asked for, and the deprecation does not say since when"
        lasted = (at.date() - deprecation.since).days
        return f"deprecated for {lasted} of {self.days} days" if lasted < self.days else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePolicy:
    """How changes are judged: a pure value that travels to workers.

    A level comes from the profile; an override of the rule replaces it, else a deprecation window
    may refuse a removal, and the first exception that covers the change and has not expired has
    the last word.
    """

    profile: str = DEFAULT_PROFILE
    rules: Mapping[str, ChangeLevel] = field(default_factory=lambda: _NO_OVERRIDES)
    exceptions: tuple[PolicyException, ...] = ()
    deprecation_windows: tuple[DeprecationWindow, ...] = ()

    def judge(
        self,
        old: LumosDataset | None,
        new: LumosDataset | None,
        *,
        at: datetime | None = None,
        observed: bool = True,
        earlier: Callable[[], Sequence[LumosDataset]] = tuple,
    ) -> tuple[Change, ...]:
        """Return what changed as this policy sees it, most severe first.

        Args:
            old: the state before.
            new: the state now.
            at: the time; without it no exception expires and no sunset has passed.
            observed: where false, a dataset that is not there is not taken to be gone.
            earlier: gives the states before `old`, oldest first; a transitive profile asks for
                them when something changed.
        """
        changes = diff_datasets(old, new, profile=self.profile, at=at, observed=observed)
        if changes and old is not None and new is not None and self.is_transitive:
            states = (*earlier(), old)
            changes = diff_against_history(states, new, profile=self.profile, at=at)
        return self.adjusted(changes, old=old, at=at)

    def judge_edges(
        self, old: LineageEdge | None, new: LineageEdge | None, *, at: datetime | None = None
    ) -> tuple[Change, ...]:
        """Return what changed within one step of lineage, as this policy sees it."""
        return self.adjusted(diff_edges(old, new, profile=self.profile), old=None, at=at)

    def judge_observations(
        self, old: LumosDataset, new: LumosDataset, *, at: datetime | None = None
    ) -> tuple[Change, ...]:
        """Return which observed facts differ, as this policy sees it."""
        return self.adjusted(diff_observations(old, new, profile=self.profile), old=old, at=at)

    @property
    def is_transitive(self) -> bool:
        """Whether a change is judged against every version that is kept."""
        return resolve_profile(self.profile).transitive

    def adjusted(
        self, changes: Iterable[Change], *, old: LumosDataset | None, at: datetime | None
    ) -> tuple[Change, ...]:
        """Return changes of the profile after overrides, windows and exceptions."""
        if not (self.rules or self.exceptions or self.deprecation_windows):
            return tuple(changes)
        judged = (self._judged(change, old=old, at=at) for change in changes)
        return tuple(sorted(judged, key=severity_order))

    def expired(self, at: datetime) -> tuple[PolicyException, ...]:
        """Return the exceptions that no longer apply."""
        return tuple(each for each in self.exceptions if each.has_expired(at))

    def _judged(self, change: Change, *, old: LumosDataset | None, at: datetime | None) -> Change:
        judged = change
        if (level := self.rules.get(change.rule)) is not None:
            judged = _with_level(change, level, source=f"rules.{change.rule}")
        elif change.rule in REMOVALS and at is not None:
            judged = self._after_window(change, old=old, at=at)
        return self._after_exceptions(judged, at=at)

    def _after_window(self, change: Change, *, old: LumosDataset | None, at: datetime) -> Change:
        for number, window in enumerate(self.deprecation_windows):
            if matches_dataset(window.pattern, change.dataset):
                missing = window.missing(_deprecation(old, change.path), at)
                if missing is None:
                    return change
                source = f"deprecation_windows[{number}]"
                return _with_level(change, ChangeLevel.BREAKING, source=source, reason=missing)
        return change

    def _after_exceptions(self, change: Change, *, at: datetime | None) -> Change:
        lapsed: tuple[int, PolicyException] | None = None
        for number, exception in enumerate(self.exceptions):
            if not exception.covers(change):
                continue
            if not exception.has_expired(at):
                level = exception.level or ChangeLevel.INFORMATIONAL
                source = f"exceptions[{number}]"
                return _with_level(change, level, source=source, exception=exception)
            lapsed = lapsed or (number, exception)
        return _with_lapsed(change, *lapsed) if lapsed else change


def _deprecation(old: LumosDataset | None, path: str) -> Deprecation | None:
    if old is None:
        return None
    if not path:
        return old.governance.deprecation
    found = dict(_fields_below("", old.schema.fields)).get(path)
    return found.deprecation if found else None


def _fields_below(parent: str, fields: Iterable[Field]) -> Iterator[tuple[str, Field]]:
    for each in fields:
        path = member_path(parent, each.name)
        yield path, each
        yield from _fields_within(path, each)


def _fields_within(path: str, node: FieldType) -> Iterator[tuple[str, Field]]:
    yield from _fields_below(path, node.fields)
    for suffix, inner in (("[]", node.items), ("{key}", node.key), ("{value}", node.value)):
        if inner is not None:
            yield from _fields_within(path + suffix, inner)


def _with_level(
    change: Change,
    level: ChangeLevel,
    *,
    source: str,
    reason: str | None = None,
    exception: PolicyException | None = None,
) -> Change:
    ignored = exception is not None and exception.level is None
    if level is change.level and not ignored:
        return change
    earlier = change.policy.original_level if change.policy else change.level
    effect = PolicyEffect(
        source=_PREFIX + source,
        original_level=earlier,
        reason=exception.reason if exception else reason,
        owner=exception.owner if exception else None,
        expires=exception.expires if exception else None,
        ignored=ignored,
    )
    told = f"{'ignored, ' if ignored else ''}{earlier} without {effect.source}"
    why = f": {effect.reason}" if effect.reason else ""
    changed = change.model_copy(
        update={
            "level": level,
            "bump": _bump(change, level),
            "passes_under": change.passes_under if level is ChangeLevel.BREAKING else (),
            "policy": effect,
        }
    )
    return _with_note(changed, told + why)


def _with_lapsed(change: Change, number: int, exception: PolicyException) -> Change:
    source = f"{_PREFIX}exceptions[{number}]"
    effect = PolicyEffect(
        source=source,
        original_level=change.level,
        reason=exception.reason,
        owner=exception.owner,
        expires=exception.expires,
        expired=True,
    )
    marked = change if change.policy else change.model_copy(update={"policy": effect})
    return _with_note(marked, f"{source} expired on {exception.expires}")


def _with_note(change: Change, note: str) -> Change:
    return change.model_copy(update={"message": f"{change.message} ({note})"})


def _bump(change: Change, level: ChangeLevel) -> Bump:
    if change.bump is Bump.NONE:  # what is only observed or declared raises no version
        return Bump.NONE
    if level is ChangeLevel.BREAKING:
        return Bump.MAJOR
    if level is ChangeLevel.INFORMATIONAL:
        return Bump.PATCH
    return Bump.MINOR if change.scope in _STRUCTURAL else Bump.PATCH


def matches_dataset(pattern: str, urn: Urn) -> bool:
    """Return whether a pattern names a dataset.

    One that begins with `lumos://` is compared with the URN, one that begins with `/` with its
    path, and any other with the end of its path, from the beginning of a part on.
    """
    if pattern.startswith(_URN):
        return matches(pattern, urn)
    return matches(
        pattern if pattern.startswith("/") else f"*/{pattern}", f"/{'/'.join(urn.parts)}"
    )


def matches(pattern: str, text: str) -> bool:
    """Return whether a whole text has the form of a pattern, in which * and ? stand for others."""
    return _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    escaped = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.compile(escaped, re.DOTALL)
