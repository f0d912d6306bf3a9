"""Differences in what a dataset is made from, down to its columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lumos.core.changes.detectors.sets import name_findings
from lumos.core.changes.finding import Finding
from lumos.core.changes.text import quoted, shown_value
from lumos.core.models.lineage import EdgeBasis

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models import ColumnMapping, LineageEdge, LumosDataset

_Mappings = defaultdict[str, list["ColumnMapping"]]


def lineage_findings(old: LumosDataset, new: LumosDataset) -> Iterator[Finding]:
    """Yield upstream datasets that came or went; a new consumer does not change its source."""
    yield from name_findings(_stated_upstream(old), _stated_upstream(new), rule="lineage.edge")


def _stated_upstream(dataset: LumosDataset) -> list[str]:
    lineage = dataset.lineage
    return [str(urn) for urn in lineage.upstream if urn not in lineage.inferred]


def inferred_edge_findings(edge: LineageEdge, *, is_new: bool) -> Iterator[Finding]:
    """Yield an inferred edge that came or went; others are seen in the contract of the dataset."""
    if edge.basis is not EdgeBasis.INFERRED:
        return
    step: dict[str, JsonValue] = {"upstream_urn": str(edge.upstream_urn)}
    if edge.job_urn is not None:
        step["job_urn"] = str(edge.job_urn)
    subject = quoted(edge.upstream_urn)
    if is_new:
        yield Finding("lineage.inferred.added", new=step, subject=subject)
    else:
        yield Finding("lineage.inferred.removed", old=step, subject=subject)


def edge_findings(old: LineageEdge, new: LineageEdge) -> Iterator[Finding]:
    """Yield columns that are made from others or otherwise, within one step of lineage.

    The values name the step, since a column may be made from several datasets.
    """
    step: dict[str, JsonValue] = {"upstream_urn": str(new.upstream_urn)}
    if new.job_urn is not None:
        step["job_urn"] = str(new.job_urn)
    upstream = quoted(new.upstream_urn)
    if old.lineage_type is not new.lineage_type:
        yield Finding(
            "transform.logic.changed",
            old={**step, "lineage_type": old.lineage_type.value},
            new={**step, "lineage_type": new.lineage_type.value},
            subject=upstream,
        )
    before, after = _by_column(old), _by_column(new)
    for column in sorted(before.keys() | after.keys()):
        was, is_now = before[column], after[column]
        sources, others = _sources(was), _sources(is_now)
        if sources != others:
            yield Finding(
                "lineage.column.changed",
                column,
                old={**step, "columns": sources},
                new={**step, "columns": others},
                subject=f"{_shown(others)} instead of {_shown(sources)} of {upstream}",
            )
        elif was != is_now:
            yield Finding(
                "transform.logic.changed",
                column,
                old={**step, "column_mappings": _json(was)},
                new={**step, "column_mappings": _json(is_now)},
                subject=upstream,
            )


def _shown(columns: list[JsonValue]) -> str:
    return shown_value(columns) if columns else "nothing"


def _by_column(edge: LineageEdge) -> _Mappings:
    grouped: _Mappings = defaultdict(list)
    for mapping in edge.column_mappings:
        grouped[mapping.downstream_column].append(mapping)
    return grouped


def _sources(mappings: list[ColumnMapping]) -> list[JsonValue]:
    return [*sorted({mapping.upstream_column for mapping in mappings})]


def _json(mappings: list[ColumnMapping]) -> list[JsonValue]:
    return [mapping.to_json() for mapping in mappings]
