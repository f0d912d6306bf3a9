"""DataHub's own SDK judges what the adapter writes, and makes what it reads."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import JsonValue

import strategies
from datahub_sdk import asked, read_by_lite, verdicts
from doubles.datahub_aspects import ASPECTS
from doubles.datahub_server import TIMESERIES, DataHubDouble, datahub_double
from lumos.core.models import (
    ColumnMapping,
    DatasetLineage,
    GlossaryTerm,
    LumosDataset,
    Snapshot,
    with_parts,
)
from lumos.core.platform.batch import Batch, Identity
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.datahub.mapping.added_by_server import without_added
from lumos.core.platform.impl.datahub.mapping.containers import containers_of
from lumos.core.platform.impl.datahub.mapping.emptied import EMPTIED, emptied
from lumos.core.platform.interface import Entity
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
    "upstreamLineage", "datasetProfile", "operation", "datasetUsageStatistics", "container",
    "subTypes", "deprecation", "institutionalMemory", "structuredProperties", "propertyDefinition",
    "ownershipTypeInfo", "glossaryNodeInfo", "assertionInfo", "assertionRunEvent",
    "corpUserInfo", "corpGroupInfo", "tagProperties", "glossaryTermInfo", "domainProperties",
    "dataFlowInfo", "dataJobInfo", "dataJobInputOutput", "containerProperties", "status",
}  # fmt: skip


BUILT = 60
STAYS = {
    "assertionRunSummary", "corpUserCredentials", "datahubIngestionCheckpoint",
    "datahubIngestionRunSummary", "incidentsSummary", "roleMembership", "storageFeatures",
    "testResults", "usageFeatures", "browsePaths", "browsePathsV2", "upstreamLineage", "status",
}  # fmt: skip
"""Aspects that the server works out or that are its own affair; those whose order or absence says
nothing are compared as Lumos reads them."""


def measured_dataset() -> LumosDataset:
    """A dataset with all that is measured and checked of one."""
    column = {"path": "customer_id", "type": "INT64", "value_count": 9, "null_count": 1}
    figures = {"null_share": 0.1, "distinct_count": 9, "min": 1, "max": 9, "mean": 5.0}
    quantiles = {"quantiles": [{"share": 0.5, "value": 5}]}
    check = {"name": "id is set", "status": "PASSED", "timestamp": AT}
    sizes = {"row_count": 10, "total_size_bytes": 100, "last_modified": AT}
    return dataset(
        "measured",
        kind="TABLE",
        governance={"deprecation": {"note": "old", "sunset": "2024-05-01"}},
        documentation={"links": [{"url": "https://example.org"}]},
        properties={"urn:li:structuredProperty:io.acme.days": 7},
        ownership=[{"user": "ada", "type": "AUDITOR"}],
        statistics={**sizes, "query_count": 3, "last_queried": AT},
        profile={
            "profiled_at": AT,
            "row_count": 10,
            "file_count": 1,
            "columns": [{**column, **figures, **quantiles}],
        },
        assertions=[
            {"name": "id is set", "kind": "not_null", "column": "customer_id"},
            {"name": "ids differ", "kind": "unique", "column": "customer_id"},
            {"name": "adds up", "kind": "sql", "expression": "sum(a) = sum(b)"},
        ],
        quality={"checks": [check]},
    )


def emitted(datasets: Iterable[LumosDataset]) -> list[tuple[str, str, JsonValue]]:
    """Return every aspect that a server got when it was told of these and of all entities."""
    with datahub_double() as (url, server), DataHubHandler.from_config({"gms_server": url}) as one:
        for each in datasets:
            one.emit_dataset(each)
        for make in ENTITY_MAKERS.values():
            for name in HOSTILE_NAMES.values():
                one.apply(Batch(entities=[make(name)]))
        mapping = ColumnMapping(upstream_column="a'b", downstream_column="c", transformation="f(a)")
        parts = {"provenance": "sql", "created_at": AT, "created_by": "ada"}
        one.apply(
            Batch(edges=[edge(dataset("a"), dataset("b"), column_mappings=(mapping,), **parts)])
        )
        one.apply(Batch(entities=[GlossaryTerm(name="order", parent="sales")]))
        one.apply(Batch(identities=[Identity(dataset().urn, "other", "x")]))
        one.apply(Batch(extensions={"other": {"x": 1}}))
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


def test_aspects_that_were_emptied_are_valid_for_the_sdk() -> None:
    here = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/customers,PROD)"
    aspects: list[tuple[str, JsonValue]] = [(name, emptied(name, here)) for name in EMPTIED]

    assert verdicts(aspects) == [None] * len(EMPTIED)


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


def test_the_double_knows_the_aspects_that_datahub_has() -> None:
    (kinds,) = cast("list[dict[str, list[str]]]", asked("kinds"))

    assert {kind.lower(): {*names} for kind, names in kinds.items()} == ASPECTS


def test_containers_have_the_names_that_datahubs_own_connectors_give_them() -> None:
    place: dict[str, JsonValue] = {"env": "PROD", "backcompat_env_as_instance": True}
    keys: list[tuple[str, list[tuple[str, dict[str, JsonValue]]]]] = [
        ("postgres,shop.public.orders", [
            ("DatabaseKey", {"database": "shop"}),
            ("SchemaKey", {"database": "shop", "schema": "public"}),
        ]),
        ("mysql,shöp.orders", [("DatabaseKey", {"database": "shöp"})]),
        ("s3,lake/raw/orders", [("BucketKey", {"bucket_name": "lake"})]),
        ("bigquery,proj.sales.orders", [
            ("ProjectIdKey", {"project_id": "proj"}),
            ("BigQueryDatasetKey", {"project_id": "proj", "dataset_id": "sales"}),
        ]),
    ]  # fmt: skip
    lines: list[JsonValue] = [
        [key, {**place, "platform": name.split(",")[0], **parts}]
        for name, levels in keys
        for key, parts in levels
    ]

    made = [
        container.urn
        for name, _ in keys
        for container in containers_of(f"urn:li:dataset:(urn:li:dataPlatform:{name},PROD)")
    ]

    assert made == asked("keys", lines=lines)


def test_what_the_sdk_makes_is_exported_imported_and_comes_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    built = cast("list[dict[str, Any]]", asked("build", str(BUILT)))
    with (
        datahub_double() as (here, one),
        datahub_double() as (there, two),
        DataHubHandler.from_config({"gms_server": here}) as first,
        DataHubHandler.from_config({"gms_server": there}) as other,
    ):
        for entity in built:
            associations = entity["aspects"].get("domains", {}).get("domainAssociations")
            if associations is not None:
                named = dict.fromkeys(each["domain"] for each in associations)
                entity["aspects"]["domains"]["domains"] = [*named]  # others are refused
            if definition := entity["aspects"].get("propertyDefinition"):
                definition["qualifiedName"] = entity["urn"].rpartition(":")[2]  # has no spaces
                definition.pop("allowedPlatforms", None)  # with which few may have it
            one.put(entity["urn"], **entity["aspects"])
        exported = first.export_all(at=AT)
        _put(other, Snapshot.from_json(exported.to_json()))
        again = other.export_all(at=AT)

    came = {each.urn: each for each in again.datasets}
    equal = sum(came.get(each.urn) == each for each in exported.datasets)
    with capsys.disabled():
        share = 100 * equal / len(exported.datasets)
        told = f"{equal}/{len(exported.datasets)} datasets equal ({share:.1f} %)"
        sys.stdout.write(f"\ndatahub, built with its SDK: {told}\n")
    assert len(exported.datasets) == BUILT + 1
    assert share >= 99
    assert again.to_json() == exported.to_json()
    assert _differing(one, two) == []


def _put(platform: DataHubHandler, snapshot: Snapshot) -> None:
    """Write a snapshot in the order in which an import does."""
    extensions = cast("dict[str, JsonValue]", snapshot.to_json()["extensions"])
    for name, value in extensions.items():
        platform.apply(Batch(definitions={name: value}))
    entities: list[Entity] = [*snapshot.users, *snapshot.groups, *snapshot.tags]
    entities += [*snapshot.glossary, *snapshot.domains]
    for entity in entities:
        platform.apply(Batch(entities=[entity]))
    platform.apply(
        Batch(datasets=[with_parts(one, lineage=DatasetLineage()) for one in snapshot.datasets])
    )
    for job in snapshot.jobs:
        platform.apply(Batch(entities=[job]))
    for each in snapshot.lineage_edges:
        platform.apply(Batch(edges=[each]))
    for name, value in extensions.items():
        platform.apply(Batch(extensions={name: value}))


def _differing(one: DataHubDouble, two: DataHubDouble) -> list[tuple[str, str]]:
    """Return the aspects of one server that the other does not hold as they are."""
    held: dict[str, dict[str, Any]] = {}
    for urn, aspects in two.stored.items():
        held[urn] = {name: _without_stash(value) for name, (value, _) in aspects.items()}
    found = [
        (urn, name)
        for urn, aspects in one.stored.items()
        for name, (value, _) in aspects.items()
        if name not in STAYS
        and not name.endswith("Key")
        and not _holds(held.get(urn, {}).get(name), without_added(name, value))
    ]
    series = [
        (urn, name)
        for urn, aspects in one.series.items()
        for name, moments in aspects.items()
        if two.series.get(urn, {}).get(name) != moments and name not in STAYS
    ]
    return found + series


def _without_stash(value: Any) -> Any:
    custom = value.get("customProperties") if isinstance(value, dict) else None
    if not custom or "lumos" not in custom:
        return value
    return {**value, "customProperties": {key: custom[key] for key in custom if key != "lumos"}}
