"""Snapshots: made, listed, verified, exported, validated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import lumos
from lumos.core.controllers.parts import snapshot_opener
from lumos.core.controllers.results import (
    ExportResult,
    SnapshotListing,
    ValidationResult,
    Verification,
)
from lumos.core.errors import UsageError
from lumos.core.events import emit, running
from lumos.core.models import SNAPSHOT_SCHEMA_VERSION
from lumos.core.platform.abilities import content_fingerprint, reading_at_once
from lumos.core.platform.factory import PlatformFactory
from lumos.core.platform.unreadable import reading_report
from lumos.core.progress import SILENT, Progress
from lumos.core.store.settings import RetentionSettings
from lumos.core.store.snapshots.retention import from_the_future, prunable
from lumos.feature.snapshot.contents import catalog_content, source_content
from lumos.feature.snapshot.export import document_chunks, export_document
from lumos.feature.snapshot.forms import SnapshotForm
from lumos.feature.snapshot.opening import located
from lumos.feature.snapshot.results import PruneResult
from lumos.feature.snapshot.scratch import Scratch
from lumos.feature.snapshot.selection import ExportedPart, selected
from lumos.feature.snapshot.source import (
    DocumentSource,
    SnapshotSource,
    StoredSource,
)
from lumos.feature.snapshot.validation import validate
from lumos.feature.snapshot.verification import sign_snapshot, verify

if TYPE_CHECKING:
    from lumos.core.platform.interface import MetadataPlatformInterface
    from lumos.core.run_report import RunReport
    from lumos.core.runtime.unit_of_work import UnitOfWork
    from lumos.core.store.settings import RetentionSettings
    from lumos.core.store.snapshots.manifest import SnapshotInfo, VerifyReport

_EVERYTHING = ExportedPart()


def _report_to_nobody(_report: RunReport) -> None:
    pass


def _fingerprint(catalog: MetadataPlatformInterface) -> str | None:
    """What differs whenever a snapshot of the catalog, written by this version, would."""
    content = content_fingerprint(catalog)
    return content and f"{lumos.__version__}/{SNAPSHOT_SCHEMA_VERSION}/{catalog.name}/{content}"


class SnapshotController:
    """What `snapshot`, `export` and `validate` do."""

    def __init__(self, work: UnitOfWork, *, edited: bool = False) -> None:
        """Take the parts of a unit of work; with `edited`, accept edited documents."""
        self._work = work
        self._clock = work.clock
        self._store = work.snapshot_store
        self._edited = edited
        self._opener = snapshot_opener(work, edited=edited)

    @running("snapshot create")
    def create(
        self,
        platform: str | None = None,
        *,
        reuse_identical: bool = False,
        unread: Callable[[RunReport], None] = _report_to_nobody,
    ) -> SnapshotInfo:
        """Store what a catalog holds now, after clearing away what dead writers left.

        With `reuse_identical` the newest snapshot is returned where nothing changed since.
        `unread` is called with what the catalog holds and could not be read.
        """
        now = self._clock()
        catalog = self._work.platform(platform)
        with reading_at_once(catalog):
            known = _fingerprint(catalog) if reuse_identical else None
            if known and (newest := self._store.newest_made_of(known)) is not None:
                return newest
            content = catalog_content(catalog, at=now)
            self._store.collect_orphans()
            made = self._store.write_content(content, at=now, reuse_identical=reuse_identical)
        if known and not catalog.unreadable():  # else the next one would not report it
            self._store.remember(made.id, known)
        if unreadable := catalog.unreadable():
            done = made.statistics.datasets
            unread(reading_report("snapshot", unreadable, done=done, at=now))
        emit("snapshot.stored", snapshot=made.id)
        return made

    def newest(self) -> str | None:
        """Return the id of the newest stored snapshot, if there is one."""
        newest = self._store.latest()
        return newest.id if newest else None

    def list(self) -> SnapshotListing:
        """Return the stored snapshots, oldest first."""
        snapshots = tuple(self._store.list())
        return SnapshotListing(snapshots=snapshots, warnings=self._clock_warnings(snapshots))

    def clock_warning(self) -> str | None:
        """Return a warning where the newest snapshot is dated in the future."""
        newest = self._store.latest()
        return from_the_future(newest, now=self._clock()) if newest else None

    def verify(self, reference: str | None = None, *, key: Path | None = None) -> Verification:
        """Check every byte of one snapshot in any form, or of all stored ones."""
        references = [reference] if reference else [info.id for info in self._store.list()]
        reports = (verify(each, store=self._store, key=key) for each in references)
        return Verification(reports=tuple(reports))

    def sign(self, reference: str, key: Path) -> VerifyReport:
        """Sign a snapshot in any form with a private key."""
        return sign_snapshot(reference, key, store=self._store)

    def prune(self, rules: RetentionSettings, *, dry_run: bool = False) -> PruneResult:
        """Remove stored snapshots that no rule keeps, and what killed writers left.

        Raises:
            UsageError: there is no rule.
        """
        rules = rules or self._work.settings.snapshots.retention
        if not rules:
            raise UsageError(
                "there is no rule for what to keep",
                hint="give --keep-last or another rule, or set snapshots.retention in lumos.yaml",
            )
        listed = self._store.list()
        old = prunable(listed, rules, now=self._clock())
        removed = [info for info in old if dry_run or self._store.remove(info.id)]
        if not dry_run:
            self._store.collect_orphans()
        return PruneResult(
            dry_run=dry_run,
            removed=tuple(info.id for info in removed),
            bytes=sum(info.bytes for info in removed),
            kept=len(listed) - len(removed),
            warnings=self._clock_warnings(listed),
            unreadable=tuple(info.id for info in listed if info.problem),
        )

    def _clock_warnings(self, snapshots: Sequence[SnapshotInfo]) -> tuple[str, ...]:
        now = self._clock()
        return tuple(filter(None, (from_the_future(info, now=now) for info in snapshots)))

    @running("export")
    def export(
        self,
        output: Path,
        what: ExportedPart = _EVERYTHING,
        *,
        form: SnapshotForm = SnapshotForm.DOCUMENT,
        pretty: bool = True,
        progress: Progress = SILENT,
    ) -> ExportResult:
        """Write a catalog, or a snapshot in any form, as one document or as a folder."""
        source = self._exported(what, progress)
        if form is SnapshotForm.FOLDER:
            self._store.write_folder(source_content(source), output, at=source.stored_at)
        else:
            export_document(source, output, pretty=pretty)
        return ExportResult(
            output=str(output),
            source=source.name,
            form=form.value,
            content_hash=source.content_hash,
            statistics=source.statistics,
            report=self._reading(source),
        )

    def export_chunks(
        self,
        spill_folder: Path,
        what: ExportedPart = _EVERYTHING,
        *,
        pretty: bool = True,
        progress: Progress = SILENT,
        unread: Callable[[RunReport], None] = _report_to_nobody,
    ) -> Iterator[bytes]:
        """Yield the document of a catalog or snapshot in pieces.

        `unread` is called before the first with what the catalog holds and could not be read.
        """
        source = self._exported(what, progress)
        if source.unreadable:
            unread(self._reading(source))
        yield from document_chunks(source, spill_folder, pretty=pretty)

    @running("validate")
    def validate(self, reference: str) -> ValidationResult:
        """Check a snapshot in any form."""
        with located(reference) as place:
            report = validate(place, store=self._store, edited=self._edited)
        named = {"name": reference} if place != reference else {}
        return ValidationResult.model_validate({**report.as_json(), **named})

    @property
    def catalogs(self) -> tuple[str, ...]:
        """The names of catalogs of other systems, and of the embedded one."""
        return PlatformFactory.names()

    def is_catalog(self, reference: str) -> bool:
        """Return whether a name means a catalog."""
        return self._opener.is_catalog(reference)

    def opened(self, reference: str) -> SnapshotSource:
        """Open a snapshot by any name that a user may give it."""
        return self._opener.opened(reference)

    def opened_for_writing(self, reference: str, key: Path | None = None) -> SnapshotSource:
        """Open what goes into a catalog or a history.

        Raises:
            SignatureError: it is not signed with the key or, where none is given, with one of
                those that the settings trust.
        """
        if key is not None:
            return self._opener.opened_signed(reference, (key,))
        return self._opener.opened_trusted(reference, self._work.settings.trusted_key_files)

    def _exported(self, what: ExportedPart, progress: Progress) -> StoredSource:
        if what.snapshot is None:
            return self._opener.exported(what.platform, what.selection, progress=progress)
        source = self.opened(what.snapshot)
        if isinstance(source, StoredSource) and not what.selection:
            return source
        scratch = Scratch()
        content = selected(source_content(source), what.selection)
        return DocumentSource(scratch.store(content), source.name, scratch=scratch)

    def _reading(self, source: StoredSource) -> RunReport:
        done = source.statistics.datasets
        return reading_report("export", source.unreadable, done=done, at=self._clock())
