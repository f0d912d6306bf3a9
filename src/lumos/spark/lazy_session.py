"""A session that is opened when it is first needed, and ended while other work goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from contextvars import copy_context
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from lumos.spark.handles import SparkSession

Tell = Callable[[str], None]


class OpenSession(Protocol):
    """Starts Spark for the length of a `with` block."""

    def __call__(self, tell: Tell) -> AbstractContextManager[SparkSession]: ...


class LazySession:
    """Gives a session; Spark starts with the first call, if there is one.

    Args:
        open_session: opens Spark.
        tell: is called with a few words on what is being waited for.
        meanwhile: what will be needed later, and can be made ready while Spark starts.
    """

    def __init__(
        self, open_session: OpenSession, tell: Tell, *, meanwhile: Callable[[], object] = int
    ) -> None:
        self._open = open_session
        self._tell = tell
        self._meanwhile = meanwhile
        self._stack = ExitStack()
        self._session: SparkSession | None = None
        self._end: threading.Thread | None = None
        self._failure: BaseException | None = None

    def __call__(self) -> SparkSession:
        if self._session is None:
            other = threading.Thread(target=self._make_ready, name="lumos-while-spark-starts")
            other.start()
            try:
                self._session = self._stack.enter_context(self._open(self._told))
            finally:
                other.join()
        return self._session

    def end_meanwhile(self) -> None:
        """Let Spark end while the caller goes on without it."""
        if self._session is not None and self._end is None:
            close = partial(copy_context().run, self._close)
            self._end = threading.Thread(target=close, name="lumos-end-of-spark")
            self._end.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._end is None:
            self._stack.__exit__(kind, error, trace)
            return
        self._end.join()
        if self._failure is not None and error is None:
            raise self._failure

    def _make_ready(self) -> None:
        with suppress(Exception):  # it is tried again, and reported, where it is needed
            self._meanwhile()

    def _told(self, text: str) -> None:
        if self._end is None:
            self._tell(text)

    def _close(self) -> None:
        try:
            self._stack.close()
        except BaseException as error:  # noqa: BLE001 - it is raised where the block ends
            self._failure = error
