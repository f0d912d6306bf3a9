"""Every payload of the DataHub adapter is valid for the schema classes of DataHub's own SDK."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import JsonValue

import strategies
from doubles.datahub_server import datahub_double
from lumos.core.models import ColumnMapping, LumosDataset
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.testing.platform_samples import (
    AT,
    ENTITY_MAKERS,
    HOSTILE_NAMES,
    dataset,
    edge,
    rich_dataset,
)

pytestmark = pytest.mark.service
ORACLE = Path(__file__).parents[1] / "datahub_oracle.py"
KINDS = {
    "datasetProperties", "schemaMetadata", "globalTags", "glossaryTerms", "domains", "ownership",
    "upstreamLineage", "datasetProfile", "operation", "assertionInfo", "corpUserInfo",
    "corpGroupInfo", "tagProperties", "glossaryTermInfo", "domainProperties", "dataFlowInfo",
    "dataJobInfo", "dataJobInputOutput", "containerProperties", "propertyDefinition", "status",
}  # fmt: skip
INTERPRETER = "LUMOS_DATAHUB_PYTHON"


@pytest.fixture(scope="module")
def interpreter() -> str:
    """An interpreter that has DataHub's SDK, which Lumos never shares an environment with."""
    given_ = os.environ.get(INTERPRETER)
    if not given_:
        pytest.skip(f"{INTERPRETER} names no interpreter with acryl-datahub")
    return given_


def verdicts(interpreter: str, aspects: Iterable[tuple[str, JsonValue]]) -> list[str | None]:
    lines = [orjson.dumps({"aspect": name, "value": value}) for name, value in aspects]
    judged = subprocess.run(
        [interpreter, str(ORACLE)], input=b"\n".join(lines) + b"\n", capture_output=True, check=True
    )
    found: list[str | None] = [orjson.loads(line) for line in judged.stdout.splitlines()]
    assert len(found) == len(lines)
    return found


def emitted(datasets: Iterable[LumosDataset]) -> list[tuple[str, JsonValue]]:
    """Return every aspect that a server got when it was told of these and of all entities."""
    with datahub_double() as (url, server), DataHubHandler.from_config({"gms_server": url}) as one:
        for each in datasets:
            one.emit_dataset(each)
        for make in ENTITY_MAKERS.values():
            for name in HOSTILE_NAMES.values():
                one.emit_entity(make(name))
        mapping = ColumnMapping(upstream_column="a'b", downstream_column="c", transformation="f(a)")
        parts = {"provenance": "sql", "created_at": AT, "created_by": "ada"}
        one.emit_edge(edge(dataset("a"), dataset("b"), column_mappings=(mapping,), **parts))
        one.emit_identity(dataset().urn, "other", external_id="x")
        one.emit_extension("other", {"x": 1})
        bodies: list[dict[str, Any]] = [
            entity
            for method, target, body in server.requests
            if method == "POST" and "async" in target and body
            for entity in cast("Iterable[dict[str, Any]]", body)
        ]
    return [
        (name, aspect["value"])
        for entity in bodies
        for name, aspect in entity.items()
        if isinstance(aspect, Mapping)
    ]


def test_the_oracle_refuses_what_is_wrong(interpreter: str) -> None:
    wrong: list[tuple[str, JsonValue]] = [
        ("schemaMetadata", {"schemaName": "x"}),
        ("status", {"removed": "yes"}),
        ("status", {"removed": False, "colour": "red"}),
        ("nothing", {}),
    ]

    assert None not in verdicts(interpreter, wrong)


def test_every_payload_is_valid_for_the_sdk(interpreter: str) -> None:
    drawn: list[LumosDataset] = [rich_dataset()]

    @settings(max_examples=200, deadline=None, suppress_health_check=[*HealthCheck], database=None)
    @given(strategies.datasets())
    def draw(one: LumosDataset) -> None:
        drawn.append(one)

    draw()
    aspects = emitted(drawn)
    wrong = [
        (name, verdict)
        for (name, _), verdict in zip(aspects, verdicts(interpreter, aspects), strict=True)
        if verdict is not None
    ]

    assert {name for name, _ in aspects} >= KINDS
    assert wrong == []
