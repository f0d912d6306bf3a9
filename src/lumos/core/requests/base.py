"""What all requests share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, Self, TypeVar

from pydantic import BaseModel, ConfigDict
from typing_extensions import override

from lumos.core.progress import SILENT, Progress

if TYPE_CHECKING:
    import threading

    from pydantic import JsonValue

R_co = TypeVar("R_co", covariant=True)
S_co = TypeVar("S_co", covariant=True)


class Request(BaseModel, Generic[R_co]):
    """Asks for one operation; a type checker knows the type of its result.

    Frozen, closed, and equal after a round trip through JSON.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    operation: ClassVar[str]
    """The name of the operation, as in `ingest` or `snapshot-create`."""
    result: ClassVar[str]
    """The JSON Schema of the result, a key of `JSON_OUTPUTS`."""
    interim: ClassVar[str | None] = None
    """The JSON Schema of what the listener receives before the result, if anything."""

    @classmethod
    @override
    def __class_getitem__(cls, _result: object) -> type[Self]:
        """Return the class itself: the type of the result is for type checkers alone."""
        return cls

    def to_json(self) -> dict[str, JsonValue]:
        """Return the request as JSON, with the name of its operation."""
        return {"operation": self.operation, **self.model_dump(mode="json")}


class StreamedRequest(Request[R_co], Generic[R_co, S_co]):
    """A request whose result can also be read piece by piece, where it is too large for memory."""


def _ignore(_answer: BaseModel) -> None:
    pass


class Listener(NamedTuple):
    """Who hears what an operation does while it goes on."""

    progress: Progress = SILENT
    on_interim: Callable[[BaseModel], None] = _ignore
    """Receives answers that come before the result: a plan, a refresh, the report of a step."""
    stop: threading.Event | None = None
    """Ends an operation that goes on until it is stopped."""


NOBODY = Listener()
