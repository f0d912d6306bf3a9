from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import orjson
import pytest
from hypothesis import given
from pydantic import JsonValue

from lumos.core.errors import InvalidModelError, UnsupportedSnapshotVersionError
from lumos.core.models import SNAPSHOT_SCHEMA_VERSION, Snapshot, load_snapshot
from lumos.core.models.base import canonical_json
from lumos.core.models.migrations import MIGRATIONS
from strategies import snapshots

VERSION_0 = Path(__file__).parents[1] / "golden" / "snapshot_v0.json"
Json = dict[str, JsonValue]


def _version_0() -> Json:
    return cast("Json", json.loads(VERSION_0.read_text(encoding="utf-8")))


@given(snapshots())
def test_any_snapshot_round_trips_through_json(snapshot: Snapshot) -> None:
    document = orjson.loads(canonical_json(snapshot.to_json()))
    assert Snapshot.from_json(document) == snapshot
    assert load_snapshot(document) == snapshot.with_derived_parts()


@given(snapshots())
def test_a_snapshot_does_not_depend_on_the_order_of_its_sections(snapshot: Snapshot) -> None:
    document = snapshot.to_json()
    for section in ("datasets", "jobs", "lineage_edges", "tags", "users", "groups", "glossary"):
        items = document.get(section)
        if isinstance(items, list):
            items.reverse()
    assert Snapshot.from_json(document) == snapshot


@given(snapshots())
def test_derived_parts_are_derived_once_and_for_all(snapshot: Snapshot) -> None:
    derived = snapshot.with_derived_parts()
    assert derived.with_derived_parts() == derived
    assert derived.statistics == derived.counted()
    assert derived.statistics.lineage_edges == len(snapshot.lineage_edges)


def test_the_snapshot_of_the_product_documents_loads_as_version_0() -> None:
    document = _version_0()
    assert "snapshot_schema_version" not in document
    snapshot = load_snapshot(document)
    (customers,) = snapshot.datasets
    assert snapshot.snapshot_schema_version == SNAPSHOT_SCHEMA_VERSION
    assert snapshot.statistics.datasets == 1  # counted, whatever the document claims
    assert customers.tags == ("customer-domain", "pii", "tier-1")
    assert customers.schema.fields[1].pii
    assert customers.quality is not None
    assert customers.quality.score == 98.5


def test_lineage_listed_on_version_0_datasets_becomes_edges() -> None:
    snapshot = load_snapshot(_version_0())
    (customers,) = snapshot.datasets
    assert [edge.key[:2] for edge in snapshot.lineage_edges] == [
        ("lumos://kafka/events.customer_signup", customers.urn),
        ("lumos://s3/raw/crm_export", customers.urn),
        (customers.urn, "lumos://databricks/ml_features/customer_features"),
        (customers.urn, "lumos://snowflake/ANALYTICS/customer_360"),
    ]
    assert snapshot.with_derived_parts().datasets[0].lineage == customers.lineage


def test_an_edge_listed_on_both_of_its_version_0_datasets_is_one_edge() -> None:
    document = _version_0()
    upstream: Json = {
        "urn": "lumos://s3/raw/crm_export",
        "name": "crm_export",
        "platform": "s3",
        "lineage": {"downstream": ["lumos://snowflake/FINANCE/customers"]},
    }
    document["datasets"] = [*cast("list[JsonValue]", document["datasets"]), upstream]
    assert len(load_snapshot(document).lineage_edges) == 4


def test_loading_leaves_the_document_as_it_was() -> None:
    document = _version_0()
    load_snapshot(document)
    assert document == _version_0()


def test_every_older_version_has_a_step_to_the_next() -> None:
    assert set(MIGRATIONS) == set(range(SNAPSHOT_SCHEMA_VERSION))


def test_a_newer_snapshot_is_refused_with_what_to_do() -> None:
    newer = {**_version_0(), "snapshot_schema_version": SNAPSHOT_SCHEMA_VERSION + 1}
    with pytest.raises(UnsupportedSnapshotVersionError, match="schema version 2") as caught:
        load_snapshot(newer)
    assert "upgrade" in str(caught.value.hint)


@pytest.mark.parametrize("version", [-1, "1", True, None, 1.0])
def test_a_version_that_is_no_whole_number_is_refused(version: JsonValue) -> None:
    with pytest.raises(InvalidModelError, match="whole number"):
        load_snapshot({**_version_0(), "snapshot_schema_version": version})


@pytest.mark.parametrize("document", [None, [], "x", {}, {"data": []}])
def test_what_is_no_snapshot_is_refused(document: object) -> None:
    with pytest.raises(InvalidModelError, match="datasets"):
        load_snapshot(document)


@pytest.mark.parametrize(
    "damage",
    [
        {"datasets": "x"},
        {"datasets": [1]},
        {"datasets": [{"urn": "lumos://a/b", "lineage": {"upstream": "hunter2"}}]},
        {"datasets": [{"urn": "lumos://a/b", "lineage": {"upstream": [["hunter2"]]}}]},
        {"datasets": [{"urn": ["hunter2"], "lineage": {"upstream": ["a"]}}]},
        {"lineage_edges": [{"upstream_urn": {}, "downstream_urn": []}]},
        {"lineage_edges": "hunter2"},
        {"lineage_edges": {"a": 1}},
    ],
)
def test_a_damaged_version_0_snapshot_is_refused_and_never_crashes(damage: Json) -> None:
    with pytest.raises(InvalidModelError) as caught:
        load_snapshot({**_version_0(), **damage})
    assert "hunter2" not in str(caught.value)


def test_two_datasets_of_one_urn_are_refused() -> None:
    document = _version_0()
    document["datasets"] = cast("list[JsonValue]", document["datasets"]) * 2
    with pytest.raises(InvalidModelError, match="lumos://snowflake/FINANCE/customers"):
        load_snapshot(document)
