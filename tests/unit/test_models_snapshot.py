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


def _document(*datasets: JsonValue) -> Json:
    return {
        "snapshot_schema_version": 1,
        "lumos_version": "0.1.0",
        "export_timestamp": "2026-01-01T00:00:00Z",
        "source_platform": "embedded",
        "datasets": [*datasets],
    }


def _named(urn: str) -> Json:
    return {"urn": urn, "name": "a", "platform": "s3"}


def _as_section(section: str, forms: list[list[Json]]) -> list[list[JsonValue]]:
    """Return the items as the section has them; a job has no platform."""
    dropped = {"platform"} if section == "jobs" else set()
    return [
        [{name: value for name, value in item.items() if name not in dropped} for item in items]
        for items in forms
    ]


@given(snapshots())
def test_any_snapshot_round_trips_through_json(snapshot: Snapshot) -> None:
    document = orjson.loads(canonical_json(snapshot.to_json()))
    assert Snapshot.from_json(document) == snapshot
    document["lineage_edges"] = document.get("lineage_edges", [])
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


def test_an_edge_listed_under_two_spellings_is_one_edge() -> None:
    document = _document(
        {**_named("lumos://s3/été"), "lineage": {"downstream": ["lumos://s3/b"]}},
        {**_named("lumos://s3/b"), "lineage": {"upstream": ["lumos://s3/%C3%A9t%C3%A9"]}},
    )
    for version in (0, 1):
        snapshot = load_snapshot({**document, "snapshot_schema_version": version})
        assert len(snapshot.lineage_edges) == 1


def test_listed_lineage_becomes_edges_where_a_document_lists_no_edges_at_all() -> None:
    document = _document(
        {**_named("lumos://s3/a"), "lineage": {"upstream": ["lumos://s3/b"]}},
        {**_named("lumos://s3/b"), "lineage": {"downstream": ["lumos://s3/c"]}},
    )
    snapshot = load_snapshot(document)
    assert [edge.key[:2] for edge in snapshot.lineage_edges] == [
        ("lumos://s3/b", "lumos://s3/a"),
        ("lumos://s3/b", "lumos://s3/c"),
    ]
    assert snapshot.datasets[0].lineage.upstream == ("lumos://s3/b",)


@pytest.mark.parametrize(
    "edges", [[], [{"upstream_urn": "lumos://s3/b", "downstream_urn": "lumos://s3/c"}]]
)
def test_edges_are_the_truth_where_a_document_lists_them(edges: list[JsonValue]) -> None:
    document = _document({**_named("lumos://s3/a"), "lineage": {"upstream": ["lumos://s3/b"]}})
    snapshot = load_snapshot({**document, "lineage_edges": edges})
    assert len(snapshot.lineage_edges) == len(edges)
    assert snapshot.datasets[0].lineage.upstream == ()


def test_sections_are_in_order_of_the_names_and_not_of_their_spelling() -> None:
    spellings = ["lumos://s3/été", "lumos://s3/zoo", "lumos://s3/%61"]
    forms = [[_named(urn) for urn in order] for order in (spellings, spellings[::-1])]
    forms.append([_named("lumos://s3/%C3%A9t%C3%A9"), _named("lumos://s3/a"), _named(spellings[1])])
    for section in ("datasets", "jobs"):
        loaded = [
            [item.urn for item in getattr(load_snapshot({**_document(), section: items}), section)]
            for items in _as_section(section, forms)
        ]
        assert loaded == [["lumos://s3/%C3%A9t%C3%A9", "lumos://s3/a", "lumos://s3/zoo"]] * 3


@pytest.mark.parametrize("section", ["datasets", "jobs"])
def test_two_spellings_of_one_urn_are_a_duplicate_wherever_they_stand(section: str) -> None:
    urns = ["lumos://s3/été", "lumos://s3/zoo", "lumos://s3/%C3%A9t%C3%A9"]
    (items,) = _as_section(section, [[_named(urn) for urn in urns]])
    with pytest.raises(InvalidModelError, match=f"two {section} have the URN lumos://s3/%C3%A9t"):
        load_snapshot({**_document(), section: items})


def test_two_spellings_of_one_identity_are_refused_and_none_is_lost() -> None:
    twins = {"lumos://s3/é": {"datahub": "1"}, "lumos://s3/%C3%A9": {"datahub": "2"}}
    with pytest.raises(InvalidModelError, match="identity_map"):
        load_snapshot({**_document(), "identity_map": cast("JsonValue", twins)})


def test_items_that_share_a_name_are_ordered_by_their_content() -> None:
    tags: list[JsonValue] = [{"name": "a", "description": text} for text in ("y", "x", "z")]
    one, other = (
        load_snapshot({**_document(), "tags": order}).tags for order in (tags, tags[::-1])
    )
    assert one == other


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
        {"datasets": [{"urn": "lumos://a/b", "lineage": {"upstream": 5}}]},
        {"datasets": [{"urn": "lumos://a/b", "lineage": {"downstream": True}}]},
        {"lineage_edges": 5},
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
