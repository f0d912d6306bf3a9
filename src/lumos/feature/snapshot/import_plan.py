"""What an import would do, before anything is done."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import cast

from pydantic import JsonValue

from lumos.core.models import (
    DatasetLineage,
    LineageEdge,
    LumosDataset,
    Snapshot,
    Urn,
    with_parts,
)
from lumos.core.models.base import CanonicalModel

_UNITED = frozenset({"tags"})
_MERGED_INSIDE = frozenset(
    {"ownership", "governance", "documentation", "properties", "extensions", "lineage"}
)


class ImportMode(StrEnum):
    """What happens to a dataset that the catalog already has."""

    OVERWRITE = "overwrite"
    SKIP_EXISTING = "skip-existing"
    MERGE = "merge"


class ImportPlan(CanonicalModel):
    """The datasets and edges to write, and those to leave alone."""

    mode: ImportMode
    created: tuple[LumosDataset, ...] = ()
    updated: tuple[LumosDataset, ...] = ()
    unchanged: tuple[Urn, ...] = ()
    skipped: tuple[Urn, ...] = ()
    created_edges: tuple[LineageEdge, ...] = ()
    updated_edges: tuple[LineageEdge, ...] = ()
    unchanged_edges: int = 0
    skipped_edges: int = 0

    @property
    def datasets_to_write(self) -> tuple[LumosDataset, ...]:
        return (*self.created, *self.updated)

    @property
    def edges_to_write(self) -> tuple[LineageEdge, ...]:
        return (*self.created_edges, *self.updated_edges)

    def as_json(self) -> dict[str, JsonValue]:
        """Return the object that `lumos import --dry-run --json` prints."""
        return {
            "mode": self.mode.value,
            "created": [dataset.urn for dataset in self.created],
            "updated": [dataset.urn for dataset in self.updated],
            "unchanged": [*self.unchanged],
            "skipped": [*self.skipped],
            "summary": {
                "datasets": {
                    "created": len(self.created),
                    "updated": len(self.updated),
                    "unchanged": len(self.unchanged),
                    "skipped": len(self.skipped),
                },
                "lineage_edges": {
                    "created": len(self.created_edges),
                    "updated": len(self.updated_edges),
                    "unchanged": self.unchanged_edges,
                    "skipped": self.skipped_edges,
                },
            },
        }


def plan_import(
    snapshot: Snapshot,
    existing: Mapping[Urn, LumosDataset],
    *,
    mode: ImportMode = ImportMode.OVERWRITE,
    existing_edges: Collection[LineageEdge] = (),
) -> ImportPlan:
    """Say what an import of the snapshot would create, update and leave alone.

    Nothing that the snapshot lacks is ever removed. `overwrite` gives an existing dataset the
    snapshot's state, `merge` adds what the snapshot knows to it, `skip-existing` leaves it.
    """
    created: list[LumosDataset] = []
    updated: list[LumosDataset] = []
    unchanged: list[Urn] = []
    skipped: list[Urn] = []
    for dataset in snapshot.datasets:
        present = existing.get(dataset.urn)
        if present is None:
            created.append(dataset)
        elif mode is ImportMode.SKIP_EXISTING:
            skipped.append(dataset.urn)
        else:
            wanted = merged(present, dataset) if mode is ImportMode.MERGE else dataset
            wanted = _kept_here(present, wanted)
            if wanted == present:
                unchanged.append(dataset.urn)
            else:
                updated.append(wanted)
    edges = _plan_edges(snapshot.lineage_edges, existing_edges, mode=mode)
    return edges.model_copy(
        update={
            "created": tuple(created),
            "updated": tuple(updated),
            "unchanged": tuple(unchanged),
            "skipped": tuple(skipped),
        }
    )


def _kept_here(present: LumosDataset, wanted: LumosDataset) -> LumosDataset:
    """Keep what an import never changes: the version counted here, and edges that are known."""
    lineage = DatasetLineage(
        upstream=(*present.lineage.upstream, *wanted.lineage.upstream),
        downstream=(*present.lineage.downstream, *wanted.lineage.downstream),
    )
    return with_parts(wanted, version=present.version, lineage=lineage)


def _plan_edges(
    edges: tuple[LineageEdge, ...], existing: Collection[LineageEdge], *, mode: ImportMode
) -> ImportPlan:
    present = {edge.key: edge for edge in existing}
    known = [edge for edge in edges if edge.key in present]
    differing = tuple(edge for edge in known if edge != present[edge.key])
    skip = mode is ImportMode.SKIP_EXISTING
    return ImportPlan(
        mode=mode,
        created_edges=tuple(edge for edge in edges if edge.key not in present),
        updated_edges=() if skip else differing,
        unchanged_edges=0 if skip else len(known) - len(differing),
        skipped_edges=len(known) if skip else 0,
    )


def merged(present: LumosDataset, incoming: LumosDataset) -> LumosDataset:
    """Add what the incoming state knows to the present one; where both know, the incoming wins.

    Tags, owners, domains, terms and properties of both are kept.
    """
    base, extra = present.to_json(), incoming.to_json()
    combined = {**base, **extra}
    for name in _MERGED_INSIDE:
        if name in base and name in extra:
            combined[name] = _merged_inside(base[name], extra[name])
    for name in _UNITED:
        if name in base and name in extra:
            combined[name] = _united(base[name], extra[name])
    schema = cast("dict[str, JsonValue]", extra.get("schema") or {})
    if not schema.get("fields") and "schema" in base:
        combined["schema"] = base["schema"]
    return LumosDataset.from_json(combined)


def _merged_inside(base: JsonValue, extra: JsonValue) -> JsonValue:
    if isinstance(base, dict) and isinstance(extra, dict):
        both = base.keys() & extra.keys()
        return {**base, **extra, **{name: _merged_inside(base[name], extra[name]) for name in both}}
    if isinstance(base, list) and isinstance(extra, list):
        return _united(base, extra)
    return extra


def _united(base: JsonValue, extra: JsonValue) -> JsonValue:
    if not isinstance(base, list) or not isinstance(extra, list):
        return extra
    return [*base, *(item for item in extra if item not in base)]
