"""What changed from one snapshot to another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from lumos.core.changes.policy import ChangePolicy
from lumos.core.changes.profiles import resolve_profile
from lumos.core.events import running
from lumos.core.progress import SILENT, Progress
from lumos.feature.snapshot.diff import StreamedDiff, diff_snapshots, streamed_diff
from lumos.feature.snapshot.pair_diff import FurtherDiffs

if TYPE_CHECKING:
    from lumos.core.controllers.results import DiffResult
    from lumos.core.platform.fidelity import AdapterRef
    from lumos.core.run_report import Clock
    from lumos.feature.migration.results import MigrationCheck
    from lumos.feature.snapshot.pair_diff import DiffDatasets
    from lumos.feature.snapshot.source import SnapshotSource

    MovedTo = Callable[[str, str], AdapterRef | None]


def _moved_nowhere(_source: str, _target: str) -> None:
    pass


class DiffController:
    """What `diff` does."""

    def __init__(
        self,
        open_pair: Callable[[str, str, Progress], tuple[SnapshotSource, SnapshotSource]],
        *,
        clock: Clock,
        policy: ChangePolicy | None = None,
        moved_to: MovedTo = _moved_nowhere,
    ) -> None:
        """Take a way to two snapshots by any name, and the policy that judges changes.

        Of two catalogs `moved_to` returns the adapter of the second, whose fidelity counts.
        """
        self._open_pair = open_pair
        self._clock = clock
        self._policy = policy or ChangePolicy()
        self._moved_to = moved_to

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
            old, new = self._open_pair(source, target, progress)
            with streamed_diff(old, new, diff_datasets=judge, further=further) as found:
                if canonical or self._moved_to(source, target) is not None:
                    found.canonical = canonical_diff(old, new)
                yield found

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
        old, new = self._open_pair(source, target, SILENT)
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
        policy = self._policy
        if profile is not None:
            policy = replace(policy, profile=str(resolve_profile(profile)))
        at = self._clock()
        seen = partial(policy.judge_observations, at=at) if observations else None
        return partial(policy.judge, at=at), FurtherDiffs(partial(policy.judge_edges, at=at), seen)
