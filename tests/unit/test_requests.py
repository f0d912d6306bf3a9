"""Requests are values: each comes back from JSON, has a schema, a function and a result."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import jsonschema
import pytest
from pydantic import BaseModel

from command_line import SCHEMAS
from lumos.core.controllers.results import JSON_OUTPUTS
from lumos.core.errors import UnknownNameError, UsageError
from lumos.core.requests.base import Request
from lumos.core.requests.registry import AREAS, request_class, request_from_json

SCHEMA = json.loads((SCHEMAS / "request.schema.json").read_text("utf-8"))
VALUES: dict[object, object] = {
    str: "a",
    int: 7,
    float: 0.5,
    Path: Path("folder/file.json"),
    datetime: datetime(2026, 1, 2, tzinfo=UTC),
}


def sample(kind: type[BaseModel], *, optional: bool) -> Any:
    """Return a model with all of its fields, or with those alone that it needs."""
    return kind(
        **{
            name: _value(field.annotation, field.default)
            for name, field in kind.model_fields.items()
            if optional or field.is_required()
        }
    )


def _value(kind: Any, default: object) -> object:
    if get_origin(kind) in (Union, UnionType):
        (kind,) = [each for each in get_args(kind) if each is not NoneType]
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) is tuple:
        return ("a", "b")
    if kind is bool:
        return default is not True
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [*kind][-1]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return sample(kind, optional=True)
    return VALUES[kind]


@pytest.mark.parametrize("operation", AREAS)
def test_a_request_comes_back_from_json_and_fits_the_published_schema(operation: str) -> None:
    kind = request_class(operation)

    for request in (sample(kind, optional=True), sample(kind, optional=False)):
        document = json.loads(json.dumps(request.to_json()))

        assert document["operation"] == operation
        assert request_from_json(document) == request
        jsonschema.validate(document, SCHEMA)


@pytest.mark.parametrize("operation", AREAS)
def test_an_operation_has_a_function_and_a_result_with_a_schema(operation: str) -> None:
    kind = request_class(operation)
    functions = import_module(f"lumos.bootstrap.operations.{AREAS[operation]}")

    assert kind in functions.OPERATIONS
    for name in (kind.result, kind.interim):
        assert name is None or (SCHEMAS / f"{name}.schema.json").exists(), name
        assert name is None or name in JSON_OUTPUTS


def test_every_function_is_of_a_request_in_the_registry() -> None:
    known = {request_class(operation) for operation in AREAS}
    handled: set[type[Request[object]]] = set()
    for area in set(AREAS.values()):
        module = import_module(f"lumos.bootstrap.operations.{area}")
        handled |= {*module.OPERATIONS, *getattr(module, "STREAMS", {})}

    assert handled == known


@pytest.mark.parametrize(
    ("document", "error", "message"),
    [
        ({"operation": "dance"}, UnknownNameError, "there is no operation dance"),
        ({}, UnknownNameError, "there is no operation"),
        ({"operation": "show"}, UsageError, "show: dataset: Field required"),
        ({"operation": "ingest", "fast": True}, UsageError, "ingest: fast: Extra inputs"),
        ({"operation": "search", "limit": "many"}, UsageError, "search: limit: Input should be"),
    ],
)
def test_json_that_is_no_request_is_one_line(
    document: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        request_from_json(document)
