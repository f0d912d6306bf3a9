"""A snapshot compared with what the catalog has that it is imported into."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from lumos.core.controllers.import_batches import LookUps, takes_batches
from lumos.core.platform.interface import Capability, MetadataPlatformInterface
from lumos.feature.snapshot.import_buckets import (
    CatalogPlans,
    EdgeChanges,
    ImportBucket,
    Plans,
    edge_changes,
    import_buckets,
    prepared_plans,
)
from lumos.feature.snapshot.import_plan import ImportMode

if TYPE_CHECKING:
    from lumos.core.models import LineageEdge, LumosDataset
    from lumos.feature.snapshot.bucket_work import BucketEngine
    from lumos.feature.snapshot.source import SnapshotSource


def bulk_look_ups(
    catalog: MetadataPlatformInterface | None,
    mode: ImportMode,
    *,
    engine: BucketEngine,
    workers: int | None = None,
) -> LookUps | None:
    """Return what asks a catalog in bulk, where that pays and nobody compares with all of it."""
    if catalog is None or engine.reads_parts_only or not takes_batches(catalog):
        return None
    return LookUps(catalog, mode, workers=workers or catalog.CONCURRENCY)


def compared_buckets(
    source: SnapshotSource,
    catalog: MetadataPlatformInterface | None,
    *,
    mode: ImportMode,
    engine: BucketEngine,
    look_ups: LookUps | None,
) -> Generator[ImportBucket]:
    """Yield a snapshot by buckets, compared with what a catalog has."""
    # What a snapshot of a part of the world lacks may well be there.
    exact = mode is ImportMode.OVERWRITE and source.header.complete
    with ExitStack() as stack:
        if catalog is None or Capability.LINEAGE in catalog.capabilities:
            known: Iterable[LineageEdge] = catalog.list_edges() if catalog else ()
            compared = edge_changes(source, known, mode=mode, exact=exact)
            edges = stack.enter_context(compared)
        else:
            edges = EdgeChanges((), buckets=source.bucket_count(), mode=mode, exact=exact)
        if engine.reads_parts_only:
            present: Iterable[LumosDataset] = catalog.list() if catalog else ()
            plans: Plans = stack.enter_context(
                prepared_plans(source, present, mode=mode, exact=exact, engine=engine)
            )
        else:
            find = catalog.find_dataset if catalog else _find_nothing
            find = look_ups.find if look_ups else find
            plans = CatalogPlans(find, mode, exact=exact)
        yield from import_buckets(source, plans, edges=edges)


def _find_nothing(_urn: str) -> None:
    return None
