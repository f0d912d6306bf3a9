"""A snapshot compared with what the catalog has that it is imported into."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from lumos.core.errors import DamagedDocumentError
from lumos.core.platform.abilities import LineageAbility
from lumos.core.platform.batches import dataset_or_none
from lumos.feature.importing.buckets import (
    CatalogPlans,
    EdgeChanges,
    ImportBucket,
    Plans,
    edge_changes,
    import_buckets,
)
from lumos.feature.importing.look_ups import LookUps
from lumos.feature.importing.plan import ImportMode

if TYPE_CHECKING:
    from lumos.core.models import LineageEdge, LumosDataset
    from lumos.core.platform.interface import MetadataPlatformInterface
    from lumos.feature.importing.marks import ImportMarks
    from lumos.feature.snapshot.source import SnapshotSource


def bulk_look_ups(
    catalog: MetadataPlatformInterface,
    mode: ImportMode,
    *,
    source: SnapshotSource,
    workers: int | None = None,
    marks: ImportMarks | None = None,
) -> LookUps:
    """Return what asks another catalog in bulk."""
    exact = _is_exact(source, mode)
    workers = min(workers or catalog.CONCURRENCY, catalog.CONCURRENCY)
    return LookUps(catalog, mode, exact=exact, workers=workers, marks=marks)


def compared_buckets(
    source: SnapshotSource,
    catalog: MetadataPlatformInterface | None,
    *,
    mode: ImportMode,
    own_versions: bool,
    look_ups: LookUps | None = None,
) -> Generator[ImportBucket]:
    """Yield a snapshot by buckets, compared with what a catalog has."""
    exact = _is_exact(source, mode)
    with ExitStack() as stack:
        lineage = LineageAbility.find(catalog) if catalog else None
        if catalog is None or lineage:
            known: Iterable[LineageEdge] = lineage.list_edges() if lineage else ()
            compared = edge_changes(source, known, mode=mode, exact=exact)
            edges = stack.enter_context(compared)
        else:
            edges = EdgeChanges((), buckets=source.bucket_count(), mode=mode, exact=exact)
        plans: Plans | None = look_ups
        if plans is None:
            find = partial(_find_whole, catalog)
            plans = CatalogPlans(find, mode, exact=exact, own_versions=own_versions)
        yield from import_buckets(source, plans, edges=edges)


def _is_exact(source: SnapshotSource, mode: ImportMode) -> bool:
    # What a snapshot of a part of the world lacks may well be there.
    return mode is ImportMode.OVERWRITE and source.header.complete


def _find_whole(catalog: MetadataPlatformInterface | None, urn: str) -> LumosDataset | None:
    """Return what a catalog has; a dataset whose stored document is damaged is to be replaced."""
    try:
        return dataset_or_none(catalog, urn) if catalog else None
    except DamagedDocumentError:
        return None
