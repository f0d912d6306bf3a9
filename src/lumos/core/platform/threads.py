"""A bounded number of threads that speak to a catalog, and locks between them."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import copy_context
from threading import Condition
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from concurrent.futures import Executor, Future

T = TypeVar("T")
R = TypeVar("R")


def threads(workers: int) -> ThreadPoolExecutor:
    """Return threads to speak to a catalog with; they end with the block that they are used in."""
    return ThreadPoolExecutor(workers, thread_name_prefix="lumos-catalog")


def mapped(
    act: Callable[[T], R],
    items: Iterable[T],
    *,
    workers: int = 8,
    ahead: int | None = None,
    pool: Executor | None = None,
) -> Generator[R]:
    """Yield what a function makes of each item, in their order, by a bounded number of threads.

    No more items are taken than `ahead`, by default twice the number of threads, ahead of what was
    yielded. The first error ends it, and so does closing it: what had not begun is not done.

    Args:
        act: what to do.
        items: with what.
        workers: how many threads; one is the caller's own.
        ahead: how many items may be taken before they are asked for.
        pool: threads that are shared with others, of which there are as many.
    """
    if workers <= 1:
        yield from map(act, items)
        return
    most = 2 * workers if ahead is None else ahead
    waiting: deque[Future[R]] = deque()
    with nullcontext(pool) if pool else threads(workers) as doing:
        try:
            for item in items:
                waiting.append(doing.submit(copy_context().run, act, item))
                if len(waiting) >= most:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


class KeyedLock:
    """A lock for each key; threads that hold different keys do not wait for each other."""

    def __init__(self) -> None:
        self._held: set[str] = set()
        self._change = Condition()

    @contextmanager
    def hold(self, keys: Iterable[str]) -> Iterator[None]:
        """Wait until all of the keys are free, and hold them for the block; not to be nested."""
        wanted = {*keys}
        with self._change:
            self._change.wait_for(lambda: self._held.isdisjoint(wanted))
            self._held |= wanted
        try:
            yield
        finally:
            with self._change:
                self._held -= wanted
                self._change.notify_all()
