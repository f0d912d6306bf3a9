"""The difference between two states of a dataset, as typed changes."""

from __future__ import annotations

from collections.abc import Iterator

from lumos.core.changes.detectors import DETECTORS
from lumos.core.changes.finding import Finding
from lumos.core.changes.profiles import DEFAULT_PROFILE, resolve_profile
from lumos.core.changes.rules import RULES, RULES_BY_ID
from lumos.core.changes.text import quoted, shown_value
from lumos.core.models import Change, LumosDataset, Urn
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
    return Change(
        dataset=dataset,
        path=finding.path,
        rule=rule.id,
        level=rule.level_in(profile),
        scope=rule.scope,
        bump=rule.bump_in(profile),
        old=finding.old,
        new=finding.new,
        caution=rule.caution,
        widening=rule.widening,
        message=message + (_STILL_FITS if rule.widening else ""),
    )
