"""Assertions are test cases in OpenMetadata, and how they came out are their results."""

from __future__ import annotations

from typing import Any

from doubles.openmetadata_store import OpenMetadataStore
from lumos.core.models import LumosDataset, with_parts
from lumos.core.models.quality import AssertionStatus
from lumos.core.platform.impl.openmetadata.handler import OpenMetadataHandler
from lumos.core.platform.stash import unpacked

CASES = "dataQuality/testCases"
PLACE = "snowflake.shop.public.orders"
AT = "2026-01-02T03:04:05.678Z"
ASSERTIONS: list[dict[str, Any]] = [
    {"name": "id is set", "kind": "not_null", "column": "id"},
    {"name": "id is unique", "kind": "unique", "column": "id", "description": "By contract"},
    {
        "name": "known states",
        "kind": "accepted_values",
        "column": "state",
        "parameters": {"values": ["new", "paid"]},
    },
    {"name": "no orphans", "kind": "sql", "expression": "select * from orders where id is null"},
    {"name": "tidy", "kind": "custom", "parameters": {"depth": 3}, "severity": "WARNING"},
    {"name": "gone", "kind": "not_null", "column": "not there"},
]


def orders(**parts: object) -> LumosDataset:
    document: dict[str, object] = {
        "urn": "lumos://snowflake/shop/public/orders",
        "name": "orders",
        "platform": "snowflake",
        "schema": {
            "fields": [{"name": "id", "type": "INT64"}, {"name": "state", "type": "STRING"}]
        },
        "assertions": ASSERTIONS,
        "quality": {
            "overall_score": 97.5,
            "checks": [
                {"name": "id is set", "status": "PASSED", "timestamp": AT},
                {"name": "no orphans", "status": "FAILED", "timestamp": AT, "details": "2 rows"},
                {"name": "elsewhere", "status": "SKIPPED"},
            ],
        },
    }
    return LumosDataset.from_json({**document, **parts})


def stash(store: OpenMetadataStore) -> str:
    extension = store.entities["tables"][PLACE].get("extension") or {}
    return str(unpacked(extension["lumos"])) if extension else ""


def test_assertions_are_test_cases_with_their_results(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    platform.emit_dataset(orders())

    cases = store.entities[CASES]
    assert {name: case["testDefinition"]["name"] for name, case in cases.items()} == {
        f"{PLACE}.id.id is set": "columnValuesToBeNotNull",
        f"{PLACE}.id.id is unique": "columnValuesToBeUnique",
        f"{PLACE}.state.known states": "columnValuesToBeInSet",
        f"{PLACE}.no orphans": "tableCustomSQLQuery",
        f"{PLACE}.tidy": "lumosTableCheck",
    }
    result = cases[f"{PLACE}.no orphans"]["testCaseResult"]
    assert (result["testCaseStatus"], result["result"]) == ("Failed", "2 rows")
    assert platform.get_dataset(orders().urn) == orders()
    assert [*platform.list()] == [orders()]


def test_what_test_cases_tell_is_not_stashed(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    one = orders(assertions=sorted(ASSERTIONS[:4], key=lambda each: str(each["name"])), quality={})
    platform.emit_dataset(one)

    assert "assertions" not in stash(store)
    assert platform.get_dataset(one.urn) == one


def test_the_same_assertions_again_are_not_written_again(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    platform.emit_dataset(orders())
    store.requests.clear()
    platform.emit_dataset(orders())

    assert store.writes() == []


def test_a_later_result_is_added_and_an_earlier_one_is_not(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    platform.emit_dataset(orders())
    for at, status in (("2026-01-03T00:00:00Z", "FAILED"), ("2025-01-01T00:00:00Z", "PASSED")):
        check = {"name": "id is set", "status": status, "timestamp": at}
        changed = orders(quality={"checks": [check]})
        platform.emit_dataset(changed)

        assert platform.get_dataset(changed.urn) == changed
    assert (
        store.entities[CASES][f"{PLACE}.id.id is set"]["testCaseResult"]["testCaseStatus"]
        == "Failed"
    )


def test_an_assertion_that_goes_takes_its_test_case_along_and_no_other(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    platform.emit_dataset(orders())
    made_there = {
        "name": "by hand",
        "entityLink": f"<#E::table::{PLACE}>",
        "testDefinition": "tableRowCountToBeBetween",
        "parameterValues": [{"name": "minValue", "value": "1"}],
    }
    store.put(CASES, made_there)
    fewer = orders(assertions=ASSERTIONS[:1])
    platform.emit_dataset(fewer)

    assert set(store.entities[CASES]) == {f"{PLACE}.id.id is set", f"{PLACE}.by hand"}
    assert platform.get_dataset(fewer.urn) == fewer


def test_a_test_case_that_people_made_is_read_with_its_result(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    plain = orders(assertions=[], quality=None)
    platform.emit_dataset(plain)
    store.put(
        CASES,
        {
            "name": "enough rows",
            "entityLink": f"<#E::table::{PLACE}>",
            "testDefinition": "tableRowCountToBeBetween",
            "parameterValues": [{"name": "minValue", "value": "1"}],
        },
    )
    result = {"timestamp": 1_700_000_000_000, "testCaseStatus": "Aborted", "testResultValue": []}
    store.add_result(f"{PLACE}.enough rows", result)

    read = platform.get_dataset(plain.urn)
    assert [(each.kind, dict(each.parameters)) for each in read.assertions] == [
        ("tableRowCountToBeBetween", {"minValue": "1"})
    ]
    assert read.quality is not None
    assert [each.status for each in read.quality.checks] == [AssertionStatus.ERROR]
    assert with_parts(read, assertions=(), quality=None) == plain
