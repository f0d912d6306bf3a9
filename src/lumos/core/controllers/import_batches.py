"""An import into a catalog that takes several datasets, or several calls, at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.errors import DamagedDocumentError
from lumos.core.models import DatasetLineage, LumosDataset, Urn, with_parts
from lumos.core.platform.abilities import Capability, derives_versions
from lumos.core.platform.batch import Batch
from lumos.core.platform.batches import dataset_or_none, together, weighed
from lumos.core.platform.fidelity import Fidelity
from lumos.core.platform.threads import mapped

if TYPE_CHECKING:
    from lumos.core.controllers.publishing import Publisher
    from lumos.core.errors import LumosError
    from lumos.core.platform.interface import MetadataPlatformInterface
    from lumos.feature.snapshot.import_buckets import EdgeChange
    from lumos.feature.snapshot.import_plan import PlannedAction


def takes_batches(platform: MetadataPlatformInterface) -> bool:
    """Tell whether a catalog gains by being told of many datasets or edges at a time.

    One whose versions follow from the history written with each dataset does not.
    """
    most = max(platform.BATCH, platform.EDGE_BATCH, platform.CONCURRENCY)
    return most > 1 and not derives_versions(platform)


class Step(NamedTuple):
    """What an import does to a dataset and to the lineage that leads to it."""

    name: str
    """What a report calls it."""
    urn: Urn
    changes: Sequence[EdgeChange] = ()
    dataset: LumosDataset | None = None
    """What is written; nothing where the dataset stays as it is."""
    action: PlannedAction | None = None
    upstream: Sequence[str] = ()
    """Where lineage leads to it from, once this is done; told of what is written."""

    @property
    def rests(self) -> bool:
        """Whether nothing at all is changed."""
        return self.dataset is None and not self.changes


class _Outcome(NamedTuple):
    """What became of a step, or why nothing did."""

    step: Step
    error: LumosError | None = None


Act = Callable[[Sequence[Step]], Sequence[_Outcome]]


class BatchWriter:
    """Carries out steps: datasets in batches, then lineage, then what the history says of them.

    A batch that is refused is sent one by one, so that one dataset never costs another.
    """

    def __init__(
        self,
        platform: MetadataPlatformInterface,
        publisher: Publisher,
        *,
        workers: int,
        refused: Callable[[str, LumosError], None],
        advance: Callable[[], None],
    ) -> None:
        """Get ready.

        Args:
            platform: where to write.
            publisher: keeps the history, if one is kept.
            workers: how many calls may be under way at once.
            refused: is told what was refused and why; it raises where the run is to end.
            advance: is told of each dataset that was dealt with.
        """
        self._platform = platform
        self._publisher = publisher
        self._workers = workers
        self._refused = refused
        self._advance = advance

    def write(self, steps: Iterable[Step]) -> list[Step]:
        """Carry out steps, and return those that nothing was refused of."""
        resting: list[Step] = []
        size = self._platform.BATCH
        passed = self._passed(self._emit, self._writing(steps, resting), size=size, show=True)
        passed += resting
        done = [step for step in passed if not step.changes]
        done += self._passed(self._lead, filter(_removes, passed), workers=1)
        adding = [step for step in passed if step.changes and not _removes(step)]
        done += self._passed(self._lead, adding, size=self._platform.EDGE_BATCH, weight=_edges)
        return self._recorded(done) if self._publisher.keeps_history else done

    def _writing(self, steps: Iterable[Step], resting: list[Step]) -> Iterator[Step]:
        for step in steps:
            if step.dataset is not None:
                yield step
            else:
                resting.append(step)
                self._advance()

    def _passed(
        self,
        act: Act,
        steps: Iterable[Step],
        *,
        size: int = 1,
        weight: Callable[[Step], int] = lambda _: 1,
        workers: int | None = None,
        show: bool = False,
    ) -> list[Step]:
        """Do something with all steps, and return those that it was not refused for.

        Steps that weigh no more than a size are dealt with together.
        """

        def attempted(some: Sequence[Step]) -> list[_Outcome]:
            return together(act, some, refused=_Outcome)

        passed = []
        ready = weighed(steps, size, weight=weight)
        workers = self._workers if workers is None else workers
        with closing(mapped(attempted, ready, workers=workers)) as outcomes:
            for step, error in chain.from_iterable(outcomes):
                if error is None:
                    passed.append(step)
                else:
                    self._refused(step.name, error)
                if show:
                    self._advance()
        return passed

    def _emit(self, steps: Sequence[Step]) -> list[_Outcome]:
        written = [step.dataset for step in steps if step.dataset is not None]
        self._platform.apply(Batch(datasets=written))
        return [_Outcome(step) for step in steps]

    def _lead(self, steps: Sequence[Step]) -> list[_Outcome]:
        change_edges(self._platform, [change for step in steps for change in step.changes])
        return [_Outcome(step) for step in steps]

    def _recorded(self, steps: Sequence[Step]) -> list[Step]:
        """Add versions of what the catalog holds now, and let it know their numbers."""
        held: dict[Urn, LumosDataset | None] = {}

        def read(some: Sequence[Step]) -> list[_Outcome]:
            for step in some:
                held[step.urn] = self._held(step)
            return [_Outcome(step) for step in some]

        same = [step for step in steps if step.rests]
        numbered: list[Step] = []
        for step in self._passed(read, [step for step in steps if not step.rests]):
            found = held[step.urn]
            try:
                wanted = self._publisher.recorded(found) if found else None
            except DamagedDocumentError as error:  # its history; the catalog has the dataset
                self._refused(step.name, error)
                continue
            if wanted is None:
                same.append(step)
            else:
                numbered.append(step._replace(dataset=self._plain(wanted)))
        return same + self._passed(self._emit, numbered, size=self._platform.BATCH)

    def _held(self, step: Step) -> LumosDataset | None:
        """Return what the catalog holds after a step; asked for where it is not known."""
        if step.dataset is None:
            return dataset_or_none(self._platform, step.urn)
        if Fidelity.DROPPED in self._platform.FIDELITY.values():
            return self._platform.get_dataset(step.urn)
        if Capability.LINEAGE not in self._platform.capabilities:
            return step.dataset
        return with_parts(step.dataset, lineage={"upstream": step.upstream})

    def _plain(self, dataset: LumosDataset) -> LumosDataset:
        keeps_edges = Capability.LINEAGE in self._platform.capabilities
        return with_parts(dataset, lineage=DatasetLineage()) if keeps_edges else dataset


def change_edges(platform: MetadataPlatformInterface, changes: Iterable[EdgeChange]) -> None:
    """Take away the edges that go, then write the others together."""
    every = [*changes]
    if removed := [change.edge for change in every if change.removed]:
        platform.apply(Batch(removed_edges=removed))
    if written := [change.edge for change in every if not change.removed]:
        platform.apply(Batch(edges=written))


def _edges(step: Step) -> int:
    return len(step.changes)


def _removes(step: Step) -> bool:
    return any(change.removed for change in step.changes)
