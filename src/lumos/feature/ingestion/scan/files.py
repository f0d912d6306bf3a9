"""The part of an ingestion that lists and reads the files of storages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from lumos.core.errors import UnreadableItemError
from lumos.core.events import emit
from lumos.core.formats.confined import OUTSIDE
from lumos.feature.ingestion.found_datasets import Find
from lumos.feature.ingestion.results import ScannedFiles
from lumos.feature.ingestion.scan.file_evidence import FileEvidence
from lumos.feature.ingestion.scan.file_functions import StorageFunctions
from lumos.spark.pipeline import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from lumos.core.progress import Progress
    from lumos.core.run_report import RunRecorder
    from lumos.feature.ingestion.scan.sources import Folders, ScanSources
    from lumos.spark.file_index import FileIndex, IndexTables, Origin, Session
    from lumos.spark.stages.rows import BuiltDataset


_LONGEST_GROUP = 1_024
"""A group with a longer name is named anew each time."""


@dataclass
class FileScan:
    """What the sources of a run that are storages hold."""

    pipeline: Pipeline | None
    """None where there is no such source."""
    evidence: FileEvidence
    totals: ScannedFiles

    @classmethod
    def of(
        cls,
        sources: ScanSources,
        session: Session,
        *,
        known: IndexTables | None,
        work: Path,
        full: bool,
        under: Folders | None,
        recorder: RunRecorder,
        progress: Progress,
        kept_groups: Mapping[str, Mapping[str, str]],
    ) -> FileScan:
        """List and read; what could not be listed or read goes into the report.

        Args:
            sources: where to look.
            session: gives Spark.
            known: what earlier runs knew of the files.
            work: a folder for what the stages leave.
            full: open every file.
            under: the folders to look into, where they are not all.
            recorder: gets what went wrong.
            progress: receives how far it came.
            kept_groups: the names of datasets that `groups_to_keep` returned, by source and group.
        """
        evidence = FileEvidence(sources.by_name)
        if not sources.by_name:
            nothing = ScannedFiles(listed=0, opened=0, unchanged=0, unreadable=0)
            return cls(None, evidence, nothing)
        functions = StorageFunctions.of(sources.by_name, folder=work, kept_groups=kept_groups)
        pipeline = Pipeline(session, functions, work=work, progress=progress)
        files = pipeline.run(sources.units, known, full=full, scope=under)
        emit(
            "files.compared",
            opened=files.opened,
            unchanged=files.unchanged,
            reason=_why_read(known, full=full) if files.opened else None,
        )
        unreadable = _record_problems(pipeline, evidence, recorder=recorder)
        if not full and under is None:
            _doubt_empty_sources(pipeline, evidence, recorder=recorder)
        for urn, texts in (odd for each in pipeline.formats() for odd in each.warnings):
            for text in orjson.loads(texts):
                recorder.warning(f"{urn}: {text}")
        return cls(pipeline, evidence, ScannedFiles(**files._asdict(), unreadable=unreadable))

    @property
    def may_need_spark(self) -> bool:
        """Whether a job of Spark may be needed to find what differs."""
        return self.pipeline is not None and self.pipeline.may_need_spark

    def finds(self) -> list[Find]:
        """Return what was found; no two storages have one dataset."""
        if self.pipeline is None:
            return []
        return [Find(self.pipeline, self.evidence, sorted(self.evidence.sources))]

    def found(self) -> Iterator[BuiltDataset]:
        """Yield every dataset."""
        if self.pipeline is not None:
            yield from self.pipeline.found()

    def formats(self) -> Counter[str]:
        """Return how many datasets there are of each format."""
        counted = self.pipeline.formats() if self.pipeline else ()
        return Counter({each.format: each.datasets for each in counted})

    def remember_what_is_forgotten(self, index: FileIndex, known: IndexTables | None) -> None:
        """Find unreadable files of which nothing is known, though earlier runs may have read them.

        That an index is lost, or of another version, must not look like columns that are gone.
        """
        evidence = self.evidence
        sources = {source for source, _ in evidence.unreadable}
        unknown = {source for source in sources if known is None or not known.knows(source)}
        if not unknown or self.pipeline is None:
            return
        never_read = index.unread()
        for file in self.pipeline.unreadable():
            is_known = file.source not in unknown or (file.source, file.path) in never_read
            if file.dataset and not is_known:
                evidence.forgotten[file.source, file.dataset] += 1

    def groups_to_keep(
        self, before: Mapping[str, Mapping[str, str]], *, is_partial: bool
    ) -> dict[str, dict[str, str]]:
        """Return the names that later runs give the same files again, where they are new.

        Args:
            before: those that are known, by source and group.
            is_partial: whether only some folders were looked into.
        """
        if self.pipeline is None:
            return {}
        seen = self.pipeline.sources_with_files()
        found: dict[str, dict[str, str]] = {}
        for source, groups in self.pipeline.groupings().items():
            now = {
                group: f"[{','.join(texts)}]"
                for group, texts in groups.items()
                if len(group.encode()) <= _LONGEST_GROUP
            }
            known = dict(before.get(source, {}))
            marks = {**known, **now} if is_partial or source not in seen else now
            if marks != known:
                found[source] = marks
        return found

    def keep(self, index: FileIndex, *, origin: Origin, run: str) -> None:
        """Let the next run begin with what this one saw."""
        pipeline = self.pipeline
        if pipeline is None:
            return
        if pipeline.written is not None:
            index.replace(pipeline.written, origin, run=run, units=pipeline.units)
        elif pipeline.has_new_units:
            index.keep_units(pipeline.units)


def _why_read(known: IndexTables | None, *, full: bool) -> str:
    if full:
        return "all files are to be read"
    if known is None:
        return "there is no file index yet, or one of another version"
    return "they are new or changed, or could not be read before"


def _doubt_empty_sources(
    pipeline: Pipeline, evidence: FileEvidence, *, recorder: RunRecorder
) -> None:
    """Take nothing as removed from a source without a single file: its disk may be missing."""
    for source in sorted(evidence.sources.keys() - pipeline.sources_with_files()):
        evidence.doubted.add(source)
        recorder.incomplete(
            reason=f"source {source} has no file at all; nothing is taken as removed, unless --full"
        )


def _record_problems(pipeline: Pipeline, evidence: FileEvidence, *, recorder: RunRecorder) -> int:
    """Put all that could not be listed or read into the report; return how many files."""
    for part in pipeline.unlisted():
        evidence.close(part.source, part.path)
        shown = evidence.shown(part.source, part.path)
        recorder.failed(shown, UnreadableItemError(part.reason))
    _record_links(pipeline, evidence, recorder=recorder)
    unreadable = 0
    for file in pipeline.unreadable():
        unreadable += 1
        if file.dataset is not None:
            evidence.unreadable[file.source, file.dataset] += 1
        path = evidence.shown(file.source, file.path)
        error = UnreadableItemError(file.reason, retryable=file.retry)
        recorder.failed(path, error, scope_seen=True)
    for failed in pipeline.failed():
        evidence.unbuilt.add((failed.source, failed.dataset))
        shown = evidence.shown_dataset(failed.source, failed.dataset)
        recorder.failed(shown, UnreadableItemError(failed.reason), scope_seen=True)
    for notice in pipeline.notices():
        path = evidence.shown(notice.source, notice.path)
        for text in orjson.loads(notice.warnings or "[]"):
            recorder.warning(f"{path}: {text}")
        if notice.skipped:
            recorder.skipped(path, reason=f"no table: {notice.skipped}")
    return unreadable


def _record_links(pipeline: Pipeline, evidence: FileEvidence, *, recorder: RunRecorder) -> None:
    """Put the symlinks that were not followed into the report, and what to do about them."""
    counts: Counter[str] = Counter()
    for source, path in pipeline.skipped_links():
        counts[source] += 1
        evidence.skip_link(source, path)
        recorder.skipped(evidence.shown(source, path), reason=OUTSIDE)
    for source, count in sorted(counts.items()):
        links = "1 symlink leads" if count == 1 else f"{count:,} symlinks lead"
        recorder.warning(
            f"source {source}: {links} outside of it and {'is' if count == 1 else 'are'} not "
            "followed; what was found behind such a link before stays as it was: follow it with "
            "follow_symlinks: all, or let it be removed with: exclude"
        )
