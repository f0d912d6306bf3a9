"""Requests by the name of their operation."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from lumos.core.errors import UnknownNameError, UsageError
from lumos.core.requests.base import Request

if TYPE_CHECKING:
    from pydantic import JsonValue

_OPERATIONS: Final = {
    "catalog": ("search", "show", "show-trend", "history", "history-blame", "compare"),
    "people": ("ownership-users", "ownership-groups", "ownership-assign", "enrich"),
    "project": (
        "init", "doctor", "state-move", "report", "rules", "engine-start", "engine-stop",
        "engine-status", "demo", "demo-clean", "run",
    ),
    "snapshots": (
        "snapshot-create", "snapshot-list", "snapshot-verify", "snapshot-sign", "snapshot-prune",
        "export", "validate", "import", "diff", "migrate",
    ),
    "sources": ("ingest", "discover", "profile", "sync", "watch"),
    "versions": (
        "version-show", "version-compute", "version-apply", "version-increment", "alerts-list",
        "alerts-send", "alerts-test",
    ),
}  # fmt: skip
AREAS: Final = {name: area for area, names in _OPERATIONS.items() for name in names}
"""The module, here and in `bootstrap.operations`, of each operation."""


def request_class(operation: str) -> type[Request[object]]:
    """Return the request of an operation.

    Raises:
        UnknownNameError: there is no such operation.
    """
    area = AREAS.get(operation)
    if area is None:
        raise UnknownNameError(
            f"there is no operation {operation}", hint=f"known: {', '.join(AREAS)}"
        )
    module = import_module(f"lumos.core.requests.{area}")
    return next(
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, Request)
        and getattr(each, "operation", None) == operation
    )


def request_from_json(document: Mapping[str, JsonValue]) -> Request[object]:
    """Return the request that `Request.to_json` gave.

    Raises:
        UnknownNameError: there is no such operation.
        UsageError: a field is unknown, missing or of another type.
    """
    fields = dict(document)
    kind = request_class(str(fields.pop("operation", "")))
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(f"{kind.operation}: {place}: {first['msg']}") from None
