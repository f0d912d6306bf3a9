"""Datasets become aspects of DataHub and come back; what others wrote stays as it was."""

from __future__ import annotations

from typing import Any, cast

import orjson
from hypothesis import given
from hypothesis import strategies as st

import strategies
from lumos.core.models import DatasetLineage, LineageEdge, LumosDataset, TypeName, Urn, with_parts
from lumos.core.platform.impl.datahub.mapping.aspects import DatasetConversion
from lumos.core.platform.impl.datahub.mapping.fields import column_fields, come_back, wire_fields
from lumos.core.platform.impl.datahub.mapping.lineage import read_edges, with_edges
from lumos.core.platform.impl.datahub.mapping.residue import residue, restored
from lumos.core.platform.impl.datahub.mapping.urns import (
    dataset_urn,
    job_urn,
    lumos_dataset_urn,
    lumos_job_urn,
    simple_name,
    simple_urn,
)
from lumos.testing.platform_samples import dataset, rich_dataset
from lumos.testing.strategies import fields, urns

PRODUCTION = DatasetConversion("PROD")
ORDERS = "urn:li:dataset:(urn:li:dataPlatform:postgres,shop.public.orders,PROD)"
ACTOR = {"time": 1700000000000, "actor": "urn:li:corpuser:ada"}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "fieldPath", "a", "b"]), inner, max_size=3)
    ),
    max_leaves=12,
)
FOREIGN: dict[str, Any] = {
    "datasetKey": {"platform": "urn:li:dataPlatform:postgres", "name": "x", "origin": "PROD"},
    "datasetProperties": {
        "name": "orders",
        "qualifiedName": "SHOP.PUBLIC.ORDERS",
        "description": "ingested",
        "customProperties": {"team": "shop"},
        "externalUrl": "https://example.org/orders",
    },
    "editableDatasetProperties": {"description": "written by people", "created": ACTOR},
    "browsePathsV2": {"path": [{"id": "shop"}]},
    "dataPlatformInstance": {
        "platform": "urn:li:dataPlatform:postgres",
        "instance": "urn:li:dataPlatformInstance:(urn:li:dataPlatform:postgres,eu)",
    },
    "container": {"container": "urn:li:container:0123"},
    "schemaMetadata": {
        "schemaName": "shop.public.orders",
        "platform": "urn:li:dataPlatform:postgres",
        "version": 3,
        "hash": "abc",
        "platformSchema": {"com.linkedin.schema.MySqlDDL": {"tableSchema": "create table"}},
        "fields": [
            {
                "fieldPath": "id",
                "nullable": False,
                "type": {"type": {"com.linkedin.schema.NumberType": {}}},
                "nativeDataType": "BIGINT()",
                "label": "kept",
            },
            {
                "fieldPath": "price",
                "type": {"type": {"com.linkedin.schema.NumberType": {}}},
                "nativeDataType": "numeric(10,2)",
                "nullable": True,
            },
            {
                "fieldPath": "[version=2.0].[type=struct].[type=array].[type=struct].items",
                "type": {"type": {"com.linkedin.schema.ArrayType": {"nestedType": ["struct"]}}},
                "nativeDataType": "array<struct<sku:string>>",
                "nullable": True,
            },
            {
                "fieldPath": "[version=2.0].[type=struct].[type=array].[type=struct].items"
                ".[type=string].sku",
                "type": {"type": {"com.linkedin.schema.StringType": {}}},
                "nativeDataType": "string",
                "nullable": True,
            },
        ],
        "primaryKeys": ["id"],
    },
    "editableSchemaMetadata": {
        "editableSchemaFieldInfo": [
            {
                "fieldPath": "price",
                "description": "in euros",
                "globalTags": {"tags": [{"tag": "urn:li:tag:money"}]},
            }
        ]
    },
    "globalTags": {"tags": [{"tag": "urn:li:tag:gold", "context": "{}"}]},
    "glossaryTerms": {"terms": [{"urn": "urn:li:glossaryTerm:Order"}], "auditStamp": ACTOR},
    "ownership": {
        "owners": [
            {"owner": "urn:li:corpuser:ada", "type": "DATAOWNER"},
            {
                "owner": "urn:li:corpGroup:shop",
                "type": "CUSTOM",
                "typeUrn": "urn:li:ownershipType:3f2b-aa",
            },
        ],
        "lastModified": ACTOR,
    },
    "structuredProperties": {
        "properties": [
            {"propertyUrn": "urn:li:structuredProperty:io.acme.days", "values": [{"double": 7.0}]}
        ]
    },
    "forms": {"incompleteForms": [], "completedForms": [{"urn": "urn:li:form:x"}]},
    "siblings": {"siblings": ["urn:li:dataset:(x)"], "primary": True},
}


