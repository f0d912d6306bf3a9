"""Snapshots: made, listed, verified, exported, validated, compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.core.changes import diff_datasets
from lumos.core.controllers.results import (
    DiffResult,
    ExportResult,
    SnapshotListing,
    ValidationResult,
    Verification,
)
from lumos.core.platform.interface import MetadataPlatformInterface
from lumos.feature.snapshot.diff import diff_snapshots
from lumos.feature.snapshot.export import document_chunks, export_document
from lumos.feature.snapshot.source import LoadedSource, SnapshotSource, open_source
from lumos.feature.snapshot.validation import validate

if TYPE_CHECKING:
    from lumos.core.controllers.publishing import Clock
    from lumos.core.store.manifest import SnapshotInfo
    from lumos.core.store.snapshot_store import SnapshotStore

PlatformOf = Callable[[str | None], MetadataPlatformInterface]


class SnapshotController:
    """What `snapshot`, `export`, `validate` and `diff` do."""

    def __init__(
        self,
        store: SnapshotStore,
        *,
        platform_of: PlatformOf,
        platform_names: tuple[str, ...],
        clock: Clock,
    ) -> None:
        """Take the store and a way to the catalogs, the default one under the name None."""
        self._store = store
        self._platform_of = platform_of
        self._platform_names = platform_names
        self._clock = clock

    def create(self, platform: str | None = None, *, reuse_identical: bool = False) -> SnapshotInfo:
        """Store what a catalog holds now, after clearing away what dead writers left.

        With `reuse_identical` the newest snapshot is returned where nothing changed since.
        """
        now = self._clock()
        snapshot = self._platform_of(platform).export_all(at=now)
        self._store.collect_orphans()
        return self._store.write(snapshot, at=now, reuse_identical=reuse_identical)

    def newest(self) -> str | None:
        """Return the id of the newest stored snapshot, if there is one."""
        newest = self._store.latest()
        return newest.id if newest else None

    def list(self) -> SnapshotListing:
        """Return the stored snapshots, oldest first."""
        return SnapshotListing(snapshots=tuple(self._store.list()))

    def verify(self, reference: str | None = None) -> Verification:
        """Check every byte of one snapshot, or of all."""
        references = [reference] if reference else [info.id for info in self._store.list()]
        return Verification(reports=tuple(self._store.verify(each) for each in references))

    def export(
        self,
        output: Path,
        *,
        platform: str | None = None,
        snapshot: str | None = None,
        pretty: bool = True,
    ) -> ExportResult:
        """Write a catalog, or a stored snapshot, as one document."""
        source = self._exported(platform, snapshot)
        export_document(source, output, pretty=pretty)
        return ExportResult(output=str(output), source=source.name, statistics=source.statistics)

    def export_chunks(
        self,
        spill_folder: Path,
        *,
        platform: str | None = None,
        snapshot: str | None = None,
        pretty: bool = True,
    ) -> Iterator[bytes]:
        """Yield the document of a catalog or snapshot in pieces."""
        return document_chunks(self._exported(platform, snapshot), spill_folder, pretty=pretty)

    def validate(self, reference: str) -> ValidationResult:
        """Check a snapshot in any form."""
        return ValidationResult.model_validate(validate(reference, store=self._store).as_json())

    def diff(self, source: str, target: str) -> DiffResult:
        """Compare two snapshots, each a file, a folder, an id, `latest` or a catalog's name."""
        found = diff_snapshots(
            self.opened(source), self.opened(target), diff_datasets=diff_datasets
        )
        return DiffResult.model_validate(found.as_json())

    def opened(self, reference: str) -> SnapshotSource:
        """Open a snapshot by any name that a user may give it."""
        if reference in self._platform_names and not Path(reference).exists():
            return self._exported(reference, None)
        return open_source(reference, store=self._store)

    def _exported(self, platform: str | None, snapshot: str | None) -> SnapshotSource:
        if snapshot is not None:
            return open_source(snapshot, store=self._store)
        adapter = self._platform_of(platform)
        return LoadedSource(adapter.export_all(at=self._clock()), adapter.name)
