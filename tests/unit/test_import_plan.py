from __future__ import annotations

import pytest
from hypothesis import given

from lumos.core.models import LumosDataset, User
from lumos.feature.importing.plan import (
    ImportMode,
    PlannedAction,
    combined_entity,
    plan_dataset,
)
from strategies import datasets

HERE = LumosDataset.from_json(
    {
        "urn": "lumos://s3/lake/orders",
        "name": "orders",
        "platform": "s3",
        "version": "1.4.0",
        "location": {"path": "/lake/orders", "partitioning": "day={dd}"},
        "schema": {
            "fields": [
                {"name": "id", "type": "INT64", "description": "Written by a person."},
                {"name": "gone", "type": "STRING"},
                {
                    "name": "page",
                    "type": "STRUCT",
                    "fields": [{"name": "url", "type": "STRING", "pii": True}],
                },
            ]
        },
        "ownership": {"owners": [{"user": "ada"}]},
        "tags": ["tier-1"],
        "documentation": {"description": "Ours.", "business_context": "Board report."},
        "properties": {"team": "sales", "sla": {"hours": 4}},
        "assertions": [{"name": "unique id"}],
        "statistics": {"row_count": 10},
        "lineage": {"upstream": ["lumos://s3/lake/raw"]},
    }
)
THERE = LumosDataset.from_json(
    {
        "urn": "lumos://s3/lake/orders",
        "name": "orders",
        "platform": "s3",
        "version": "9.9.9",
        "schema": {
            "fields": [
                {"name": "id", "type": "STRING"},
                {"name": "new", "type": "STRING"},
                {
                    "name": "page",
                    "type": "STRUCT",
                    "fields": [{"name": "url", "type": "STRING"}, {"name": "to", "type": "STRING"}],
                },
            ]
        },
        "ownership": {"owners": [{"user": "grace"}]},
        "documentation": {"description": "Theirs."},
        "properties": {"sla": {"days": 1}},
        "assertions": [{"name": "fresh"}],
    }
)


def planned(mode: ImportMode) -> LumosDataset:
    result = plan_dataset(HERE, THERE, mode=mode)
    assert result.action is PlannedAction.UPDATE
    return result.dataset


def columns(dataset: LumosDataset) -> list[str]:
    return [field.name for field in dataset.schema.fields]


def owners(dataset: LumosDataset) -> list[str]:
    return [owner.name for owner in dataset.ownership.owners]


def test_an_update_takes_the_columns_and_keeps_what_people_added() -> None:
    result = planned(ImportMode.UPDATE)

    assert columns(result) == ["id", "new", "page"]
    assert result.schema.fields[0].type == "STRING"
    assert result.schema.fields[0].description == "Written by a person."
    assert [(field.name, field.pii) for field in result.schema.fields[2].fields] == [
        ("url", True),
        ("to", False),
    ]
    assert owners(result) == ["ada", "grace"]
    assert result.tags == ("tier-1",)
    assert result.documentation.description == "Theirs."
    assert result.documentation.business_context == "Board report."
    assert result.properties == {"team": "sales", "sla": {"hours": 4, "days": 1}}
    assert result.location == HERE.location
    assert [assertion.name for assertion in result.assertions] == ["fresh"]


def dataset_of(*fields: object) -> LumosDataset:
    plain = {"urn": "lumos://s3/lake/t", "name": "t", "platform": "s3"}
    return LumosDataset.from_json({**plain, "schema": {"fields": fields}})


WORDS = {
    "description": "Written by a person.",
    "pii": True,
    "tags": ["mine"],
    "glossary_terms": ["Key"],
    "properties": {"since": 2020},
}


def nested(words: dict[str, object], *, described: bool) -> list[dict[str, object]]:
    """Return columns with a member inside arrays, maps, unions and arrays of arrays."""
    member = {"name": "sku", "type": "STRING", **words}
    said = {"description": "One position."} if described else {}
    lines = {"type": "STRUCT", "fields": [member], **said}
    return [
        {"name": "lines", "type": "ARRAY", "items": lines},
        {"name": "deep", "type": "ARRAY", "items": {"type": "ARRAY", "items": lines, **said}},
        {
            "name": "by_day",
            "type": "MAP",
            "key": {"type": "STRING", **said},
            "value": {
                "type": "STRUCT",
                "fields": [{"name": "all", "type": "ARRAY", "items": lines}],
            },
        },
        {"name": "either", "type": "UNION", "branches": [{"type": "STRING"}, lines]},
    ]


@pytest.mark.parametrize("mode", [ImportMode.UPDATE, ImportMode.MERGE])
def test_what_people_said_of_members_inside_arrays_maps_and_unions_stays(mode: ImportMode) -> None:
    here = dataset_of(*nested(WORDS, described=True))
    there = dataset_of(*nested({}, described=False))
    assert plan_dataset(here, there, mode=mode) == (here, PlannedAction.KEEP)
    exact = plan_dataset(here, there, mode=ImportMode.OVERWRITE)
    assert exact == (there, PlannedAction.UPDATE)


