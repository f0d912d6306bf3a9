"""What others wrote to Atlas: read whole, moved without loss, never changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from atlas_payloads import CLASSIFICATIONS, payloads
from doubles.atlas_server import AtlasServer, atlas_at
from doubles.atlas_store import Json, obj, objs
from lumos.core.models import DatasetKind, DatasetLineage, LumosDataset, with_parts
from lumos.core.platform.batch import Batch, Seen
from lumos.core.platform.impl.atlas.handler import AtlasHandler
from lumos.core.platform.impl.atlas.mapping.foreign import TABLE_TYPES
from lumos.testing.platform_samples import AT, rich_dataset

ORDERS = "lumos://hive/sales.orders@prod"


@pytest.fixture(scope="module")
def filled() -> Iterator[AtlasServer]:
    with AtlasServer() as server:
        server.store.define(CLASSIFICATIONS, anew=True)
        server.store.put(payloads())
        yield server


@pytest.fixture(scope="module")
def atlas(filled: AtlasServer) -> Iterator[AtlasHandler]:
    with atlas_at(filled) as platform:
        yield platform


def own(dataset: LumosDataset) -> Json:
    return obj(obj(dataset.to_json()["extensions"])["atlas"])


def test_all_kinds_are_datasets_and_are_found_by_their_urns(atlas: AtlasHandler) -> None:
    found = [*atlas.list()]

    assert {own(each)["typeName"] for each in found} <= {*TABLE_TYPES}
    assert len(found) == 11
    assert [atlas.get_dataset(each.urn) for each in found] == found
    kinds = {each.urn.platform: each.kind for each in found}
    assert kinds["kafka"] is DatasetKind.STREAM
    assert kinds["aws_s3_v2"] is kinds["hdfs"] is DatasetKind.FILES


def test_all_are_found_together_as_each_is_found_alone(atlas: AtlasHandler) -> None:
    alone = {each.urn: with_parts(each, lineage=DatasetLineage()) for each in atlas.list()}

    found = atlas.find_datasets([*alone, "lumos://hive/nobody@prod"])

    assert found.pop("lumos://hive/nobody@prod") == Seen()
    assert found == {urn: Seen(each) for urn, each in alone.items()}


def test_a_table_of_hive_has_columns_partitions_storage_and_all_else(atlas: AtlasHandler) -> None:
    orders = atlas.get_dataset(ORDERS)

    assert [field.name for field in orders.schema.fields] == ["id", "total", "items", "odd", "day"]
    assert orders.schema.fields[2].signature() == "ARRAY<STRUCT<sku: STRING>>"
    assert orders.location is not None
    assert orders.location.path == "hdfs://prod/warehouse/orders"
    assert orders.location.partition_keys == ("day",)
    assert orders.tags == ("Gold",)
    assert orders.schema.fields[0].tags == ("PII",)
    assert orders.documentation.description == "Orders since 2010"
    kept = own(orders)
    assert obj(kept["attributes"])["comment"] == "All orders"
    assert obj(kept["attributes"])["parameters"] == {"transient_lastDdlTime": "1700000000"}
    assert (kept["labels"], kept["customAttributes"]) == (["a", "checked"], {"team": "sales"})
    assert kept["businessAttributes"] == {"Audit": {"by": "grace"}}
    first = obj(obj(kept["columns"])["id"])
    assert first["customAttributes"] == {"origin": "hook"}
    (classification,) = objs(first["classifications"])
    assert classification == {
        "typeName": "PII",
        "attributes": {"level": "high"},
        "propagate": True,
    }
    assert obj(kept["parts"])["sd"] == [
        {"qualifiedName": "sales.orders@prod_storage", "inputFormat": "orc", "compressed": False}
        | {"location": "hdfs://prod/warehouse/orders"}
    ]


def test_keys_of_a_relational_table_are_read(atlas: AtlasHandler) -> None:
    orders = atlas.get_dataset("lumos://rdbms/crm.orders@db")

    assert orders.kind is DatasetKind.VIEW
    assert orders.schema.primary_key == ("id",)
    (key,) = orders.schema.foreign_keys
    assert (key.columns, key.references) == (("customer",), "lumos://rdbms/crm.customers@db")
    assert key.referenced_columns == ("id",)
    assert [field.nullable for field in orders.schema.fields] == [False, True, True]
    assert orders.schema.fields[2].signature() == "STRING(80)"
    assert orders.schema.fields[2].default == "none"
    (index,) = objs(obj(own(orders)["parts"])["indexes"])
    assert index["isUnique"] is True


def test_lineage_is_read_down_to_columns(atlas: AtlasHandler) -> None:
    (edge,) = atlas.list_edges()

    assert (edge.upstream_urn, edge.downstream_urn) == (ORDERS, "lumos://hive/sales.totals@prod")
    assert edge.job_urn == "lumos://hive/sales.totals@prod:1"
    (column,) = edge.column_mappings
    assert (column.upstream_column, column.downstream_column) == ("total", "total")
    assert column.transformation == "sum(total)"


def test_everything_moves_to_another_atlas_and_out_of_it_unchanged(
    atlas: AtlasHandler, record_property: Callable[[str, object], None]
) -> None:
    exported = atlas.export_all(at=AT)
    with AtlasServer() as empty, atlas_at(empty) as other:
        alone = [with_parts(each, lineage=DatasetLineage()) for each in exported.datasets]
        other.apply(Batch(datasets=alone))
        for edge in exported.lineage_edges:
            other.apply(Batch(edges=[edge]))
        again = other.export_all(at=AT)

    held = {each.urn: each for each in again.datasets}
    equal = sum(held.get(each.urn) == each for each in exported.datasets)
    record_property("share of datasets of others equal after a move", equal / len(held))
    assert equal == len(exported.datasets) == 11
    assert again.lineage_edges == exported.lineage_edges


def test_what_people_defined_beyond_names_is_kept_as_it_is() -> None:
    with AtlasServer() as server, atlas_at(server) as atlas:
        server.store.define(CLASSIFICATIONS, anew=True)
        glossary = server.store.create_glossary(
            {"name": "Business", "categories": [{"categoryGuid": "c", "displayText": "Sales"}]}
        )
        anchor: Json = {"glossaryGuid": glossary["guid"]}
        server.store.put_term({"name": "Plain", "anchor": anchor}, None)
        elaborate: Json = {"name": "Net", "anchor": anchor, "abbreviation": "N"}
        elaborate["seeAlso"] = [{"termGuid": "x", "displayText": "Plain"}]
        server.store.put_term(elaborate, None)
        atlas.emit_dataset(rich_dataset())
        kept = atlas.export_all(at=AT).to_json()["extensions"]
        atlas.apply(Batch(extensions={"atlas": {"from": "elsewhere"}}))

        assert atlas.extensions() == {"atlas": {"from": "elsewhere"}}
    own_ = obj(obj(kept)["atlas"])
    assert [each["name"] for each in objs(own_["classificationDefs"])] == ["PII"]
    (term,) = objs(own_["terms"])
    assert (term["name"], term["abbreviation"]) == ("Net", "N")
    assert [each["displayText"] for each in objs(own_["categories"])] == ["Sales"]
