"""Profiles one dataset: chooses who reads its files, and leaves out those that fail."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.errors import EXIT_UNREADABLE, LumosError
from lumos.core.models.profile import DatasetProfile
from lumos.core.storage.local import leads_inside
from lumos.core.storage.sealed import sealed
from lumos.feature.profiling.columns import ProfiledColumn, profiled_columns
from lumos.feature.profiling.data_files import READABLE, DataFiles
from lumos.feature.profiling.native import (
    MOST_NATIVE_FILES,
    NATIVE_FORMATS,
    are_plain,
    native_expressions,
    native_schema,
)
from lumos.feature.profiling.summary import column_profiles
from lumos.spark.failures import SparkRunError, spark_failures
from lumos.spark.stages.profiling import (
    DatasetFiles,
    Figures,
    FileProblem,
    figures_of,
    flat_rows,
    native_rows,
    tasks_for,
)
from lumos.spark.task_progress import task_progress

if TYPE_CHECKING:
    from pathlib import Path

    from lumos.core.models import LumosDataset
    from lumos.core.progress import Progress
    from lumos.core.storage.port import StorageSource
    from lumos.core.storage.sealed import SealedSource
    from lumos.spark.handles import SparkSession

_MOST_PASSES = 3


class ProfileUnavailableError(LumosError):
    """The data of a dataset cannot be profiled."""

    code = "LUM-230"
    exit_code = EXIT_UNREADABLE


class ProfileOptions(NamedTuple):
    """How to look at data."""

    sample: float | None = None
    """The share of rows to look at, above 0 and below 1; None for all."""
    rows: int | None = None
    """About how many rows to look at, in place of a share."""
    seed: int = 0
    """Decides which rows a sample has."""
    values: bool = True
    """Whether figures of numbers, dates and times may be values of the data."""

    def share_of(self, rows: int | None) -> float | None:
        """Return the share to take of so many rows; None for all of them."""
        share = self.sample
        if self.rows is not None and rows:
            share = self.rows / rows
        return None if share is None or share >= 1 else share


ALL_ROWS: Final = ProfileOptions()


class Profiled(NamedTuple):
    """A profile, and what was wrong with files on the way."""

    profile: DatasetProfile
    problems: tuple[FileProblem, ...]


class Profiler:
    """Profiles datasets of one storage on one session."""

    def __init__(
        self,
        spark: SparkSession,
        *,
        options: ProfileOptions,
        progress: Progress,
        clock: Callable[[], datetime],
        folder: Path,
    ) -> None:
        """Profile on a session; `folder` is a private one of the run, for credentials."""
        self._folder = folder
        self._spark = spark
        self._options = options
        self._progress = progress
        self._clock = clock

    def profile(
        self, dataset: LumosDataset, files: DatasetFiles, *, storage: StorageSource | SealedSource
    ) -> Profiled:
        """Return the figures of all columns of a dataset.

        Raises:
            ProfileUnavailableError: its format cannot be read, or not one of its files.
        """
        unreadable = files.unreadable
        if dataset.format not in READABLE:
            raise ProfileUnavailableError(
                f"{dataset.urn}: {dataset.format or 'its format'} cannot be profiled yet",
                hint=f"datasets of these formats can be profiled: {', '.join(sorted(READABLE))}",
            )
        if files.count == 0 and not unreadable:
            raise ProfileUnavailableError(
                f"{dataset.urn}: nothing is known of its files",
                hint="run lumos ingest, which finds them",
            )
        columns = profiled_columns(
            dataset.schema, format=dataset.format, values=self._options.values
        )
        share = self._options.share_of(files.rows)
        self._progress.stage(f"profiling {dataset.name}", total=files.count)
        reading = _Reading(
            self._spark,
            dataset,
            files=files,
            columns=columns,
            storage=storage,
            handed_over=sealed(storage, self._folder),
        )
        with task_progress(self._spark, self._progress, items=files.count):
            figures, failed = reading.figures(share, seed=self._options.seed)
        failed = (*unreadable, *failed)
        if failed and len(failed) == files.count + len(unreadable):
            raise ProfileUnavailableError(
                f"{dataset.urn}: none of its files can be read: {failed[0].reason}",
                hint="lumos ingest names the files and their reasons",
            )
        profile = DatasetProfile(
            profiled_at=self._clock(),
            row_count=figures.rows,
            file_count=files.count + len(unreadable) - len(failed),
            failed_file_count=len(failed),
            sample=share,
            seed=None if share is None else self._options.seed,
            columns=column_profiles(columns, figures),
        )
        notices = tuple(problem for problem in figures.problems if not problem.fatal)
        return Profiled(profile, (*failed, *notices))


class _Reading:
    """One dataset, while its data is read."""

    def __init__(
        self,
        spark: SparkSession,
        dataset: LumosDataset,
        *,
        files: DatasetFiles,
        columns: tuple[ProfiledColumn, ...],
        storage: StorageSource | SealedSource,
        handed_over: StorageSource | SealedSource,
    ) -> None:
        self._handed_over = handed_over
        self._spark = spark
        self._dataset = dataset
        self._files = files
        self._columns = columns
        self._storage = storage
        self._flat = [column.flat for column in columns]

    def figures(self, share: float | None, *, seed: int) -> tuple[Figures, tuple[FileProblem, ...]]:
        """Return the figures, and the files that are not in them."""
        if share is None and (native := self._native()) is not None:
            return native, ()
        return self._by_file(share, seed=seed)

    def _native(self) -> Figures | None:
        """Let Spark read the files; None where it cannot, for whatever reason."""
        storage = self._storage.open()
        folder = storage.local_folder
        schema = native_schema(self._dataset.schema)
        if (
            folder is None
            or schema is None
            or self._dataset.format not in NATIVE_FORMATS
            or not 0 < self._files.count <= MOST_NATIVE_FILES
        ):
            return None
        paths = [os.path.join(folder, os.fsdecode(path)) for path in self._files.paths()]
        if not are_plain(paths):
            return None
        if storage.is_confined:
            inside = os.path.realpath(folder)
            if not all(leads_inside(path, inside) for path in paths):
                return None  # read file by file, those outside are refused and named
        try:
            with spark_failures():
                rows = native_rows(
                    self._spark,
                    paths,
                    format=self._dataset.format,
                    schema=schema,
                    base=folder,
                    expressions=native_expressions(self._columns),
                )
                return figures_of(rows, self._flat)
        except SparkRunError:
            return None  # a damaged file, or types that differ: read file by file, each is named

    def _by_file(
        self, share: float | None, *, seed: int
    ) -> tuple[Figures, tuple[FileProblem, ...]]:
        """Read file by file; a file that fails half-way is taken out with all its rows."""
        reader = DataFiles(
            self._handed_over, self._dataset.format or "", self._columns, share=share, seed=seed
        )
        tasks = tasks_for(self._spark, self._files.count)
        failed: list[FileProblem] = []
        for _ in range(_MOST_PASSES):
            files = self._files.to_read(without=failed, tasks=tasks)
            found = figures_of(flat_rows(files, reader.read, columns=self._flat), self._flat)
            fatal = [problem for problem in found.problems if problem.fatal]
            if not fatal:
                return found, tuple(failed)
            failed += fatal
            if len(failed) == self._files.count:
                return found, tuple(failed)
        raise ProfileUnavailableError(
            f"{self._dataset.urn}: more files fail each time that they are read",
            hint="try again when nobody writes to it",
        )