def test_members_inside_arrays_come_and_go_with_the_snapshot() -> None:
    kept = {"name": "sku", "type": "STRING"}
    here = dataset_of(
        {
            "name": "lines",
            "type": "ARRAY",
            "items": {
                "type": "STRUCT",
                "fields": [{**kept, **WORDS}, {"name": "x", "type": "INT32"}],
            },
        }
    )
    items = {
        "type": "STRUCT",
        "fields": [{**kept, "type": "INT64"}, {"name": "y", "type": "INT32"}],
    }
    there = dataset_of({"name": "lines", "type": "ARRAY", "items": items})
    planned = plan_dataset(here, there, mode=ImportMode.UPDATE).dataset
    wanted = [{**kept, "type": "INT64", **WORDS}, {"name": "y", "type": "INT32"}]
    assert planned == dataset_of(
        {"name": "lines", "type": "ARRAY", "items": {"type": "STRUCT", "fields": wanted}}
    )


def test_tags_that_people_gave_a_column_stay_beside_those_of_the_snapshot() -> None:
    column = {"name": "id", "type": "INT64"}
    here = dataset_of({**column, **WORDS})
    there = dataset_of(
        {**column, "tags": ["theirs"], "glossary_terms": ["Id"], "properties": {"unit": "m"}}
    )
    (field,) = plan_dataset(here, there, mode=ImportMode.UPDATE).dataset.schema.fields
    assert {*field.tags} == {"mine", "theirs"}
    assert {*field.glossary_terms} == {"Id", "Key"}
    assert field.properties == {"since": 2020, "unit": "m"}


def test_a_merge_loses_no_column_assertion_or_fact() -> None:
    result = planned(ImportMode.MERGE)

    assert columns(result) == ["id", "gone", "page", "new"]
    assert [assertion.name for assertion in result.assertions] == ["unique id", "fresh"]
    assert result.statistics == HERE.statistics
    assert result.location == HERE.location
    assert owners(result) == ["ada", "grace"]


def test_overwriting_leaves_the_snapshots_state_alone() -> None:
    result = planned(ImportMode.OVERWRITE)

    assert columns(result) == ["id", "new", "page"]
    assert owners(result) == ["grace"]
    assert result.tags == ()
    assert result.location is None


def test_skipping_leaves_what_exists() -> None:
    result = plan_dataset(HERE, THERE, mode=ImportMode.SKIP_EXISTING)

    assert result == (HERE, PlannedAction.SKIP)


@pytest.mark.parametrize("mode", ImportMode)
def test_the_version_counted_here_and_known_edges_stay(mode: ImportMode) -> None:
    result = plan_dataset(HERE, THERE, mode=mode).dataset

    assert result.version == "1.4.0"
    assert result.lineage.upstream == HERE.lineage.upstream


@given(dataset=datasets())
def test_a_dataset_that_is_there_already_is_kept(dataset: LumosDataset) -> None:
    for mode in (ImportMode.UPDATE, ImportMode.OVERWRITE, ImportMode.MERGE):
        assert plan_dataset(dataset, dataset, mode=mode).action is PlannedAction.KEEP
    created = plan_dataset(None, dataset, mode=ImportMode.UPDATE)
    assert created == (dataset, PlannedAction.CREATE)


@given(here=datasets(), there=datasets())
def test_planning_again_after_an_import_finds_nothing_to_do(
    here: LumosDataset, there: LumosDataset
) -> None:
    for mode in (ImportMode.UPDATE, ImportMode.OVERWRITE, ImportMode.MERGE):
        once = plan_dataset(here, there, mode=mode).dataset
        assert plan_dataset(once, there, mode=mode).action is PlannedAction.KEEP


def test_a_user_keeps_what_the_snapshot_does_not_say() -> None:
    here = User(username="ada", email="ada@shop.example", teams=("sales",))
    there = User(username="ada", title="Steward", teams=("finance",))

    assert combined_entity(here, there) == User(
        username="ada", email="ada@shop.example", title="Steward", teams=("finance", "sales")
    )


def test_what_people_said_of_a_column_stays_also_that_it_is_to_go() -> None:
    words = {"deprecation": {"note": "use total"}, "tags": ["mine"], "glossary_terms": ["Key"]}
    plain = {"urn": "lumos://s3/lake/t", "name": "t", "platform": "s3"}
    column = {"name": "id", "type": "INT64"}
    here = LumosDataset.from_json({**plain, "schema": {"fields": [{**column, **words}]}})
    there = LumosDataset.from_json({**plain, "schema": {"fields": [column]}})
    planned = plan_dataset(here, there, mode=ImportMode.UPDATE)
    assert planned == (here, PlannedAction.KEEP)
    exact = plan_dataset(here, there, mode=ImportMode.OVERWRITE)
    assert exact == (there, PlannedAction.UPDATE)
