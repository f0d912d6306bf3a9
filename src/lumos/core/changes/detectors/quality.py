"""Differences in the checks that are promised of a dataset."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from lumos.core.changes.detectors.documentation import text_findings
from lumos.core.changes.detectors.promises import threshold_verb
from lumos.core.changes.detectors.sets import only_in_one, same_json
from lumos.core.changes.finding import Finding
from lumos.core.changes.text import member_path, quoted
from lumos.core.models import DQAssertion, LumosDataset, Severity
from lumos.core.models.base import canonical_json

if TYPE_CHECKING:
    from pydantic import JsonValue

_BESIDE_THE_CHECK = frozenset({"severity", "description"})


def quality_findings(old: LumosDataset, new: LumosDataset) -> Iterator[Finding]:
    """Yield checks that came, went or changed; a check is known by its name and column."""
    lost, won = only_in_one(_keyed(old.assertions), _keyed(new.assertions))
    before, after = _by_identity(lost), _by_identity(won)
    for identity in sorted(before.keys() | after.keys()):
        for one, other in zip_longest(before[identity], after[identity]):
            yield from _check_findings(one, other)


def _keyed(checks: Sequence[DQAssertion]) -> list[tuple[bytes, DQAssertion]]:
    return [(canonical_json(check.to_json()), check) for check in checks]


def _by_identity(checks: Sequence[DQAssertion]) -> defaultdict[tuple[str, str], list[DQAssertion]]:
    grouped: defaultdict[tuple[str, str], list[DQAssertion]] = defaultdict(list)
    for check in checks:
        grouped[check.name, check.column or ""].append(check)
    return grouped


def _check_findings(old: DQAssertion | None, new: DQAssertion | None) -> Iterator[Finding]:
    if old is None and new is not None:
        yield Finding("assertion.added", _path(new), new=new.to_json(), subject=quoted(new.name))
    elif new is None and old is not None:
        yield Finding("assertion.removed", _path(old), old=old.to_json(), subject=quoted(old.name))
    elif old is not None and new is not None:
        yield from _changed_check_findings(old, new)


def _path(check: DQAssertion) -> str:
    return member_path("", check.column) if check.column else ""


def _changed_check_findings(old: DQAssertion, new: DQAssertion) -> Iterator[Finding]:
    """Yield what changed of one check; the first finding carries it whole, before and after."""
    payload: JsonValue = {"part": "assertions", "old": old.to_json(), "new": new.to_json()}
    for finding in _parts_of_changed_check(old, new):
        yield finding._replace(payload=payload)
        payload = None


def _parts_of_changed_check(old: DQAssertion, new: DQAssertion) -> Iterator[Finding]:
    path, subject = _path(old), quoted(old.name)
    before, after = old.to_json(), new.to_json()
    for document in (before, after):
        for part in _BESIDE_THE_CHECK:
            document.pop(part, None)
    if not same_json(before, after):
        rule = f"assertion.{threshold_verb(old, new)}"
        yield Finding(rule, path, old=before, new=after, subject=subject)
    if old.severity is not new.severity:
        raised = new.severity is Severity.ERROR
        yield Finding(
            "assertion.severity.raised" if raised else "assertion.severity.lowered",
            path,
            old={"name": old.name, "severity": old.severity.value},
            new={"name": new.name, "severity": new.severity.value},
            subject=subject,
        )
    yield from text_findings(
        old.description,
        new.description,
        path=path,
        subject=f"the description of the check {subject}",
        key=old.name,
    )
