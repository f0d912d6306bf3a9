"""What changed from one snapshot to another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from lumos.core.changes.policy import ChangePolicy
from lumos.core.changes.profiles import resolve_profile
from lumos.core.progress import SILENT, Progress
from lumos.feature.snapshot.diff import (
    StreamedDiff,
    diff_snapshots,
    diff_tasks,
    streamed_diff,
)
from lumos.feature.snapshot.engine_choice import SPARK_FROM_BYTES, Engine
from lumos.feature.snapshot.pair_diff import FurtherDiffs

if TYPE_CHECKING:
    from lumos.core.controllers.publishing import Clock
    from lumos.core.controllers.results import DiffResult
    from lumos.feature.snapshot.bucket_work import BucketEngine
    from lumos.feature.snapshot.engines import Engines
    from lumos.feature.snapshot.pair_diff import DiffDatasets
    from lumos.feature.snapshot.source import SnapshotSource

Tell = Callable[[str], None]


def _tell_nobody(_text: str) -> None:
    pass


class DiffController:
    """What `diff` does."""

    def __init__(
        self,
        open_pair: Callable[[str, str, Progress], tuple[SnapshotSource, SnapshotSource]],
        *,
        engines: Engines,
        clock: Clock,
        policy: ChangePolicy | None = None,
    ) -> None:
        """Take a way to two snapshots by any name, and the policy that judges changes."""
        self._open_pair = open_pair
        self._engines = engines
        self._clock = clock
        self._policy = policy or ChangePolicy()

    @contextmanager
    def streamed(
        self,
        source: str,
        target: str,
        *,
        profile: str | None = None,
        observations: bool = False,
        parts: bool = False,
        engine: Engine = Engine.AUTO,
        tell: Tell = _tell_nobody,
        progress: Progress = SILENT,
    ) -> Iterator[StreamedDiff]:
        """Compare two snapshots by any name; what changed is not held in memory.

        Each is a file, a folder, an id, `latest`, a catalog's name or `git:REVISION:PATH`. With
        `observations`, what was only seen is compared too: sizes, rows, checks, costs. With
        `parts`, it is counted by part of a dataset what is not the same, whatever it means.

        Raises:
            UnknownNameError: there is no such profile.
        """
        judge, further = self._judges(profile, observations=observations)
        further = further._replace(parts=parts)
        opened = self._opened(source, target, engine=engine, tell=tell, progress=progress)
        with (
            opened as (old, new, worker),
            streamed_diff(old, new, diff_datasets=judge, further=further, engine=worker) as found,
        ):
            yield found

    def diff(
        self,
        source: str,
        target: str,
        *,
        profile: str | None = None,
        observations: bool = False,
        engine: Engine = Engine.AUTO,
        tell: Tell = _tell_nobody,
    ) -> DiffResult:
        """Compare two snapshots as `streamed` does, and hold all that changed."""
        from lumos.core.controllers.results import DiffResult

        judge, further = self._judges(profile, observations=observations)
        with self._opened(source, target, engine=engine, tell=tell) as (old, new, worker):
            found = diff_snapshots(old, new, diff_datasets=judge, further=further, engine=worker)
        return DiffResult.model_validate(found.as_json())

    def _judges(
        self, profile: str | None, *, observations: bool
    ) -> tuple[DiffDatasets, FurtherDiffs]:
        policy = self._policy
        if profile is not None:
            policy = replace(policy, profile=str(resolve_profile(profile)))
        at = self._clock()
        seen = partial(policy.judge_observations, at=at) if observations else None
        return partial(policy.judge, at=at), FurtherDiffs(partial(policy.judge_edges, at=at), seen)

    @contextmanager
    def _opened(
        self,
        source: str,
        target: str,
        *,
        engine: Engine,
        tell: Tell,
        progress: Progress = SILENT,
    ) -> Iterator[tuple[SnapshotSource, SnapshotSource, BucketEngine]]:
        old, new = self._open_pair(source, target, progress)
        size = sum(pair.plain_bytes() for pair in diff_tasks(old, new))
        worth_spark = size >= SPARK_FROM_BYTES["diff"]
        with self._engines.opened(engine, worth_spark=worth_spark, tell=tell) as worker:
            yield old, new, worker
