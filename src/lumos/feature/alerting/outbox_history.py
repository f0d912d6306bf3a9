"""A history that puts alerts into the outbox together with the version they tell of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from lumos.core.store.alerts import AlertRepository
from lumos.core.store.history import HistoryRepository
from lumos.feature.alerting.planning import AlertPlanner, RecordedVersion

if TYPE_CHECKING:
    from lumos.core.models import Change, DatasetVersion, LumosDataset
    from lumos.core.store.database import StateDatabase


class AlertingHistory(HistoryRepository):
    """Keeps a version and its alerts in one transaction: both are there, or neither."""

    def __init__(self, database: StateDatabase, planner: AlertPlanner) -> None:
        super().__init__(database)
        self._outbox = AlertRepository(database)
        self._planner = planner
        self._state = database

    @override
    def append(
        self,
        urn: str,
        version: DatasetVersion,
        *,
        dataset: LumosDataset,
        changes: Sequence[Change],
    ) -> None:
        with self._state.transaction():
            super().append(urn, version, dataset=dataset, changes=changes)
            self._outbox.add(self._planner.alerts_of(RecordedVersion(version, dataset, changes)))
