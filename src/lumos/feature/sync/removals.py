"""Removing from a catalog what Lumos put there and no longer has, carefully."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumos.core.errors import DatasetNotFoundError
from lumos.core.models import LineageEdge
from lumos.core.platform.abilities import Capability
from lumos.core.platform.batch import Batch
from lumos.core.platform.batches import dataset_or_none
from lumos.core.platform.refusals import REFUSALS, ends_run
from lumos.feature.sync.items import DATASET, EDGE, edge_ends
from lumos.feature.sync.truth import was_edited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lumos.feature.sync.settings import SyncSettings
    from lumos.feature.sync.tally import Ends, SyncTally

_HANDFUL = 5
_LIKELY_SHARE = 0.5
"""More than this share of all that was ever sent is not gone in one go, as a rule."""


class Removals:
    """What a complete sync did not meet again.

    Only what an earlier sync wrote is ever removed, and nothing that people changed since.
    """

    def __init__(
        self,
        ends: Ends,
        settings: SyncSettings,
        *,
        tally: SyncTally,
        dry_run: bool,
        confirmed: bool = False,
    ) -> None:
        """Get ready.

        Args:
            ends: where to read and to write.
            settings: how many may be removed.
            tally: what to count in.
            dry_run: count only.
            confirmed: somebody said for this sync how many, whatever share of all they are.
        """
        self._confirmed = confirmed
        self._ends = ends
        self._settings = settings
        self._tally = tally
        self._dry_run = dry_run

    def remove(self, *, datasets: set[str], edges: set[str]) -> None:
        """Remove all that was sent before and is not among what was seen now."""
        if self._tally.failed:
            self._refuse("something failed", "nothing is removed")
            return
        gone = self._gone(DATASET, datasets, Capability.DELETE)
        for urn in gone or ():
            self._attempt(DATASET, urn, remove=self._remove_dataset)
        if gone is None:
            return
        gone_urns = set(gone)
        lost = [name for name in self._ends.states.names(EDGE) if name not in edges]
        own = [name for name in lost if gone_urns.isdisjoint(_ends_of(name))]
        if self._within_limit(len(own), "steps of lineage"):
            self.remove_edges(lost)

    def remove_edges(self, names: Iterable[str]) -> None:
        """Remove steps of lineage, given as `edge_name` calls them."""
        for name in names:
            self._attempt(EDGE, name, remove=self._remove_edge)

    def _attempt(self, kind: str, name: str, *, remove: Callable[[str], None]) -> None:
        if not self._dry_run:
            self._ends.states.require_lease()
        try:
            remove(name)
        except REFUSALS as error:
            self._tally.refused(kind, name, error)
            if ends_run(error):
                raise

    def _gone(self, kind: str, seen: set[str], capability: Capability) -> list[str] | None:
        """Return what is to be removed; None where nothing may be."""
        sent = [*self._ends.states.names(kind)]
        gone = [name for name in sent if name not in seen]
        if gone and capability not in self._ends.target.capabilities:
            self._refuse(f"{self._ends.target.name} removes no datasets", f"{len(gone):,} stay")
            return None
        if not self._within_limit(len(gone), "datasets"):
            return None
        return gone if self._plausible(len(gone), len(sent), left=len(seen)) else None

    def _plausible(self, gone: int, sent: int, *, left: int) -> bool:
        """Return whether so many are likely to be gone, rather than a state or a source."""
        if not gone or self._confirmed:
            return True
        if left and gone <= max(_HANDFUL, sent * _LIKELY_SHARE):
            return True
        self._refuse(
            f"{gone:,} of {sent:,} datasets that were sent are gone",
            f"none is removed; if that is right, run with --max-removals {gone}",
        )
        return False

    def _within_limit(self, count: int, what: str) -> bool:
        most = self._settings.max_removals
        if count > most:
            self._refuse(
                f"{count:,} {what} are gone, more than sync.max_removals ({most:,})",
                "none is removed",
            )
        return count <= most

    def _refuse(self, reason: str, effect: str) -> None:
        self._tally.recorder.warning(f"{reason}: {effect}")

    def _remove_dataset(self, urn: str) -> None:
        _, target, states = self._ends
        if self._dry_run:
            self._tally.of(DATASET).removed += 1
            return
        remote = dataset_or_none(target, urn)
        if remote is not None:
            kept = states.kept(DATASET, urn)
            asked = self._settings.truth.asks
            if asked and was_edited(remote, kept, catalog=target.name):
                reason = "Lumos no longer has it, but people changed it in the catalog: it stays"
                self._tally.recorder.skipped(urn, reason=reason)
                return
            try:
                target.delete(urn)
            except DatasetNotFoundError:
                remote = None
            self._tally.writes += remote is not None
        states.forget(DATASET, [urn])
        self._tally.of(DATASET).removed += 1

    def _remove_edge(self, name: str) -> None:
        if not self._dry_run:
            upstream, downstream, job = edge_ends(name)
            edge = LineageEdge.from_json(
                {"upstream_urn": upstream, "downstream_urn": downstream, "job_urn": job or None}
            )
            self._ends.target.apply(Batch(removed_edges=(edge,)))
            self._ends.states.forget(EDGE, [name])
            self._tally.writes += 1
        self._tally.of(EDGE).removed += 1


def _ends_of(name: str) -> tuple[str, str]:
    return edge_ends(name)[:2]