def sent(given_: LumosDataset) -> dict[str, Any]:
    """Return aspects as they come back from a server."""
    aspects = PRODUCTION.aspects(given_.to_json())
    return cast("dict[str, Any]", orjson.loads(orjson.dumps(aspects)))


def read(aspects: dict[str, Any], urn: str = ORDERS) -> LumosDataset:
    return LumosDataset.from_json(PRODUCTION.document(urn, aspects))


@given(strategies.datasets())
def test_any_dataset_comes_back_from_its_aspects(emitted: LumosDataset) -> None:
    alone = with_parts(emitted, lineage=DatasetLineage())

    assert read(sent(alone), PRODUCTION.datahub_urn(alone.urn)) == alone


@given(strategies.datasets())
def test_what_is_converted_is_shared_and_stays_as_it_is(emitted: LumosDataset) -> None:
    before = orjson.dumps(emitted.document)
    PRODUCTION.aspects(emitted.document)
    PRODUCTION.series(emitted.document)
    assert orjson.dumps(emitted.document) == before == orjson.dumps(emitted.to_json())


@given(json_values, json_values)
def test_a_residue_gives_back_any_document(found: Any, wanted: Any) -> None:
    left = orjson.loads(orjson.dumps(residue(found, wanted)))

    assert (
        orjson.dumps(restored(found, left)) == orjson.dumps(wanted)
        or residue(restored(found, left), wanted) is None
    )


@given(st.data())
def test_columns_that_are_certain_to_come_back_do(data: st.DataObject) -> None:
    columns = [field.to_json() for field in data.draw(fields())]
    columns += [{"name": f"a {name}", "type": name, "nullable": True} for name in TypeName]
    certain = [column for column in columns if come_back([column])]

    assert len(certain) >= len(TypeName) - len({"ARRAY", "MAP", "STRUCT", "UNION", "ENUM"})
    assert column_fields(wire_fields(certain)) == certain


def test_what_others_wrote_is_read_with_edits_before_what_was_ingested() -> None:
    found = read(FOREIGN)

    assert found.urn == "lumos://postgres/shop/public/orders"
    assert found.documentation.description == "written by people"
    by_name = {field.name: field for field in found.schema.fields}
    assert by_name["id"].signature() == "INT64"
    assert by_name["price"].signature() == "DECIMAL(10,2)"
    assert (by_name["price"].description, by_name["price"].tags) == ("in euros", ("money",))
    assert by_name["items"].signature() == "ARRAY<STRUCT<sku: STRING>>"
    assert found.schema.primary_key == ("id",)
    assert found.tags == ("gold",)
    assert {owner.name for owner in found.ownership.owners} == {"ada", "shop"}
    assert found.properties["urn:li:structuredProperty:io.acme.days"] == 7.0


def test_what_others_wrote_is_written_back_as_it_was() -> None:
    found = read(FOREIGN)
    written = sent(found)
    del written["datasetProperties"]["customProperties"]["lumos"]
    expected = {name: value for name, value in FOREIGN.items() if name != "datasetKey"}

    assert {name: written[name] for name in expected} == expected
    assert read(sent(found)) == found


def test_a_change_to_what_others_wrote_reaches_the_text_that_people_see() -> None:
    found = read(FOREIGN)
    written = sent(with_parts(found, documentation={"description": "new"}))

    assert written["editableDatasetProperties"]["description"] == "new"
    assert written["editableDatasetProperties"]["created"] == ACTOR
    assert read(written).documentation.description == "new"


def test_a_change_to_a_column_reaches_what_people_see_of_it() -> None:
    document = read(FOREIGN).to_json()
    column = document["schema"]["fields"][1]  # type: ignore[index, call-overload]
    column.update({"description": "in cents", "tags": []})  # type: ignore[union-attr]
    changed = LumosDataset.from_json(document)
    written = sent(changed)

    (info,) = written["editableSchemaMetadata"]["editableSchemaFieldInfo"]
    assert (info["description"], info["globalTags"]["tags"]) == ("in cents", [])
    assert read(written) == changed


