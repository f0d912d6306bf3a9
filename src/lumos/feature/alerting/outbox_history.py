"""A history that puts alerts into the outbox together with the version they are about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from lumos.core.store.alerts import AlertRepository
from lumos.core.store.history import HistoryRepository
from lumos.feature.alerting.planning import AlertPlanner, RecordedVersion

if TYPE_CHECKING:
    from datetime import datetime

    from lumos.core.models import Change, DatasetVersion, LumosDataset
    from lumos.core.store.database import StateDatabase
    from lumos.core.store.history import NewEntry


class AlertingHistory(HistoryRepository):
    """Stores a version and its alerts in one transaction, and returns whether they were sent."""

    def __init__(self, database: StateDatabase, planner: AlertPlanner | None) -> None:
        """Take the planner that decides who gets alerts; without it nobody does."""
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
            self._add_alerts(RecordedVersion(version, dataset, changes))

    @override
    def append_many(self, entries: Iterable[NewEntry]) -> None:
        with self._state.transaction():
            super().append_many(self._with_alerts(entries))

    @override
    def versions(
        self, urn: str, *, since: datetime | None = None, limit: int | None = None
    ) -> tuple[DatasetVersion, ...]:
        known = super().versions(urn, since=since, limit=limit)
        states = self._outbox.states(urn)
        return tuple(
            version.model_copy(update={"breaking_change_alert": states[version.version]})
            if version.version in states
            else version
            for version in known
        )

    def _with_alerts(self, entries: Iterable[NewEntry]) -> Iterator[NewEntry]:
        for entry in entries:
            self._add_alerts(RecordedVersion(entry.version, entry.dataset, entry.changes))
            yield entry

    def _add_alerts(self, recorded: RecordedVersion) -> None:
        if self._planner and (alerts := self._planner.alerts_of(recorded)):
            self._outbox.add(alerts)
