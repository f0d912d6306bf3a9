"""What went over the wire to and from the OpenMetadata double, by the official model of each."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from doubles.openmetadata_store import Message
from oracle_environments import oracle_python

ORACLES = ("openmetadata_1", "openmetadata_2")
_ORACLE = Path(__file__).with_name("openmetadata_oracle.py")
_OFFICIAL = Path(__file__).with_name("openmetadata_official.py")
_DATA = ("table", "container", "pipeline", "database", "databaseSchema", "glossary", "glossaryTerm")
_PLURALS = {"glossary": "glossaries"}
_FOLDERS = {
    **dict.fromkeys(_DATA, "data"),
    "user": "teams",
    "team": "teams",
    "classification": "classification",
    "tag": "classification",
    "domain": "domains",
    "databaseService": "services",
    "storageService": "services",
    "pipelineService": "services",
}
_SERVICES = "services/"


class Payload(NamedTuple):
    """A value of which a model of OpenMetadata has to approve."""

    model: str
    value: Any
    fields: tuple[str, ...] = ()


def payloads(messages: Iterable[Message]) -> list[Payload]:
    """Return all that was sent and answered, each once, with the model of each."""
    found = (payload for message in messages for payload in _of_message(message))
    return [*{orjson.dumps(each._asdict()): each for each in found}.values()]


def verdicts(oracle: str, asked: Iterable[Payload]) -> list[str | None]:
    """Return for each payload what its model says: None, or what is wrong."""
    lines = [orjson.dumps(each._asdict()) for each in asked]
    judged = subprocess.run(
        [oracle_python(oracle), str(_ORACLE)],
        input=b"\n".join(lines) + b"\n",
        capture_output=True,
        check=True,
    )
    found: list[str | None] = [orjson.loads(line) for line in judged.stdout.splitlines()]
    assert len(found) == len(lines)
    return found


def official_entities(oracle: str) -> list[dict[str, Any]]:
    """Return creating requests that were built with the official models, parents first."""
    made = subprocess.run(
        [oracle_python(oracle), str(_OFFICIAL)], capture_output=True, check=True, timeout=300
    )
    return [orjson.loads(line) for line in made.stdout.splitlines()]


def _collections() -> dict[str, tuple[str, str]]:
    found = {}
    for name, folder in _FOLDERS.items():
        path = _PLURALS.get(name, f"{name}s")
        class_ = name[0].upper() + name[1:]
        prefix = _SERVICES if folder == "services" else ""
        entity = f"entity.{folder}.{name}.{class_}"
        found[prefix + path] = (f"api.{folder}.create{class_}.Create{class_}Request", entity)
    tests = "dataQuality/testCases", "dataQuality/testDefinitions"
    found[tests[0]] = ("api.tests.createTestCase.CreateTestCaseRequest", "tests.testCase.TestCase")
    found[tests[1]] = (
        "api.tests.createTestDefinition.CreateTestDefinitionRequest",
        "tests.testDefinition.TestDefinition",
    )
    return found


COLLECTIONS = _collections()
"""The models of creating requests and of entities, by the path of their collection."""


def _of_message(message: Message) -> Iterable[Payload]:
    match [message.method, *message.path.split("/")]:
        case ["GET", "metadata", "types", "name", _]:
            yield Payload("entity.type.Type", message.answer, _fields(message))
        case ["PUT", "metadata", "types", _]:
            yield Payload("type.customProperty.CustomProperty", message.body)
            yield Payload("entity.type.Type", message.answer)
        case ["GET", "lineage", *_]:
            yield Payload("type.entityLineage.EntityLineage", message.answer)
        case ["PUT", "lineage"]:
            yield Payload("api.lineage.addLineage.AddLineageRequest", message.body)
        case ["PUT", "tables", "bulk"]:
            for body in message.body:
                yield Payload(COLLECTIONS["tables"][0], body)
            yield Payload("type.bulkOperationResult.BulkOperationResult", message.answer)
        case ["PUT", "tables", _, "tableProfile"]:
            yield Payload("api.data.createTableProfile.CreateTableProfileRequest", message.body)
            yield Payload("entity.data.table.Table", message.answer)
        case ["GET", "tables", _, "tableProfile", "latest"]:
            yield Payload("entity.data.table.Table", message.answer)
        case ["GET", "tables", _, ("tableProfile" | "systemProfile") as kind]:
            for each in message.answer["data"]:
                yield Payload(f"entity.data.table.{kind[0].upper()}{kind[1:]}", each)
        case ["POST", "dataQuality", "testCases", "testCaseResults", _]:
            yield Payload("api.tests.createTestCaseResult.CreateTestCaseResult", message.body)
            yield Payload("tests.basic.TestCaseResult", message.answer)
        case _:
            yield from _of_entity(message)


def _of_entity(message: Message) -> Iterable[Payload]:
    found = [each for each in COLLECTIONS if f"{message.path}/".startswith(f"{each}/")]
    if not found or message.method == "DELETE":
        return
    create, entity = COLLECTIONS[found[0]]
    if message.method in {"PUT", "POST"}:
        yield Payload(create, message.body)
    fields = _fields(message)
    if message.path == found[0] and message.method == "GET":
        for each in message.answer["data"]:
            yield Payload(entity, each, fields)
    else:
        yield Payload(entity, message.answer, fields)


def _fields(message: Message) -> tuple[str, ...]:
    return tuple(filter(None, message.query.get("fields", "").split(",")))
