"""Differences in tags, glossary terms, domains and deprecation of a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING

from lumos.core.changes.detectors.sets import name_findings
from lumos.core.changes.finding import Finding

if TYPE_CHECKING:
    from lumos.core.models import Deprecation, LumosDataset


def governance_findings(old: LumosDataset, new: LumosDataset) -> Iterator[Finding]:
    """Yield changes of how a dataset is classified and whether it is on its way out."""
    before, after = old.governance, new.governance
    yield from name_findings(old.tags, new.tags, rule="tag")
    yield from name_findings(before.glossary_terms, after.glossary_terms, rule="glossary")
    yield from name_findings(before.domains, after.domains, rule="domain")
    if before.deprecation is None and after.deprecation is not None:
        yield Finding("dataset.deprecated", new=after.deprecation.to_json())
    elif before.deprecation is not None and after.deprecation is None:
        yield Finding("dataset.undeprecated", old=before.deprecation.to_json())
    elif before.deprecation is not None and after.deprecation is not None:
        yield from _deprecation_findings(before.deprecation, after.deprecation)


def _deprecation_findings(old: Deprecation, new: Deprecation) -> Iterator[Finding]:
    if old.sunset != new.sunset:
        # Without a date a dataset stays for ever, which is later than any date.
        earlier = (new.sunset or date.max) < (old.sunset or date.max)
        yield Finding(
            "dataset.sunset.earlier" if earlier else "dataset.sunset.later",
            old=old.sunset.isoformat() if old.sunset else None,
            new=new.sunset.isoformat() if new.sunset else None,
        )
    spelled_before, spelled_after = old.to_json(), new.to_json()
    for part in ("note", "since", "replacement"):
        before, after = spelled_before.get(part), spelled_after.get(part)
        if before != after:
            yield Finding(
                "dataset.deprecation.edited", old={part: before}, new={part: after}, subject=part
            )
