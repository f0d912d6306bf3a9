"""The one way in: a request, carried out in a unit of work, gives a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from lumos.core.requests.base import NOBODY, Listener
from lumos.core.requests.registry import AREAS
from lumos.core.runtime.unit_of_work import UnitOfWork

if TYPE_CHECKING:
    from lumos.core.requests.base import Request, StreamedRequest
    from lumos.core.runtime.project import Project

R = TypeVar("R")
S = TypeVar("S")


class Call(NamedTuple):
    """What the function of an operation works with."""

    work: UnitOfWork
    listener: Listener
    dispatcher: Dispatcher
    """For operations that are made of others."""


class Dispatcher:
    """Carries out the requests of one project: for the command line, the SDK and chains alike.

    Between two requests nothing is open: no connection, lease, adapter or Spark.
    """

    def __init__(self, project: Project) -> None:
        self.project = project

    def of(self, file: Path | None) -> Dispatcher:
        """Return the dispatcher of another settings file; of this one where none is given."""
        project = self.project if file is None else self.project.of(file)
        return self if project is self.project else Dispatcher(project)

    def dispatch(self, request: Request[R], listener: Listener = NOBODY) -> R:
        """Carry out a request and close all that it opened, also when it fails.

        Raises:
            LumosError: what failed, and what to do.
        """
        operation = _table(request, "OPERATIONS")[type(request)]
        with UnitOfWork(self.project) as work:
            return cast("R", operation(Call(work, listener, self), request))

    @contextmanager
    def stream(
        self, request: StreamedRequest[object, S], listener: Listener = NOBODY
    ) -> Iterator[S]:
        """Carry out a request whose result may be too large for memory, for a `with` block.

        What it yields is read within the block: `DiffRequest` yields a `StreamedDiff`,
        `ExportRequest` the document in pieces.
        """
        stream = _table(request, "STREAMS")[type(request)]
        with UnitOfWork(self.project) as work:
            opened = cast("AbstractContextManager[S]", stream(Call(work, listener, self), request))
            with opened as found:
                yield found


def _table(request: Request[object], table: str) -> Mapping[type, Callable[..., object]]:
    module = import_module(f"lumos.bootstrap.operations.{AREAS[request.operation]}")
    functions: Mapping[type, Callable[..., object]] = getattr(module, table)
    return functions
