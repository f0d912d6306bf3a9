"""Where an import writes to: the state, or a catalog other than that of the settings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from typing_extensions import override

from lumos.core.platform.batches import batches
from lumos.core.store.snapshots.part_format import urn_of_line
from lumos.feature.importing.checkpoint import ImportCheckpoint
from lumos.feature.importing.comparison import bulk_look_ups, compared_buckets
from lumos.feature.importing.steps import written_only
from lumos.feature.importing.to_catalog import CatalogImport
from lumos.feature.importing.to_state import StateImport

if TYPE_CHECKING:
    from lumos.core.platform.fidelity import AdapterRef
    from lumos.core.platform.interface import MetadataPlatformInterface
    from lumos.core.progress import Progress
    from lumos.core.run_report import Clock
    from lumos.feature.importing.checkpoint import Checkpoints
    from lumos.feature.importing.look_ups import LookUps
    from lumos.feature.importing.plan import ImportMode
    from lumos.feature.importing.tally import ImportTally
    from lumos.feature.importing.to_catalog import CatalogTarget
    from lumos.feature.snapshot.source import SnapshotSource
    from lumos.feature.sync.following_sync import FollowingSync
    from lumos.feature.versioning.publishing import StateTarget

_LOOKED_UP_AT_A_TIME = 500


class ImportRun(Protocol):
    """One import that is under way."""

    def apply(
        self,
        source: SnapshotSource,
        batch_size: int,
        *,
        restart: bool = False,
    ) -> None: ...


class Destination(ABC):
    """Where an import writes to."""

    sync: FollowingSync | None = None
    """Brings the catalog of the settings up to date afterwards, where the state is not it."""

    @abstractmethod
    def adapter_ref(self) -> AdapterRef | None:
        """Return the adapter whose fidelity counts; None where nothing is lost."""

    @abstractmethod
    def rehearse(
        self,
        source: SnapshotSource,
        mode: ImportMode,
        *,
        tally: ImportTally,
    ) -> None:
        """Count what an import would do."""

    @abstractmethod
    def begin(
        self,
        source: SnapshotSource,
        mode: ImportMode,
        *,
        tally: ImportTally,
        progress: Progress,
    ) -> ImportRun:
        """Return an import that can be carried out; a catalog that does not answer raises now."""


class StateDestination(Destination):
    """The state, and the catalog of the settings by way of it."""

    def __init__(
        self,
        *,
        look: Callable[[], MetadataPlatformInterface | None],
        target: Callable[[], StateTarget],
        checkpoints: Callable[[], Checkpoints],
        keeps_history: Callable[[], bool],
        adapter_ref: Callable[[], AdapterRef | None],
        sync: FollowingSync | None,
        clock: Clock,
    ) -> None:
        """Take the ways to the parts.

        Args:
            look: the state for reading only; None where there is none yet.
            target: the state for writing.
            checkpoints: keeps how far an interrupted import came.
            keeps_history: whether versions are counted.
            adapter_ref: returns the adapter of the settings' catalog, for its fidelity.
            sync: brings that catalog up to date; None where the state is it.
            clock: the time.
        """
        self.sync = sync
        self._look = look
        self._target = target
        self._checkpoints = checkpoints
        self._keeps_history = keeps_history
        self._adapter_ref = adapter_ref
        self._clock = clock

    @override
    def adapter_ref(self) -> AdapterRef | None:
        return self._adapter_ref()

    @override
    def rehearse(
        self,
        source: SnapshotSource,
        mode: ImportMode,
        *,
        tally: ImportTally,
    ) -> None:
        own = self._keeps_history()
        _rehearse(source, self._look(), mode=mode, tally=tally, own_versions=own)

    @override
    def begin(
        self,
        source: SnapshotSource,
        mode: ImportMode,
        *,
        tally: ImportTally,
        progress: Progress,
    ) -> ImportRun:
        target, checkpoints = self._target(), self._checkpoints()
        checkpoint = ImportCheckpoint.of(checkpoints, source, mode=mode, clock=self._clock)
        return StateImport(target, mode, tally=tally, checkpoint=checkpoint, progress=progress)


class CatalogDestination(Destination):
    """A catalog of which the state of the project knows nothing."""

    def __init__(
        self,
        *,
        look: Callable[[], MetadataPlatformInterface | None],
        target: Callable[[], CatalogTarget],
        adapter_ref: Callable[[], AdapterRef | None],
        clock: Clock,
    ) -> None:
        """Take the ways to the parts.

        Args:
            look: the catalog for reading only; None where there is none yet.
            target: the catalog for writing.
            adapter_ref: returns the adapter of the catalog, for its fidelity.
            clock: the time.
        """
        self._look = look
        self._target = target
        self._adapter_ref = adapter_ref
        self._clock = clock

    @override
    def adapter_ref(self) -> AdapterRef | None:
        return self._adapter_ref()

    @override
    def rehearse(
        self,
        source: SnapshotSource,
        mode: ImportMode,
        *,
        tally: ImportTally,
    ) -> None:
        catalog = self._look()
        look_ups = None if catalog is None else bulk_look_ups(catalog, mode, source=source)
        _rehearse(source, catalog, mode=mode, tally=tally, look_ups=look_ups)

    @override
    def begin(
        self,
        source: SnapshotSource,
        mode: ImportMode,
        *,
        tally: ImportTally,
        progress: Progress,
    ) -> ImportRun:
        target = self._target()
        target.platform.reached()  # a wrong address is reported once
        return CatalogImport(target, mode, tally=tally, clock=self._clock, progress=progress)


def _rehearse(
    source: SnapshotSource,
    catalog: MetadataPlatformInterface | None,
    *,
    mode: ImportMode,
    tally: ImportTally,
    own_versions: bool = False,
    look_ups: LookUps | None = None,
) -> None:
    """Count what an import would do to what a catalog has."""
    for bucket in compared_buckets(
        source, catalog, mode=mode, own_versions=own_versions, look_ups=look_ups
    ):
        for lines in batches(bucket.lines, _LOOKED_UP_AT_A_TIME):
            if look_ups:
                look_ups.ahead(lines)
            for line in lines:
                urn = urn_of_line(line).decode()
                tally.count(urn, bucket.plan(line).action)
                tally.count_edges(bucket.changes.pop(urn, ()))
        for changes in bucket.changes.values():
            tally.count_edges(written_only(changes))
