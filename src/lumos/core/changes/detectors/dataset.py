"""Differences in what and where a dataset is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lumos.core.changes.finding import Finding
from lumos.core.models import DatasetKind, Location, LumosDataset

if TYPE_CHECKING:
    from pydantic import JsonValue

_ATTRIBUTES = (
    ("urn", "dataset.renamed"),
    ("name", "dataset.name.changed"),
    ("platform", "dataset.platform.changed"),
    ("kind", "dataset.kind.changed"),
    ("environment", "dataset.environment.changed"),
    ("format", "dataset.format.changed"),
)


def dataset_findings(old: LumosDataset, new: LumosDataset) -> Iterator[Finding]:
    """Yield changes of identity, kind, format, place and partitioning."""
    for attribute, rule in _ATTRIBUTES:
        before, after = getattr(old, attribute), getattr(new, attribute)
        if before != after:
            yield Finding(
                rule,
                old=_text(before),
                new=_text(after),
                breaks_in=_breaks_in(old) if rule == "dataset.format.changed" else (),
            )
    yield from _place_findings(old, new)
    yield from _partition_findings(old.location or Location(), new.location or Location())


def _text(value: str | None) -> str | None:
    return None if value is None else str(value)


def _place_findings(old: LumosDataset, new: LumosDataset) -> Iterator[Finding]:
    before, after = _place(old), _place(new)
    moved = [name for name in before if before[name] != after[name]]
    if moved:
        yield Finding(
            "dataset.location.changed",
            old={name: before[name] for name in moved},
            new={name: after[name] for name in moved},
            subject=", ".join(moved),
            breaks_in=_breaks_in(old),
        )


def _breaks_in(dataset: LumosDataset) -> tuple[str, ...]:
    """Readers of plain files address them by path and format."""
    return ("readers",) if dataset.kind is DatasetKind.FILES else ()


def _place(dataset: LumosDataset) -> dict[str, JsonValue]:
    location = dataset.location or Location()
    return {
        "database": dataset.database,
        "namespace": dataset.namespace,
        "bucket": location.bucket,
        "path": location.path,
        "prefix": location.prefix,
    }


def _partition_findings(old: Location, new: Location) -> Iterator[Finding]:
    if old.partitioning != new.partitioning:
        yield Finding("dataset.partition_spec.changed", old=old.partitioning, new=new.partitioning)
    if old.partition_keys != new.partition_keys:
        yield Finding(
            "dataset.partition_key.changed",
            old=list(old.partition_keys),
            new=list(new.partition_keys),
        )
    if old.sort_keys != new.sort_keys:
        yield Finding(
            "dataset.sort_or_cluster.changed", old=list(old.sort_keys), new=list(new.sort_keys)
        )
