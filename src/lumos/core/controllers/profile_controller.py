"""Profiling: look at the data of datasets on Spark, and keep what was seen with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from lumos.core.controllers.catalog_controller import CatalogController
from lumos.core.controllers.parts import following_sync, state_target
from lumos.core.controllers.results import ProfiledDataset, ProfileResult
from lumos.core.errors import DamagedDocumentError, LumosError, UnreadableItemError, UsageError
from lumos.core.events import running
from lumos.core.models import Contributor, ContributorKind, LumosDataset, Urn, with_parts
from lumos.core.models.origin import Origin, origin_of
from lumos.core.platform.batches import dataset_or_none
from lumos.core.platform.factory import EMBEDDED
from lumos.core.progress import SILENT, Progress
from lumos.core.run_report import RunRecorder
from lumos.core.store.catalog.contributions import ContributionTable
from lumos.core.store.snapshots.snapshot_files import storing
from lumos.core.store.state_folder import FILE_INDEX
from lumos.feature.ingestion.scan.file_functions import READERS
from lumos.feature.ingestion.scan.sources import files_of
from lumos.feature.profiling.profiler import (
    ALL_ROWS,
    Profiled,
    ProfileOptions,
    Profiler,
    ProfileUnavailableError,
)
from lumos.feature.sync.following_sync import with_sync
from lumos.spark.failures import spark_failures
from lumos.spark.file_index import FileIndex
from lumos.spark.file_index import Origin as IndexOrigin
from lumos.spark.run_folder import run_folder
from lumos.spark.stages.profiling import DatasetFiles

if TYPE_CHECKING:
    from lumos.core.runtime.unit_of_work import UnitOfWork
    from lumos.core.settings import SourceEntry
    from lumos.core.storage.port import StorageSource
    from lumos.core.storage.sealed import SealedSource
    from lumos.feature.ingestion.scan.sources import ScanSource
    from lumos.spark.file_index import IndexTables

T = TypeVar("T")
_PROFILE: Final = Contributor(ContributorKind.INFERRED, "profile")
_INGEST = "run lumos ingest, which finds them"


class _Task(NamedTuple):
    """A dataset to profile, and where its files lie."""

    dataset: LumosDataset
    origin: Origin
    storage: StorageSource | SealedSource


class ProfileController:
    """What `lumos profile` does."""

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work
        self._clock = work.clock

    @running("profile")
    def profile(
        self,
        references: Sequence[str] = (),
        *,
        sources: Sequence[str] = (),
        options: ProfileOptions = ALL_ROWS,
        progress: Progress = SILENT,
    ) -> ProfileResult:
        """Profile datasets, given by URN or name, or all that some sources have.

        One dataset that cannot be profiled is an error; of several, it is named in the report.

        Raises:
            UsageError: there is nothing to profile, or no such source.
            DatasetNotFoundError: the catalog does not hold the URN.
            ProfileUnavailableError: the data of the one dataset cannot be profiled.
        """
        recorder = RunRecorder("profile", started_at=self._clock())
        chosen = self._chosen(references, sources, recorder)
        datasets = {dataset.urn: dataset for dataset in chosen}
        if not datasets:
            raise UsageError(
                "there is no dataset to profile", hint="give a URN, or a source with --source"
            )
        runs = _Runs(recorder, only_one=len(datasets) == 1)
        tasks = [
            task
            for urn, dataset in datasets.items()
            if (task := runs.tried(urn, partial(self._task, dataset)))
        ]
        profiles = self._profiled(tasks, runs, options=options, progress=progress) if tasks else []
        report = recorder.finish(at=self._clock())
        with self._work.begin_run("profile") as run:
            self._keep(profiles)
            run.keep(report)
        report = with_sync(report, following_sync(self._work), progress=progress)
        return ProfileResult.of(report, profiles=tuple(profiles))

    def _chosen(
        self, references: Sequence[str], sources: Sequence[str], recorder: RunRecorder
    ) -> Iterable[LumosDataset]:
        if references:
            yield from map(CatalogController(self._work, EMBEDDED).show, references)
        known = {entry.name: entry for entry in self._work.settings.sources}
        for name in sources:
            if name not in known:
                raise UsageError(f"there is no source {name}", hint=f"known: {', '.join(known)}")
            catalog = self._work.platform(EMBEDDED)
            names = [files.storage.name for files in self._files(known[name])]
            if not names:
                raise UsageError(
                    f"source '{name}' has no files to profile",
                    hint="lumos profile reads files; databases and dbt projects have none",
                )
            for urn in self._found_by(names):
                try:
                    yield catalog.get_dataset(Urn(urn))
                except DamagedDocumentError as error:
                    recorder.failed(urn, error)

    def _found_by(self, sources: Sequence[str]) -> list[str]:
        """Return the URNs of what some sources have."""
        table = ContributionTable(self._work.reader)
        contributors = (Contributor(ContributorKind.SOURCE, name) for name in sources)
        return sorted(urn for each in contributors for urn, _ in table.found_states(each))

    def _task(self, dataset: LumosDataset) -> _Task:
        origin = origin_of(dataset)
        if origin is None:
            raise ProfileUnavailableError(
                f"{dataset.urn}: no files of it are known",
                hint="datasets of files can be profiled that lumos ingest found",
            )
        for entry in self._work.settings.sources:
            if not origin.source.startswith(entry.name):
                continue
            for files in self._files(entry):
                if files.storage.name == origin.source and files.holds(dataset.urn):
                    return _Task(dataset, origin, files.storage)
        raise ProfileUnavailableError(
            f"{dataset.urn}: no source of the settings has its files; it came from {origin.source}",
            hint="put the source back into lumos.yaml",
        )

    def _files(self, entry: SourceEntry) -> Iterable[ScanSource]:
        return files_of(entry, skip=str(self._work.state_dir.absolute()))

    def _profiled(
        self, tasks: Sequence[_Task], runs: _Runs, *, options: ProfileOptions, progress: Progress
    ) -> list[ProfiledDataset]:
        profiles = []
        with (
            self._private_folder() as private,
            self._work.spark_session(progress.note) as spark,
            spark_failures(),
        ):
            index = FileIndex(self._work.state_dir / FILE_INDEX).read(
                lambda: spark, IndexOrigin(READERS, {})
            )
            profiler = Profiler(
                spark, options=options, progress=progress, clock=self._clock, folder=private
            )
            for task in tasks:
                work = partial(_with_files, profiler, task, index=index)
                done = runs.tried(task.dataset.urn, work)
                if done is not None:
                    runs.report(task, done)
                    profile = ProfiledDataset(dataset=task.dataset.urn, profile=done.profile)
                    profiles.append(profile)
        return profiles

    @contextmanager
    def _private_folder(self) -> Iterator[Path]:
        """Yield a folder for credentials; all workers of Spark see the state folder."""
        state = self._work.state_dir
        with ExitStack() as stack:
            with storing(state):
                place = state if state.is_dir() else None
                private = stack.enter_context(run_folder(place))
            yield private.path

    def _keep(self, profiles: Sequence[ProfiledDataset]) -> None:
        """Store profiles with datasets as they are by now; nothing else of them changes."""
        if not profiles:
            return
        target = state_target(self._work, _PROFILE)
        with target.database.transaction():
            for each in profiles:
                present = dataset_or_none(target.platform, each.dataset)
                if present is not None:
                    target.publisher.publish(with_parts(present, profile=each.profile))


class _Runs:
    """An error of the only dataset, as opposed to one of several."""

    def __init__(self, recorder: RunRecorder, *, only_one: bool) -> None:
        self._recorder = recorder
        self._only_one = only_one

    def tried(self, urn: Urn, work: Callable[[], T]) -> T | None:
        """Return what the work on a dataset gives; None where it failed and there are others."""
        try:
            return work()
        except LumosError as error:
            if self._only_one:
                raise
            self._recorder.failed(urn, error, scope_seen=True)
            return None

    def report(self, task: _Task, done: Profiled) -> None:
        """Record a profile, and every file that is not wholly in it."""
        storage = task.storage.open()
        self._recorder.done(task.dataset.urn)
        for problem in done.problems:
            shown = storage.shown(problem.item)
            if problem.fatal:
                self._recorder.failed(shown, UnreadableItemError(problem.reason), scope_seen=True)
            else:
                self._recorder.warning(f"{shown}: {problem.reason}")


def _with_files(profiler: Profiler, task: _Task, *, index: IndexTables | None) -> Profiled:
    if index is None:
        raise ProfileUnavailableError(
            f"{task.dataset.urn}: nothing is known of its files", hint=_INGEST
        )
    files = DatasetFiles(
        index.items,
        source=task.origin.source,
        dataset=task.origin.dataset,
        format=task.dataset.format or "",
    )
    return profiler.profile(task.dataset, files, storage=task.storage)
