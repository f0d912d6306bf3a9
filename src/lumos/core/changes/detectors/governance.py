"""Differences in tags, glossary terms, domains, promises and deprecation."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from math import inf
from typing import TYPE_CHECKING

from lumos.core.changes.detectors.sets import name_findings
from lumos.core.changes.finding import Finding
from lumos.core.models import Access, Governance, Stability

if TYPE_CHECKING:
    from lumos.core.models import Deprecation, LumosDataset

_STABILITIES: tuple[Stability | None, ...] = (None, *Stability)
# What says nothing is open to all who can find it; to call it public says so on purpose.
_ACCESSES: tuple[Access | None, ...] = (Access.PRIVATE, Access.PROTECTED, None, Access.PUBLIC)


def governance_findings(old: LumosDataset, new: LumosDataset) -> Iterator[Finding]:
    """Yield changes of how a dataset is classified and whether it is on its way out."""
    before, after = old.governance, new.governance
    yield from name_findings(old.tags, new.tags, rule="tag")
    yield from name_findings(before.glossary_terms, after.glossary_terms, rule="glossary")
    yield from name_findings(before.domains, after.domains, rule="domain")
    yield from deprecation_findings(before.deprecation, after.deprecation, of="dataset")
    yield from _promise_findings(before, after)


def _promise_findings(old: Governance, new: Governance) -> Iterator[Finding]:
    if old.stability is not new.stability:
        raised = _STABILITIES.index(new.stability) > _STABILITIES.index(old.stability)
        rule = "dataset.stability.raised" if raised else "dataset.stability.lowered"
        yield Finding(rule, old=old.stability, new=new.stability)
    if old.access is not new.access:
        wider = _ACCESSES.index(new.access) > _ACCESSES.index(old.access)
        rule = "access.loosened" if wider else "access.tightened"
        yield Finding(rule, old=old.access, new=new.access)
    if old.retention_days != new.retention_days:
        longer = _days(new) > _days(old)
        rule = "dataset.retention.extended" if longer else "dataset.retention.shortened"
        yield Finding(rule, old=old.retention_days, new=new.retention_days)


def _days(governance: Governance) -> float:
    return inf if governance.retention_days is None else governance.retention_days


def deprecation_findings(
    old: Deprecation | None, new: Deprecation | None, *, of: str, path: str = ""
) -> Iterator[Finding]:
    """Yield whether a dataset or a field is on its way out, and how soon."""
    if old == new:
        return
    if old is None or new is None:
        yield Finding(
            f"{of}.deprecated" if old is None else f"{of}.undeprecated",
            path,
            old=old.to_json() if old else None,
            new=new.to_json() if new else None,
        )
        return
    if old.sunset != new.sunset:
        # Without a date a dataset stays for ever, which is later than any date.
        earlier = (new.sunset or date.max) < (old.sunset or date.max)
        yield Finding(
            f"{of}.sunset.earlier" if earlier else f"{of}.sunset.later",
            path,
            old=old.sunset.isoformat() if old.sunset else None,
            new=new.sunset.isoformat() if new.sunset else None,
        )
    before, after = old.to_json(), new.to_json()
    for part in ("note", "since", "replacement"):
        was, is_now = before.get(part), after.get(part)
        if was != is_now:
            yield Finding(
                f"{of}.deprecation.edited",
                path,
                old={part: was},
                new={part: is_now},
                subject=part,
            )
