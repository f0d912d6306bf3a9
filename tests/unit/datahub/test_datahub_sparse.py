"""What DataHub knows little of migrates too: names alone, columns without a table, odd types."""

from __future__ import annotations

from typing import Any

import pytest

from doubles.datahub_server import DataHubDouble, datahub_double
from lumos.core.models import Domain, GlossaryTerm, Tag, User
from lumos.core.platform.batch import Batch
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.datahub.mapping.fields import read_type
from lumos.testing.platform_samples import AT

NAMED = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/{},PROD)"
HERE, OTHER = NAMED.format("here"), NAMED.format("other")


def field(dataset: str, name: str) -> str:
    return f"urn:li:schemaField:({dataset},{name})"


COLUMNS: dict[str, Any] = {
    "upstreams": [],
    "fineGrainedLineages": [
        {
            "upstreamType": "FIELD_SET",
            "upstreams": [field(OTHER, "email")],
            "downstreamType": "FIELD",
            "downstreams": [field(HERE, "mail")],
            "confidenceScore": 1.0,
        }
    ],
}


def only_named(server: DataHubDouble, urn: str, key: str) -> None:
    server.put(urn)
    assert server.stored[urn].keys() >= {key}


def test_a_dataset_of_which_only_the_name_or_the_status_is_known_is_listed(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    only_named(server, HERE, "datasetKey")
    server.put(OTHER, status={"removed": False})
    server.put(NAMED.format("gone"), status={"removed": True})
    server.put(NAMED.format("end"), upstreamLineage={"upstreams": [{"dataset": HERE}]})

    assert [each.name for each in platform.list()] == ["here", "other"]
    assert platform.get_dataset("lumos://s3/lake/here").name == "here"
    with datahub_double() as (url, other), DataHubHandler.from_config({"gms_server": url}) as two:
        two.apply(Batch(datasets=[*platform.list()]))
        assert [each.name for each in two.list()] == ["here", "other"]
        assert HERE in other.stored


def test_tags_terms_domains_and_users_that_have_only_a_name_are_kept(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    only_named(server, "urn:li:tag:gold", "tagKey")
    only_named(server, "urn:li:glossaryTerm:Order", "glossaryTermKey")
    only_named(server, "urn:li:domain:sales", "domainKey")
    server.put("urn:li:corpuser:ada", status={"removed": False})
    server.put("urn:li:tag:gone", status={"removed": True})
    only_named(server, "urn:li:dataJob:(urn:li:dataFlow:(airflow,daily,PROD),load)", "dataJobKey")

    exported = platform.export_all(at=AT)

    assert exported.tags == (Tag(name="gold"),)
    assert exported.glossary == (GlossaryTerm(name="Order"),)
    assert exported.domains == (Domain(name="sales"),)
    assert exported.users == (User(username="ada"),)
    assert [(each.urn, each.type) for each in exported.jobs] == [
        ("lumos://airflow/daily/load", None)
    ]


def test_column_lineage_from_a_dataset_that_is_no_table_upstream_is_an_edge(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    for urn in (HERE, OTHER):
        server.put(urn, datasetProperties={"name": urn[-12:]})
    server.put(HERE, upstreamLineage=COLUMNS)

    (edge,) = platform.list_edges()
    extensions = platform.extensions()

    assert (edge.upstream_urn, edge.downstream_urn) == (
        "lumos://s3/lake/other",
        "lumos://s3/lake/here",
    )
    assert [(each.upstream_column, each.downstream_column) for each in edge.column_mappings] == [
        ("email", "mail")
    ]
    with datahub_double() as (url, other), DataHubHandler.from_config({"gms_server": url}) as two:
        two.apply(Batch(datasets=[*platform.list()]))
        two.apply(Batch(edges=[edge]))
        two.apply(Batch(extensions=extensions))
        assert other.stored[HERE]["upstreamLineage"][0] == COLUMNS  # no table lineage is invented
        assert [*two.list_edges()] == [edge]

    platform.apply(Batch(removed_edges=[edge]))
    assert [*platform.list_edges()] == []


@pytest.mark.parametrize(
    ("platform_name", "native", "word", "expected"),
    [
        ("s3", "int8", "NumberType", {"type": "INT8"}),
        ("s3", "int64", "NumberType", {"type": "INT64"}),
        ("gcs", "double", "NumberType", {"type": "DOUBLE"}),
        ("gcs", "number", "NumberType", {"type": "DOUBLE"}),
        ("gcs", "integer", "NumberType", {"type": "INT64"}),
        ("s3", "decimal128(10, 2)", "NumberType", {"type": "DECIMAL", "precision": 10, "scale": 2}),
        ("s3", "timestamp[us]", "TimeType", {"type": "TIMESTAMP"}),
        ("postgres", "int8", "NumberType", {"type": "INT64"}),
        ("clickhouse", "Int8", "NumberType", {"type": "INT8"}),
        ("clickhouse", "UInt64", "NumberType", {"type": "UINT64"}),
        ("clickhouse", "Float64", "NumberType", {"type": "DOUBLE"}),
        ("clickhouse", "Nullable(String)", "StringType", {"type": "STRING"}),
        ("clickhouse", "LowCardinality(Nullable(String))", "StringType", {"type": "STRING"}),
        ("clickhouse", "Nullable(Decimal(10, 2))", "NumberType",
         {"type": "DECIMAL", "precision": 10, "scale": 2}),
        ("clickhouse", "Decimal64(4)", "NumberType", {"type": "DECIMAL"}),
        ("clickhouse", "DateTime64(3)", "TimeType", {"type": "TIMESTAMP"}),
        ("clickhouse", "FixedString(16)", "StringType", {"type": "STRING", "length": 16}),
        ("oracle", "LONG", "NumberType", {"type": "STRING"}),
        ("oracle", "LONG RAW", "BytesType", {"type": "BINARY"}),
        ("oracle", "VARCHAR2(20)", "StringType", {"type": "STRING", "length": 20}),
        ("hive", "long", "NumberType", {"type": "INT64"}),
        ("dbt", "FLOAT64", "NumberType", {"type": "DOUBLE"}),
        ("dbt", "BIGNUMERIC", "NumberType", {"type": "DECIMAL"}),
    ],
)  # fmt: skip
def test_native_types_mean_what_they_mean_on_their_platform(
    platform_name: str, native: str, word: str, expected: dict[str, Any]
) -> None:
    found = read_type(native, word, platform=platform_name)
    assert found == {**expected, "native_type": native}


def test_the_platform_of_a_schema_decides_what_its_types_mean(
    platform: DataHubHandler, server: DataHubDouble
) -> None:
    urn = "urn:li:dataset:(urn:li:dataPlatform:oracle,shop.orders,PROD)"
    row = {
        "fieldPath": "note",
        "nativeDataType": "LONG",
        "type": {"type": {"com.linkedin.schema.NumberType": {}}},
    }
    schema = {"schemaName": "x", "platform": "urn:li:dataPlatform:oracle", "fields": [row]}
    server.put(urn, datasetProperties={"name": "orders"}, schemaMetadata=schema)

    (found,) = platform.list()

    assert found.schema.fields[0].type == "STRING"
