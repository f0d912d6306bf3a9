"""Differences in what is observed: never a reason for another version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lumos.core.changes.finding import Finding
from lumos.core.changes.text import quoted

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models import DatasetQuality, LumosDataset

_DIGITS = 6
_BREACHED = frozenset({"BREACHED", "FAILED", "FAILING", "MISSED", "VIOLATED"})


def observation_findings(old: LumosDataset, new: LumosDataset) -> Iterator[Finding]:
    """Yield what was seen on both sides and differs; what one side has not seen is no change."""
    yield from _quality_findings(old.quality, new.quality)
    for rule, before, after in (
        ("obs.stats.rows", _rows(old), _rows(new)),
        ("obs.stats.size", _size(old), _size(new)),
        ("obs.cost", _cost(old), _cost(new)),
    ):
        if before is not None and after is not None and before != after:
            yield Finding(rule, old=before, new=after)
    for rule, figures in (("obs.stats.null_rate", _null_rates), ("obs.stats.cardinality", _counts)):
        was, is_now = figures(old), figures(new)
        for path in sorted(was.keys() & is_now.keys()):
            if was[path] != is_now[path]:
                yield Finding(rule, path, old=was[path], new=is_now[path])


def _quality_findings(old: DatasetQuality | None, new: DatasetQuality | None) -> Iterator[Finding]:
    if old is None or new is None:
        return
    was, is_now = ({each.name: each.status for each in side.checks} for side in (old, new))
    for name in sorted(was.keys() & is_now.keys()):
        if was[name] is not is_now[name]:
            yield Finding(
                "obs.assertion.status",
                old={name: was[name].value},
                new={name: is_now[name].value},
                subject=f"{quoted(name)} went from {was[name].value} to {is_now[name].value}",
            )
    if old.sla and new.sla and _is_breached(old) != _is_breached(new):
        rule = "obs.sla.breached" if _is_breached(new) else "obs.sla.recovered"
        yield Finding(rule, old=old.sla.to_json(), new=new.sla.to_json())
    if old.score is not None and new.score is not None and old.score != new.score:
        yield Finding("obs.quality.score", old=old.score, new=new.score)


def _is_breached(quality: DatasetQuality) -> bool:
    sla = quality.sla
    if sla is None:
        return False
    if sla.current is not None:
        return sla.current < sla.target
    return (sla.status or "").strip().upper() in _BREACHED


def _rows(dataset: LumosDataset) -> JsonValue:
    facts = dataset.statistics
    if facts is None:
        return None
    return facts.row_count if facts.row_count is not None else facts.row_count_estimate


def _size(dataset: LumosDataset) -> JsonValue:
    return dataset.statistics.total_size_bytes if dataset.statistics else None


def _cost(dataset: LumosDataset) -> JsonValue:
    cost = dataset.cost
    return f"{cost.amount} {cost.currency} ({cost.kind})" if cost else None


def _null_rates(dataset: LumosDataset) -> Mapping[str, JsonValue]:
    """Return the share of nulls by column, from the data itself where it was looked at."""
    columns = dataset.statistics.columns if dataset.statistics else ()
    rates: dict[str, JsonValue] = {
        column.path: round(column.null_count / column.value_count, _DIGITS)
        for column in columns
        if column.null_count is not None and column.value_count
    }
    profiled = dataset.profile.columns if dataset.profile else ()
    return rates | {
        column.path: round(column.null_share, _DIGITS)
        for column in profiled
        if column.null_share is not None
    }


def _counts(dataset: LumosDataset) -> Mapping[str, JsonValue]:
    profiled = dataset.profile.columns if dataset.profile else ()
    return {
        column.path: column.distinct_count
        for column in profiled
        if column.distinct_count is not None
    }
