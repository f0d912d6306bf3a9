"""What changed from one snapshot to another."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.changes.profiles import resolve_profile
from lumos.core.controllers.parts import snapshot_opener
from lumos.core.events import running
from lumos.core.progress import SILENT, Progress
from lumos.feature.snapshot.diff import StreamedDiff, diff_snapshots, streamed_diff
from lumos.feature.snapshot.pair_diff import FurtherDiffs

if TYPE_CHECKING:
    from lumos.core.controllers.results import DiffResult
    from lumos.core.platform.fidelity import AdapterRef
    from lumos.core.runtime.unit_of_work import UnitOfWork
    from lumos.feature.migration.results import MigrationCheck
    from lumos.feature.snapshot.pair_diff import DiffDatasets


class ComparedSnapshots(NamedTuple):
    """How two snapshots differ."""

    found: StreamedDiff
    checks: tuple[MigrationCheck, ...] | None
    """How much of one catalog another has; None where not both are catalogs."""


class DiffController:
    """What `diff` does."""

    def __init__(self, work: UnitOfWork, *, edited: bool = False) -> None:
        """Take the parts of a unit of work; with `edited`, accept edited documents."""
        self._work = work
        self._opener = snapshot_opener(work, edited=edited)

    def _moved_to(self, source: str, target: str) -> AdapterRef | None:
        """Return the adapter of the second of two catalogs, for its fidelity; None for files."""
        if not all(self._opener.is_catalog(name) for name in (source, target)):
            return None
        return self._work.adapter_ref(target)

    @contextmanager
    def streamed(
        self,
        source: str,
        target: str,
        *,
        profile: str | None = None,
        observations: bool = False,
        canonical: bool = False,
        progress: Progress = SILENT,
    ) -> Iterator[StreamedDiff]:
        """Compare two snapshots by any name; what changed is not held in memory.

        Each is a file, a folder, an id, `latest`, a catalog's name or `git:REVISION:PATH`. With
        `observations`, what was only seen is compared too: sizes, rows, checks, costs. Two
        catalogs, and whatever is asked to be `canonical`, are also compared concept by concept.

        Raises:
            UnknownNameError: there is no such profile.
        """
        from lumos.feature.snapshot.canonical_diff import canonical_diff

        judge, further = self._judges(profile, observations=observations)
        with running("diff"):
            old, new = self._opener.opened_pair(source, target, progress)
            with streamed_diff(old, new, diff_datasets=judge, further=further) as found:
                if canonical or self._moved_to(source, target) is not None:
                    found.canonical = canonical_diff(old, new)
                yield found

    @contextmanager
    def compared(
        self,
        source: str,
        target: str,
        *,
        profile: str | None = None,
        observations: bool = False,
        progress: Progress = SILENT,
    ) -> Iterator[ComparedSnapshots]:
        """Compare two snapshots as `streamed` does, and say how much of one the other has."""
        with self.streamed(
            source, target, profile=profile, observations=observations, progress=progress
        ) as found:
            yield ComparedSnapshots(found, self.checks(found, source, target=target))

    def checks(
        self,
        found: StreamedDiff,
        source: str,
        *,
        target: str,
        own_versions: bool = True,
        unreadable: Collection[str] | None = None,
    ) -> tuple[MigrationCheck, ...] | None:
        """Say how much of one catalog another has; None where not both are catalogs.

        Args:
            found: how they differ.
            source: the name of the one.
            target: the name of the other.
            own_versions: whether the other catalog may have numbered versions itself since.
            unreadable: kinds of what the one holds besides; those that the diff met if not given.
        """
        from lumos.feature.migration.checks import migration_checks

        adapter_ref = self._moved_to(source, target)
        if adapter_ref is None:
            return None
        if unreadable is None:
            unreadable = [each.kind for each in found.unreadable_in_old]
        return tuple(
            migration_checks(
                found.totals,
                found.canonical,
                target=adapter_ref,
                own_versions=own_versions,
                unreadable=unreadable,
            )
        )

    def diff(
        self,
        source: str,
        target: str,
        *,
        profile: str | None = None,
        observations: bool = False,
    ) -> DiffResult:
        """Compare two snapshots as `streamed` does, and hold all that changed."""
        from lumos.core.controllers.results import DiffResult
        from lumos.feature.migration.checks import migration_checks
        from lumos.feature.snapshot.canonical_diff import canonical_diff

        judge, further = self._judges(profile, observations=observations)
        old, new = self._opener.opened_pair(source, target, SILENT)
        found = diff_snapshots(old, new, diff_datasets=judge, further=further)
        adapter_ref = self._moved_to(source, target)
        canonical = canonical_diff(old, new) if adapter_ref else None
        result = DiffResult.model_validate(found.as_json())
        if adapter_ref is None:
            return result
        unreadable = [each.kind for each in old.unreadable]
        checks = migration_checks(
            found.totals, canonical, target=adapter_ref, own_versions=True, unreadable=unreadable
        )
        return result.model_copy(update={"checks": tuple(checks)})

    def _judges(
        self, profile: str | None, *, observations: bool
    ) -> tuple[DiffDatasets, FurtherDiffs]:
        policy = self._work.policy
        if profile is not None:
            policy = replace(policy, profile=str(resolve_profile(profile)))
        at = self._work.clock()
        seen = partial(policy.judge_observations, at=at) if observations else None
        return partial(policy.judge, at=at), FurtherDiffs(partial(policy.judge_edges, at=at), seen)