def test_an_edit_in_datahub_is_seen_and_takes_nothing_else_along() -> None:
    emitted = rich_dataset()
    aspects = sent(emitted)
    aspects["editableDatasetProperties"] = {"description": "edited"}
    aspects["globalTags"]["tags"].append({"tag": "urn:li:tag:new"})
    aspects["schemaMetadata"]["fields"][1]["description"] = "changed"
    aspects["datasetProperties"]["customProperties"]["partitions"] = "13"

    found = read(aspects, PRODUCTION.datahub_urn(emitted.urn))

    assert found.documentation.description == "edited"
    assert found.documentation.business_context == "Billing"
    assert found.tags == ("gold", "new", "pii")
    assert found.schema.fields[1].description == "changed"
    assert found.schema.fields[1].pii
    assert (found.properties["partitions"], found.properties["retention"]) == ("13", "7y")
    assert found.location == emitted.location
    assert found.quality == emitted.quality


def test_a_stash_that_was_tampered_with_is_a_property_like_any_other() -> None:
    aspects = sent(dataset())
    aspects["datasetProperties"]["customProperties"]["lumos"] = "{broken"

    found = read(aspects, PRODUCTION.datahub_urn(dataset().urn))

    assert found.properties == {"lumos": "{broken"}


@given(urns())
def test_every_urn_of_lumos_comes_back_from_datahub(urn: Urn) -> None:
    assert lumos_dataset_urn(dataset_urn(urn)) == urn
    assert lumos_job_urn(job_urn(urn)) == urn


@given(st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=30))
def test_every_urn_of_datahub_comes_back_from_lumos(name: str) -> None:
    for platform in ("postgres", "s3"):
        for environment in ("PROD", "DEV"):
            there = f"urn:li:dataset:(urn:li:dataPlatform:{platform},{name},{environment})"
            assert dataset_urn(lumos_dataset_urn(there)) == there
    assert simple_name(simple_urn("tag", name)) == name


def test_names_of_datahub_are_what_its_users_expect() -> None:
    assert dataset_urn("lumos://postgres/shop/public/orders") == ORDERS
    assert dataset_urn("lumos://s3/lake/a.b/c").endswith(":s3,lake/a.b/c,PROD)")
    assert dataset_urn("lumos://kafka/payments.settled").endswith(":kafka,payments.settled,PROD)")
    assert dataset_urn("lumos://hive/a.b/c").endswith(":hive,a%2Eb.c,PROD)")
    assert dataset_urn("lumos://postgres/env=DEV/shop/t").endswith(":postgres,shop.t,DEV)")


def test_lineage_of_others_is_read_and_kept_beside_new_edges() -> None:
    first = "urn:li:dataset:(urn:li:dataPlatform:postgres,shop.public.raw,PROD)"
    query = "urn:li:query:1"
    aspect: dict[str, Any] = {
        "upstreams": [{"dataset": first, "type": "COPY", "auditStamp": ACTOR, "query": query}],
        "fineGrainedLineages": [
            {
                "upstreamType": "FIELD_SET",
                "upstreams": [f"urn:li:schemaField:({first},a)", f"urn:li:schemaField:({first},b)"],
                "downstreamType": "FIELD",
                "downstreams": [f"urn:li:schemaField:({ORDERS},c)"],
                "transformOperation": "a + b",
                "confidenceScore": 1.0,
            }
        ],
    }

    (found,) = read_edges(ORDERS, aspect, environment="PROD")
    added = LineageEdge.from_json(
        {"upstream_urn": "lumos://s3/lake/x", "downstream_urn": found.downstream_urn}
    )
    both = with_edges(
        aspect, found.downstream_urn, [added], upstream=added.upstream_urn, environment="PROD"
    )

    assert (found.lineage_type, found.created_by) == ("COPIED", "ada")
    pairs = [(each.upstream_column, each.downstream_column) for each in found.column_mappings]
    assert pairs == [("a", "c"), ("b", "c")]
    assert both["upstreams"][0]["query"] == query  # type: ignore[index,call-overload]
    assert read_edges(ORDERS, both, environment="PROD") == [found, added]
