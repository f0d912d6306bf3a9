"""The difference between two states of a dataset, as typed changes."""

from __future__ import annotations

from collections.abc import Iterator

from lumos.core.changes.detectors import DETECTORS
from lumos.core.changes.finding import Finding
from lumos.core.changes.profiles import DEFAULT_PROFILE, PROFILES, resolve_profile
from lumos.core.changes.rules import RULES, RULES_BY_ID, Rule
from lumos.core.changes.text import quoted, shown_value
from lumos.core.models import Change, ChangeLevel, LumosDataset, Urn
from lumos.core.models.base import canonical_json

_RANK_OF_RULE = {rule.id: rank for rank, rule in enumerate(RULES)}
_STILL_FITS = "; old values fit, readers of the old type may not cope"


def diff_datasets(
    old: LumosDataset | None, new: LumosDataset | None, *, profile: str = DEFAULT_PROFILE
) -> tuple[Change, ...]:
    """Return what changed, most severe first, in an order that depends on nothing else.

    Nothing is returned when both contracts are the same; observations are never compared. Of a
    transitive profile, this is one step: `diff_against_history` takes them all.

    Raises:
        UnknownNameError: there is no such profile.
    """
    name = resolve_profile(profile).name
    subject = new or old
    if subject is None:
        return ()
    changes = [_change(finding, subject.urn, profile=name) for finding in _findings(old, new)]
    return tuple(sorted(changes, key=severity_order))


def severity_order(change: Change) -> tuple[int, int, int, str, bytes]:
    """Sort the most severe first, and equals by rule, path and values."""
    return (
        -change.level.rank,
        -change.bump.rank,
        _RANK_OF_RULE.get(change.rule, len(RULES)),
        change.path,
        canonical_json([change.old, change.new]),
    )


def _findings(old: LumosDataset | None, new: LumosDataset | None) -> Iterator[Finding]:
    if old is new:
        return
    if old is None or new is None:
        yield Finding("dataset.added" if old is None else "dataset.removed")
        return
    for detect in DETECTORS:
        yield from detect(old, new)


def _change(finding: Finding, dataset: Urn, *, profile: str) -> Change:
    rule = RULES_BY_ID[finding.rule]
    message = rule.message.format(
        at=f"field {quoted(finding.path)}" if finding.path else "the dataset",
        subject=finding.subject,
        old=shown_value(finding.old),
        new=shown_value(finding.new),
    )
    level = _level(finding, rule, profile)
    return Change(
        dataset=dataset,
        path=finding.path,
        rule=rule.id,
        level=level,
        scope=rule.scope,
        bump=rule.bump_at(level),
        old=finding.old,
        new=finding.new,
        caution=rule.caution,
        widening=rule.widening,
        passes_under=_passes_under(finding, rule) if level is ChangeLevel.BREAKING else (),
        message=message + (_STILL_FITS if rule.widening else ""),
    )


def _level(finding: Finding, rule: Rule, profile: str) -> ChangeLevel:
    """Return the level of the rule, unless the finding itself knows better in this profile."""
    if profile in finding.breaks_in:
        return ChangeLevel.BREAKING
    level = rule.level_in(profile)
    passes = profile in finding.passes_in and level is ChangeLevel.BREAKING
    return ChangeLevel.NON_BREAKING if passes else level


def _passes_under(finding: Finding, rule: Rule) -> tuple[str, ...]:
    return tuple(
        name for name in PROFILES if _level(finding, rule, name) is not ChangeLevel.BREAKING
    )
