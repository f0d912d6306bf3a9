"""DataHub's own SDK judges what the adapter writes, and makes what it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import JsonValue

import strategies
from datahub_sdk import read_by_lite, verdicts
from doubles.datahub_server import TIMESERIES, datahub_double
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
KINDS = {
    "datasetProperties", "schemaMetadata", "globalTags", "glossaryTerms", "domains", "ownership",
    "upstreamLineage", "datasetProfile", "operation", "assertionInfo", "assertionRunEvent",
    "corpUserInfo", "corpGroupInfo", "tagProperties", "glossaryTermInfo", "domainProperties",
    "dataFlowInfo", "dataJobInfo", "dataJobInputOutput", "containerProperties", "status",
}  # fmt: skip


def measured_dataset() -> LumosDataset:
    """A dataset with all that is measured and checked of one."""
    column = {"path": "customer_id", "type": "INT64", "value_count": 9, "null_count": 1}
    figures = {"null_share": 0.1, "distinct_count": 9, "min": 1, "max": 9, "mean": 5.0}
    quantiles = {"quantiles": [{"share": 0.5, "value": 5}]}
    check = {"name": "id is set", "status": "PASSED", "timestamp": AT}
    return dataset(
        "measured",
        statistics={"row_count": 10, "total_size_bytes": 100, "last_modified": AT},
        profile={
            "profiled_at": AT,
            "row_count": 10,
            "file_count": 1,
            "columns": [{**column, **figures, **quantiles}],
        },
        assertions=[{"name": "id is set", "kind": "not_null", "column": "customer_id"}],
        quality={"checks": [check]},
    )


def emitted(datasets: Iterable[LumosDataset]) -> list[tuple[str, str, JsonValue]]:
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
        (str(entity["urn"]), name, aspect["value"])
        for entity in bodies
        for name, aspect in entity.items()
        if isinstance(aspect, Mapping)
    ]


def drawn_datasets(count: int) -> list[LumosDataset]:
    drawn: list[LumosDataset] = [rich_dataset(), measured_dataset()]

    @settings(
        max_examples=count, deadline=None, suppress_health_check=[*HealthCheck], database=None
    )
    @given(strategies.datasets())
    def draw(one: LumosDataset) -> None:
        drawn.append(one)

    draw()
    return drawn


def test_the_oracle_refuses_what_is_wrong() -> None:
    wrong: list[tuple[str, JsonValue]] = [
        ("schemaMetadata", {"schemaName": "x"}),
        ("status", {"removed": "yes"}),
        ("status", {"removed": False, "colour": "red"}),
        ("nothing", {}),
    ]

    assert None not in verdicts(wrong)


def test_every_payload_is_valid_for_the_sdk() -> None:
    aspects = [(name, value) for _, name, value in emitted(drawn_datasets(200))]
    wrong = [
        (name, verdict)
        for (name, _), verdict in zip(aspects, verdicts(aspects), strict=True)
        if verdict is not None
    ]

    assert {name for name, _ in aspects} >= KINDS
    assert wrong == []


def test_what_is_written_is_read_back_the_same_by_datahubs_lite_store(tmp_path: Path) -> None:
    written = emitted(drawn_datasets(30))
    latest: dict[str, dict[str, JsonValue]] = {}
    for urn, name, value in written:
        if name not in TIMESERIES:  # which a lite store keeps as if they were stated once
            latest.setdefault(urn, {})[name] = value

    told = cast("list[dict[str, Any]]", read_by_lite(tmp_path, written))

    read = {each["urn"]: each["aspects"] for each in told}
    assert latest.keys() <= read.keys()
    differing = [
        (urn, name)
        for urn, aspects in latest.items()
        for name, value in aspects.items()
        if not _holds(read[urn].get(name), value)
    ]
    assert differing == []


def _holds(read: Any, written: Any) -> bool:
    """Tell whether something was read as it was written; defaults of the schema may be added."""
    if isinstance(read, dict) and isinstance(written, dict):
        return all(name in read and _holds(read[name], value) for name, value in written.items())
    if isinstance(read, list) and isinstance(written, list):
        return len(read) == len(written) and all(map(_holds, read, written))
    return bool(read == written)
