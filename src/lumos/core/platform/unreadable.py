"""What a catalog holds and its adapter cannot read: named with its reason, while all else comes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final, NamedTuple, TypeVar

from lumos.core.errors import (
    InvalidModelError,
    LumosError,
    PlatformAnswerError,
    UnexpectedJsonError,
)
from lumos.core.run_report import ItemOutcome, RunRecorder, RunReport

T = TypeVar("T")
R = TypeVar("R")

UNFORESEEN: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What is raised where a conversion meets something of a shape that it does not expect."""
UNFIT: Final = (InvalidModelError, *UNFORESEEN)
"""The same, and what is raised where the result is nothing that Lumos knows."""


class Unreadable(NamedTuple):
    """One thing that a listing passed over."""

    kind: str
    """What it is: `dataset`, `lineage_edge`, or a kind of entity."""
    name: str
    """What the catalog calls it."""
    error: LumosError

    @property
    def item(self) -> str:
        """What a report calls it."""
        return f"{self.kind.replace('_', ' ')} {self.name}"


class UnreadableItems:
    """Gathers, listing by listing, what an adapter came upon and could not read."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], LumosError] = {}

    def __iter__(self) -> Iterator[Unreadable]:
        """Yield what the latest listing of each kind passed over, in order of kind and name."""
        for (kind, name), error in sorted(self._found.items(), key=lambda each: each[0]):
            yield Unreadable(kind, name, error)

    def begin(self, kind: str) -> None:
        """Forget what an earlier listing of a kind found."""
        for known in [key for key in self._found if key[0] == kind]:
            self._found.pop(known, None)

    def add(self, kind: str, name: str, *, error: Exception) -> None:
        """Note something that does not fit; what its text says is not repeated."""
        self._found[kind, name] = as_lumos_error(error)

    def each(
        self,
        kind: str,
        items: Iterable[T],
        read: Callable[[T], R],
        *,
        name: Callable[[T], str],
        also: tuple[type[LumosError], ...] = (),
    ) -> Iterator[R]:
        """Yield what is read of items; one that does not fit is noted, and the next one comes.

        An error of the catalog, such as no answer, is not about one item and is raised.

        Args:
            kind: what they are.
            items: what is read.
            read: reads one.
            name: returns what the catalog calls one.
            also: other errors that are a matter of one item.
        """
        passed: tuple[type[Exception], ...] = (*UNFIT, *also)
        for item in items:
            try:
                result = read(item)
            except passed as error:
                self.add(kind, name(item), error=error)
            else:
                yield result


@contextmanager
def answer_to(request: str) -> Iterator[None]:
    """Name a request in the error for a part of its answer that has the wrong type.

    Raises:
        PlatformAnswerError: a part has.
    """
    try:
        yield
    except UnexpectedJsonError as error:
        raise PlatformAnswerError(
            f"{request}: {error}", hint="check the URL and the catalog's version"
        ) from None


def as_lumos_error(error: Exception) -> LumosError:
    """Return an error for people in place of one of a conversion."""
    if isinstance(error, LumosError):
        return error
    return PlatformAnswerError(
        f"what the catalog holds of it has an unexpected form ({type(error).__name__})",
        hint="look at it in the catalog; what is not read is not taken as removed",
    )


def outcomes(unreadable: Iterable[Unreadable]) -> tuple[ItemOutcome, ...]:
    """Return the lines of reports on things that were not readable, without secrets."""
    recorder = RunRecorder("read", started_at=datetime.min.replace(tzinfo=UTC))
    return tuple(recorder.failed(each.item, each.error) for each in unreadable)


def reading_report(
    operation: str, unreadable: Iterable[Unreadable], *, done: int, at: datetime
) -> RunReport:
    """Return the account of a run that read a catalog."""
    recorder = RunRecorder(operation, started_at=at)
    recorder.done_many(done)
    for each in unreadable:
        recorder.failed(each.item, each.error)
    return recorder.finish(at=at)
