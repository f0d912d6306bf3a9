"""A state that one command fills, lets a sync send, and removes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lumos.core.platform.factory import PlatformFactory
from lumos.core.store.catalog.catalog_tables import CatalogTables
from lumos.core.store.database import StateDatabase
from lumos.core.store.state_folder import DATABASE_FILE
from lumos.core.store.sync_states import SyncStates
from lumos.feature.snapshot.scratch import scratch_folder

if TYPE_CHECKING:
    from lumos.core.models import LineageEdge, LumosDataset
    from lumos.core.run_report import Clock

_TARGET = "target"


class ScratchState:
    """A state in a private temporary folder, with what its one target acknowledged of it."""

    def __init__(self, database: StateDatabase, *, lease: StateDatabase, clock: Clock) -> None:
        self.database = database
        self.catalog = PlatformFactory.embedded_over(database)
        self.sent = SyncStates(database, _TARGET, lease=lease)
        self._tables = CatalogTables(database)
        self._clock = clock

    def put_datasets(self, datasets: Iterable[LumosDataset]) -> None:
        """Store datasets that are not there yet, all or none."""
        self._tables.put_bare(datasets, at=self._clock())

    def put_edges(self, edges: Iterable[LineageEdge]) -> None:
        """Store edges, all or none; datasets are not looked at."""
        self._tables.put_edges(edges, at=self._clock(), renew=False)

    def put_identities(self, urn: str, ids: Mapping[str, str]) -> None:
        """Store what other catalogs call a dataset."""
        for catalog, external_id in ids.items():
            self._tables.identities.put(urn, catalog, external_id=external_id)


@contextmanager
def scratch_state(clock: Clock, *, lease: StateDatabase) -> Iterator[ScratchState]:
    """Yield an empty state; what a killed process left behind is removed by the next one."""
    with scratch_folder() as folder, StateDatabase.open(folder / DATABASE_FILE) as database:
        yield ScratchState(database, lease=lease, clock=clock)
