"""What others left in a DataHub and does not fit the model: kept as it is, and in nobody's way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

import pytest
from pydantic import JsonValue

from doubles.datahub_rules import mutated
from doubles.datahub_server import DataHubDouble, datahub_double
from lumos.core.models import LineageEdge
from lumos.core.models.base import canonical_json
from lumos.core.platform.batch import Batch
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.datahub.settings import DataHubSettings

Json = dict[str, "JsonValue"]
HERE = "urn:li:dataset:(urn:li:dataPlatform:postgres,shop.public.orders,PROD)"
OTHER = "urn:li:dataset:(urn:li:dataPlatform:postgres,shop.public.customers,PROD)"
LUMOS = "lumos://postgres/shop/public/"
STAMP: Json = {"time": 0, "actor": "urn:li:corpuser:etl"}
SCHEMA: Json = {
    "schemaName": "x",
    "platform": "urn:li:dataPlatform:postgres",
    "version": 0,
    "hash": "",
    "platformSchema": {"com.linkedin.schema.OtherSchema": {"rawSchema": ""}},
}


def field(path: str, **more: JsonValue) -> Json:
    kind: Json = {"type": {"com.linkedin.schema.StringType": {}}}
    return {"fieldPath": path, "nullable": True, "type": kind, "nativeDataType": "text", **more}


def upstream(urn: str, **more: JsonValue) -> Json:
    return {"dataset": urn, "type": "TRANSFORMED", "auditStamp": STAMP, **more}


ODD: Mapping[str, Json] = {
    "a column without a name": {"schemaMetadata": {**SCHEMA, "fields": [field(""), field("id")]}},
    "a column of a broken tag": {
        "schemaMetadata": {
            **SCHEMA,
            "fields": [field("id", globalTags={"tags": [{"tag": "urn:li:tag:"}]})],
        }
    },
    "a term without a name": {
        "glossaryTerms": {
            "terms": [{"urn": "urn:li:glossaryTerm:"}, {"urn": "urn:li:glossaryTerm:x"}],
            "auditStamp": STAMP,
        }
    },
    "an owner without a name": {
        "ownership": {
            "owners": [
                {"owner": "urn:li:corpuser:", "type": "DATAOWNER"},
                {"owner": "urn:li:corpuser:ann", "type": "DATAOWNER"},
            ],
            "lastModified": STAMP,
        }
    },
    "a blank name": {"datasetProperties": {"customProperties": {}, "name": "   "}},
    "a far end": {
        "deprecation": {
            "deprecated": True,
            "note": "",
            "actor": "urn:li:corpuser:x",
            "decommissionTime": 10**17,
        }
    },
    "itself": {"upstreamLineage": {"upstreams": [upstream(HERE), upstream(OTHER)]}},
    "a far time": {
        "upstreamLineage": {"upstreams": [upstream(OTHER, auditStamp={**STAMP, "time": 9**18})]}
    },
    "something else upstream": {
        "upstreamLineage": {"upstreams": [upstream("urn:li:chart:(looker,1)"), upstream(OTHER)]}
    },
}


@pytest.fixture
def running() -> Iterator[tuple[str, DataHubDouble]]:
    with datahub_double() as running:
        yield running


@pytest.fixture
def platform(running: tuple[str, DataHubDouble]) -> Iterator[DataHubHandler]:
    settings = DataHubSettings.model_validate({"gms_server": running[0]})
    with DataHubHandler(settings) as platform:
        yield platform


@pytest.mark.parametrize("case", ODD)
def test_an_odd_value_travels_with_its_dataset_and_comes_back(
    running: tuple[str, DataHubDouble], platform: DataHubHandler, case: str
) -> None:
    double = running[1]
    plain: Json = {"datasetProperties": {"customProperties": {}, "name": "orders"}}
    before = {**plain, **ODD[case]}
    double.put(HERE, **before)
    double.put(OTHER, **plain)
    datasets, edges = [*platform.list()], [*platform.list_edges()]
    extensions = platform.extensions()
    assert [each.urn for each in datasets] == [f"{LUMOS}customers", f"{LUMOS}orders"]
    assert platform.unreadable() == ()
    assert platform.get_dataset(f"{LUMOS}orders").lineage == datasets[1].lineage

    double.clear()
    platform.apply(Batch(datasets=datasets))
    platform.apply(Batch(edges=edges))
    for name, value in extensions.items():
        platform.apply(Batch(extensions={name: value}))
    assert [*platform.list()] == datasets
    assert [*platform.list_edges()] == edges
    assert platform.extensions() == extensions
    after = double.answer("POST", "/openapi/v3/entity/dataset/batchGet", [{"urn": HERE}])[1][0]
    for name in ODD[case].keys() - {"datasetProperties"}:
        assert _sorted(after[name]["value"]) == _sorted(
            mutated(name, cast("Json", before[name]), None)
        )


def _sorted(aspect: JsonValue) -> JsonValue:
    """Return lineage in one order; that of upstream datasets says nothing."""
    if isinstance(aspect, dict) and isinstance(rows := aspect.get("upstreams"), list):
        return {**aspect, "upstreams": sorted(rows, key=canonical_json)}
    return aspect


def test_what_fits_of_a_list_is_modelled(
    running: tuple[str, DataHubDouble], platform: DataHubHandler
) -> None:
    for case in ("a column without a name", "a term without a name", "an owner without a name"):
        running[1].put(HERE, datasetProperties={"customProperties": {}}, **ODD[case])
    (found,) = platform.list()
    assert [column.name for column in found.schema.fields] == ["id"]
    assert found.governance.glossary_terms == ("x",)
    assert [owner.name for owner in found.ownership.owners] == ["ann"]


def test_a_dataset_that_reads_itself_keeps_that_when_its_lineage_is_written(
    running: tuple[str, DataHubDouble], platform: DataHubHandler
) -> None:
    double = running[1]
    double.put(HERE, datasetProperties={"customProperties": {}}, **ODD["itself"])
    double.put(OTHER, datasetProperties={"customProperties": {}})
    (edge,) = platform.list_edges()
    platform.apply(Batch(removed_edges=[edge]))
    ends = {"upstream_urn": f"{LUMOS}new", "downstream_urn": f"{LUMOS}orders"}
    platform.apply(Batch(edges=[LineageEdge.from_json(ends)]))
    after = double.answer("POST", "/openapi/v3/entity/dataset/batchGet", [{"urn": HERE}])[1][0]
    upstreams = {each["dataset"] for each in after["upstreamLineage"]["value"]["upstreams"]}
    assert upstreams == {HERE, HERE.replace("orders", "new")}


def test_entities_without_a_name_are_told_and_stay_in_the_extension(
    running: tuple[str, DataHubDouble], platform: DataHubHandler
) -> None:
    running[1].put("urn:li:tag:", tagProperties={"name": " ", "colorHex": "#fff"})
    running[1].put("urn:li:tag:fine", tagProperties={"name": "fine"})
    assert [tag.name for tag in platform.list_entities("tag")] == ["fine"]  # type: ignore[union-attr]
    assert [(each.kind, each.name) for each in platform.unreadable()] == [("tag", "urn:li:tag:")]
    kept = platform.extensions()["datahub"]
    assert isinstance(kept, dict)
    assert "urn:li:tag:" in str(kept["entities"])
