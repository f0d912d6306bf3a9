"""What an import does to the datasets of another catalog, found out by few requests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from typing_extensions import override

from lumos.core.errors import LumosError
from lumos.core.models import DatasetLineage, LumosDataset, with_parts
from lumos.core.models.base import canonical_json
from lumos.core.platform.abilities import Capability
from lumos.core.platform.batches import dataset_or_none, looked_up
from lumos.core.platform.refusals import REFUSALS
from lumos.core.platform.threads import mapped
from lumos.core.store.snapshots.part_format import dataset_of_line, urn_of_line
from lumos.feature.importing.buckets import BucketPlan, Plans
from lumos.feature.importing.plan import ImportMode, PlannedAction, plan_dataset

if TYPE_CHECKING:
    from lumos.core.platform.interface import MetadataPlatformInterface
    from lumos.feature.importing.marks import ImportMarks


class LookUps(Plans):
    """Plans for the datasets whose turn comes next, from what a catalog returns for many at once.

    That may lack what others attached to them, so a dataset that is not as wanted is asked for as
    a whole, which takes further requests. One that was found or made to be as wanted before, and
    looks the same since, is not.
    """

    def __init__(
        self,
        platform: MetadataPlatformInterface,
        mode: ImportMode,
        *,
        exact: bool,
        workers: int,
        marks: ImportMarks | None = None,
    ) -> None:
        """Get ready.

        Args:
            platform: the catalog to ask.
            mode: what happens to what it has.
            exact: whether datasets lose the lineage that the snapshot does not have.
            workers: how many requests may be under way at once.
            marks: of what datasets looked like that were as wanted.
        """
        self._platform = platform
        self._mode = mode
        self._exact = exact
        self._workers = workers
        self._marks = marks
        self._edges_apart = Capability.LINEAGE in platform.capabilities
        self._plans: dict[str, BucketPlan | LumosError] = {}

    @override
    def of_bucket(self, place: int) -> Callable[[bytes], BucketPlan]:
        return self._plan

    def ahead(self, lines: Sequence[bytes]) -> None:
        """Plan the changes of datasets ahead of time."""
        wanted = {urn_of_line(line).decode(): line for line in lines}
        found = self._looked_up(wanted)
        marks = self._marks.of([*wanted]) if self._marks else {}
        self._plans = {}
        unsure: dict[str, LumosDataset] = {}
        for urn, line in wanted.items():
            seen = found.get(urn)
            plan = self._at_a_glance(line, seen, mark=marks.get(urn))
            if plan is not None:
                self._plans[urn] = plan
            elif isinstance(seen, LumosDataset):
                unsure[urn] = seen
        self._look_closer(wanted, unsure)

    def remember(self, written: Mapping[str, bytes]) -> None:
        """Keep what datasets look like that were made to be as wanted just now."""
        if self._marks and written:
            found = self._looked_up(written)
            self._marks.keep(
                {
                    urn: self._mark(written[urn], seen)
                    for urn, seen in found.items()
                    if isinstance(seen, LumosDataset)
                }
            )

    def _looked_up(self, urns: Iterable[str]) -> dict[str, LumosDataset | LumosError | None]:
        found = looked_up(self._platform, [*urns], workers=self._workers)
        return {
            urn: seen if isinstance(seen, LumosError) else seen.dataset
            for urn, seen in found.items()
        }

    def _plan(self, line: bytes) -> BucketPlan:
        """Return what was found out; that a dataset could not be read is said only now."""
        plan = self._plans.pop(urn_of_line(line).decode())
        if isinstance(plan, LumosError):
            raise plan
        return plan

    def _at_a_glance(
        self, line: bytes, seen: LumosDataset | LumosError | None, *, mark: str | None
    ) -> BucketPlan | LumosError | None:
        """Return the planned change of a dataset, or None where all of it has to be read."""
        if isinstance(seen, LumosError):
            return seen
        if seen is None or self._mode is ImportMode.SKIP_EXISTING:
            return self._compared(line, seen)
        if mark is not None and mark == self._mark(line, seen):
            return BucketPlan(PlannedAction.KEEP)
        if self._mode is ImportMode.OVERWRITE:
            return None  # what others attached to it is to go
        plan = self._compared(line, seen)
        return plan if isinstance(plan, BucketPlan) and plan.action is PlannedAction.KEEP else None

    def _look_closer(self, wanted: Mapping[str, bytes], unsure: Mapping[str, LumosDataset]) -> None:
        as_wanted: dict[str, str] = {}
        with closing(mapped(self._whole, unsure, workers=self._workers)) as wholes:
            for urn, present in zip(unsure, wholes, strict=True):
                plan: BucketPlan | LumosError
                if isinstance(present, LumosError):
                    plan = present
                else:
                    plan = self._compared(wanted[urn], present)
                self._plans[urn] = plan
                if isinstance(plan, BucketPlan) and plan.action is PlannedAction.KEEP:
                    as_wanted[urn] = self._mark(wanted[urn], unsure[urn])
        if self._marks and as_wanted:
            self._marks.keep(as_wanted)

    def _whole(self, urn: str) -> LumosDataset | LumosError | None:
        try:
            return dataset_or_none(self._platform, urn)
        except REFUSALS as error:
            return error

    def _compared(self, line: bytes, present: LumosDataset | None) -> BucketPlan | LumosError:
        try:
            incoming = self._bare(dataset_of_line(line))
            planned = plan_dataset(
                present and self._bare(present),
                incoming,
                mode=self._mode,
                exact=self._exact,
                own_versions=False,
            )
        except REFUSALS as error:
            return error
        return BucketPlan(planned.action, planned.dataset)

    def _bare(self, dataset: LumosDataset) -> LumosDataset:
        """Leave lineage to the edges, where the catalog has any."""
        if not self._edges_apart or dataset.lineage == DatasetLineage():
            return dataset
        return with_parts(dataset, lineage=DatasetLineage())

    def _mark(self, line: bytes, seen: LumosDataset) -> str:
        """Return what is the same as long as the snapshot, the catalog and the mode are."""
        how = f"{self._mode} {self._exact}".encode()
        document = canonical_json(self._bare(seen).to_json())
        return hashlib.sha256(b"\n".join((how, line, document))).hexdigest()
