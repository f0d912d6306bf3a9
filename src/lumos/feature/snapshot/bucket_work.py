"""Work on a snapshot bucket by bucket: one function per bucket, whoever calls it.

Here a loop calls it; on Spark, tasks on the executors call the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from typing_extensions import override

Task = TypeVar("Task")
Result = TypeVar("Result")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Codec(Generic[Value]):
    """How a value travels between processes."""

    encode: Callable[[Value], bytes]
    decode: Callable[[bytes], Value]


@dataclass(frozen=True, slots=True)
class BucketWork(Generic[Task, Result]):
    """What is done to each bucket; the kernel depends on nothing but its task.

    `together` says of how many buckets the results may be held at once on their way back.
    """

    kernel: Callable[[Task], Iterable[Result]]
    tasks: Codec[Task]
    results: Codec[Result]
    together: int = 4


class Fact(NamedTuple):
    """A name that is there, or one that is wanted and may be found under any of its places.

    A name that is there has a place only; one that is wanted says of which kind it is.
    """

    space: str
    key: str
    kind: str = ""
    name: str = ""


class FactIndex(Protocol):
    """The facts of all buckets, asked together."""

    def repeated(self, spaces: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield the places, as space and key, that more than one item has, in no order."""

    def missing(self) -> Iterator[tuple[str, str]]:
        """Yield what is wanted, as kind and name, and found nowhere, in no order."""

    def wanted(self) -> dict[str, int]:
        """Return how many different names of each kind are wanted."""


class BucketEngine(Protocol):
    """Who carries work out over buckets."""

    @property
    def reads_parts_only(self) -> bool:
        """Whether what is done to has to lie in files, since others than this process read it."""

    def run(self, work: BucketWork[Task, Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """Yield the results in the order of the tasks, whatever order they are done in.

        Raises:
            LumosError: the first that the kernel raised, in the order of the tasks.
        """

    def check(
        self, work: BucketWork[Task, Result | Fact], tasks: Sequence[Task]
    ) -> tuple[list[Result], FactIndex]:
        """Return the results in the order of the tasks, and an index of the facts among them."""


class LocalEngine(BucketEngine):
    """A loop in this process."""

    @property
    @override
    def reads_parts_only(self) -> bool:
        return False

    @override
    def run(self, work: BucketWork[Task, Result], tasks: Sequence[Task]) -> Iterator[Result]:
        for task in tasks:
            yield from work.kernel(task)

    @override
    def check(
        self, work: BucketWork[Task, Result | Fact], tasks: Sequence[Task]
    ) -> tuple[list[Result], FactIndex]:
        index = _HeldFacts()
        results: list[Result] = []
        for found in self.run(work, tasks):
            if isinstance(found, Fact):
                index.add(found)
            else:
                results.append(found)
        return results, index


class _HeldFacts(FactIndex):
    def __init__(self) -> None:
        self._there: dict[str, set[str]] = {}
        self._repeated: set[tuple[str, str]] = set()
        self._wanted: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {}

    def add(self, fact: Fact) -> None:
        place = (fact.space, fact.key)
        if fact.kind:
            wanted = (fact.kind, fact.name)
            places = self._wanted.get(wanted, ())
            if place not in places:
                self._wanted[wanted] = (*places, place)
            return
        there = self._there.setdefault(fact.space, set())
        if fact.key in there:
            self._repeated.add(place)
        there.add(fact.key)

    @override
    def repeated(self, spaces: Collection[str]) -> Iterator[tuple[str, str]]:
        return (place for place in self._repeated if place[0] in spaces)

    @override
    def missing(self) -> Iterator[tuple[str, str]]:
        nothing: set[str] = set()
        for wanted, places in self._wanted.items():
            if not any(key in self._there.get(space, nothing) for space, key in places):
                yield wanted

    @override
    def wanted(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for kind, _ in self._wanted:
            counts[kind] = counts.get(kind, 0) + 1
        return counts


LOCAL = LocalEngine()
