"""The difference between two states of a dataset, as typed changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from lumos.core.changes.detectors import DETECTORS
from lumos.core.changes.detectors.lineage import edge_findings, inferred_edge_findings
from lumos.core.changes.detectors.observations import observation_findings
from lumos.core.changes.finding import Finding
from lumos.core.changes.profiles import BASES, DEFAULT_PROFILE, PROFILES, resolve_profile
from lumos.core.changes.renames import with_renames
from lumos.core.changes.rules import RULES, RULES_BY_ID, Rule
from lumos.core.changes.rules.rule import Verdict, worse
from lumos.core.changes.text import quoted, shown_value
from lumos.core.models import Change, ChangeLevel, LineageEdge, LumosDataset, Urn
from lumos.core.models.base import canonical_json

_RANK_OF_RULE = {rule.id: rank for rank, rule in enumerate(RULES)}
_STILL_FITS = "; old values fit, readers of the old type may not cope"


def diff_datasets(
    old: LumosDataset | None,
    new: LumosDataset | None,
    *,
    profile: str = DEFAULT_PROFILE,
    at: datetime | None = None,
    observed: bool = True,
) -> tuple[Change, ...]:
    """Return what changed, most severe first, in an order that depends on nothing else.

    Nothing is returned when both contracts are the same; observations are never compared. Of a
    transitive profile, this is one step: `diff_against_history` takes them all. With a time, what
    goes away after its sunset breaks nobody. Where the new state was not `observed`, a dataset
    that is not there is not taken to be gone.

    Raises:
        UnknownNameError: there is no such profile.
    """
    resolve_profile(profile)  # also where nothing is compared
    subject = new or old
    if subject is None:
        return ()
    findings = _findings(old, new, observed=observed)
    return judged_findings(findings, subject.urn, profile=profile, at=at)


def diff_edges(
    old: LineageEdge | None, new: LineageEdge | None, *, profile: str = DEFAULT_PROFILE
) -> tuple[Change, ...]:
    """Return what changed within one step of lineage, as changes of its downstream dataset.

    That a step came or went is reported for inferred ones only: others are part of the contract.
    """
    edge = new or old
    if edge is None:
        return ()
    if old is not None and new is not None:
        findings = edge_findings(old, new)
    else:
        findings = inferred_edge_findings(edge, is_new=new is not None)
    return judged_findings(findings, edge.downstream_urn, profile=profile)


def diff_observations(
    old: LumosDataset, new: LumosDataset, *, profile: str = DEFAULT_PROFILE
) -> tuple[Change, ...]:
    """Return which observed facts differ; none of them is a reason for another version."""
    return judged_findings(observation_findings(old, new), new.urn, profile=profile)


def judged_findings(
    findings: Iterable[Finding], dataset: Urn, *, profile: str, at: datetime | None = None
) -> tuple[Change, ...]:
    """Return findings as changes, judged under a profile, most severe first."""
    name = resolve_profile(profile).name
    changes = [_change(_in_time(finding, at), dataset, profile=name) for finding in findings]
    return tuple(sorted(changes, key=severity_order))


def _in_time(finding: Finding, at: datetime | None) -> Finding:
    if at is None or finding.sunset is None or at.date() <= finding.sunset:
        return finding
    return finding._replace(rule=f"{finding.rule}.after_sunset")


def severity_order(change: Change) -> tuple[int, int, int, str, bytes]:
    """Sort the most severe first, and equals by rule, path and values."""
    return (
        -change.level.rank,
        -change.bump.rank,
        _RANK_OF_RULE.get(change.rule, len(RULES)),
        change.path,
        canonical_json([change.old, change.new]),
    )


def _findings(
    old: LumosDataset | None, new: LumosDataset | None, *, observed: bool
) -> Iterator[Finding]:
    if old is new:
        return
    if old is None:
        yield Finding("dataset.added")
    elif new is None:
        yield _gone(old) if observed else Finding("dataset.unobserved")
    else:
        findings = [finding for detect in DETECTORS for finding in detect(old, new)]
        yield from with_renames(findings, old, new)


def _gone(dataset: LumosDataset) -> Finding:
    deprecation = dataset.governance.deprecation
    return Finding("dataset.removed", sunset=deprecation.sunset if deprecation else None)


def _change(finding: Finding, dataset: Urn, *, profile: str) -> Change:
    rule = RULES_BY_ID[finding.rule]
    message = rule.message.format(
        at=f"field {quoted(finding.path)}" if finding.path else "the dataset",
        subject=finding.subject,
        old=shown_value(finding.old),
        new=shown_value(finding.new),
    )
    if finding.possible_rename_of is not None:
        way = "to" if finding.new is None else "from"
        message += f"; perhaps it was renamed {way} {quoted(finding.possible_rename_of)}"
    verdict = _verdict(finding, rule, profile)
    breaking = verdict.level is ChangeLevel.BREAKING
    passes_under = _passes_under(finding, rule) if breaking else ()
    return Change(
        dataset=dataset,
        path=finding.path,
        rule=rule.id,
        level=verdict.level,
        scope=rule.scope,
        bump=rule.bump_at(verdict.level),
        old=finding.old,
        new=finding.new,
        caution=verdict.caution,
        widening=rule.widening,
        direction=rule.direction,
        possible_rename_of=finding.possible_rename_of,
        rename_confidence=finding.rename_confidence,
        passes_under=passes_under,
        message=message + (_widening_text(passes_under) if rule.widening else ""),
        payload=finding.payload,
    )


def _widening_text(passes_under: tuple[str, ...]) -> str:
    named = [name for name in passes_under if BASES.get(name) not in passes_under]
    return _STILL_FITS + (f" (not breaking under {', '.join(named)})" if named else "")


def _verdict(finding: Finding, rule: Rule, profile: str) -> Verdict:
    """Return what the rule says, unless the finding itself knows better in this profile."""
    if profile == "full":
        return worse(_verdict(finding, rule, "readers"), _verdict(finding, rule, "writers"))
    if profile in finding.breaks_in:
        return Verdict(ChangeLevel.BREAKING)
    verdict = rule.verdict_in(profile)
    if profile in finding.passes_in and verdict.level is ChangeLevel.BREAKING:
        return Verdict(ChangeLevel.NON_BREAKING)
    return verdict


def _passes_under(finding: Finding, rule: Rule) -> tuple[str, ...]:
    return tuple(
        name for name in PROFILES if _verdict(finding, rule, name).level is not ChangeLevel.BREAKING
    )
