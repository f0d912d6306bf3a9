"""One Spark for many runs of one process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from lumos.spark.failures import SparkRunError

if TYPE_CHECKING:
    from lumos.spark.handles import SparkSession
    from lumos.spark.lazy_session import OpenSession, Tell


class WarmSession:
    """Opens Spark when it is first needed and keeps it; one that failed is replaced."""

    def __init__(self, open_session: OpenSession) -> None:
        self._open = open_session
        self._stack = ExitStack()
        self._session: SparkSession | None = None

    @contextmanager
    def __call__(self, tell: Tell) -> Iterator[SparkSession]:
        """Yield the session; it goes on afterwards, unless Spark itself failed."""
        if self._session is None:
            self._session = self._stack.enter_context(self._open(tell))
        try:
            yield self._session
        except (SparkRunError, OSError):
            self.close()
            raise

    def close(self) -> None:
        """End the session; the next use opens another one."""
        self._session = None
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
