"""Descriptions, tags, terms and properties by file, on the embedded catalog."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from lumos.core.models import (
    Deprecation,
    Documentation,
    Governance,
    Link,
    LumosDataset,
    Tag,
    Urn,
)
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.run_report import RunRecorder, RunReport
from lumos.core.settings import InvalidSettingsError, read_document
from lumos.feature.enrichment import EnrichmentService

START = datetime(2024, 1, 1, tzinfo=UTC)
EXAMPLE = Path(__file__).parents[2] / "examples" / "enrichment" / "shop.yaml"
ORDERS = Urn("lumos://local/lake/shop/orders.parquet")
CUSTOMERS = Urn("lumos://snowflake/FINANCE/customers")


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[EmbeddedHandler]:
    catalog = EmbeddedHandler.from_config({"database_url": str(tmp_path / "lumos.db")})
    with catalog:
        for urn, name in ((ORDERS, "orders"), (CUSTOMERS, "customers")):
            catalog.emit_dataset(LumosDataset(urn=urn, name=name, platform=urn.platform))
        yield catalog


def enrich(platform: EmbeddedHandler, document: Any, **options: Any) -> RunReport:
    recorder = RunRecorder("enrich", started_at=START, keep_done=True)
    EnrichmentService(platform, **options).enrich(document, recorder=recorder)
    return recorder.finish(at=START)


def test_the_example_is_written_once_and_a_second_run_changes_nothing(
    platform: EmbeddedHandler,
) -> None:
    first = enrich(platform, read_document(EXAMPLE))
    assert (first.counts.done, first.counts.failed, first.counts.skipped) == (5, 0, 0)
    dataset = platform.get_dataset(ORDERS)
    assert dataset.documentation == Documentation(
        description="One row for each order that a customer placed.",
        business_context="The base of all revenue reports.",
        sla="Complete by 06:00 UTC.",
        links=(Link(url="https://wiki.example.com/orders", description="How orders are counted"),),
    )
    assert dataset.governance == Governance(domains=("Sales",), glossary_terms=("Net revenue",))
    assert (dataset.tags, dataset.properties) == (("core",), {"retention_days": 730})
    assert platform.get_dataset(CUSTOMERS).tags == ("pii",)
    before = platform.export_all(at=START)
    second = enrich(platform, read_document(EXAMPLE))
    assert (second.counts.done, second.counts.failed, second.counts.skipped) == (0, 0, 5)
    assert platform.export_all(at=START) == before


def test_the_earlier_frameworks_file_is_accepted_as_it_is(
    platform: EmbeddedHandler, tmp_path: Path
) -> None:
    enrichments = [
        {"enrichment_type": "description", "config": {"description": "all orders"}},
        {"enrichment_type": "tags", "config": {"tags": ["b", "a"]}},
        {"enrichment_type": "properties", "config": {"custom_properties": {"tier": 1}}},
        {"enrichment_type": "documentation", "config": {"description": "all orders"}},
    ]
    item = {"data_type": "local", "dataset_name": "orders", "enrichments": enrichments}
    path = tmp_path / "enrich.json"
    path.write_text(json.dumps({"datasets": [item]}))
    assert enrich(platform, read_document(path)).counts.done == 1
    dataset = platform.get_dataset(ORDERS)
    assert dataset.documentation.description == "all orders"
    assert (dataset.tags, dataset.properties) == (("a", "b"), {"tier": 1})
    assert enrich(platform, read_document(path)).counts.skipped == 1


def test_texts_replace_and_everything_else_is_added(platform: EmbeddedHandler) -> None:
    platform.emit_dataset(
        LumosDataset(
            urn=ORDERS,
            name="orders",
            platform="local",
            tags=("old",),
            documentation=Documentation(
                description="old", sla="kept", links=(Link(url="https://a.example"),)
            ),
            governance=Governance(domains=("D",), deprecation=Deprecation(sunset=date(2030, 1, 1))),
            properties={"kept": True, "changed": 1},
        )
    )
    item = {
        "dataset": str(ORDERS),
        "description": "new",
        "tags": ["new"],
        "domains": ["E"],
        "links": [{"url": "https://a.example"}, {"url": "https://b.example"}],
        "properties": {"changed": 2},
    }
    enrich(platform, {"datasets": [item]})
    dataset = platform.get_dataset(ORDERS)
    assert dataset.documentation.description == "new"
    assert dataset.documentation.sla == "kept"
    assert [link.url for link in dataset.documentation.links] == [
        "https://a.example",
        "https://b.example",
    ]
    assert dataset.tags == ("new", "old")
    assert dataset.governance.domains == ("D", "E")
    assert dataset.governance.deprecation == Deprecation(sunset=date(2030, 1, 1))
    assert dataset.properties == {"kept": True, "changed": 2}


def test_a_dataset_that_is_named_twice_is_published_once(platform: EmbeddedHandler) -> None:
    published: list[tuple[LumosDataset, LumosDataset]] = []
    items = [{"dataset": "orders", "tags": ["a"]}, {"dataset": str(ORDERS), "tags": ["b"]}]
    report = enrich(
        platform, {"datasets": items}, publish=lambda old, new: published.append((old, new))
    )
    ((old, new),) = published
    assert (old.tags, new.tags) == ((), ("a", "b"))
    assert [item.item for item in report.items] == [str(ORDERS)]


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ({"dataset": "orders", "tag": ["x"]}, "unknown key 'tag'; did you mean 'tags'?"),
        ({"tags": ["x"]}, "key 'dataset' is missing"),
        ({"dataset": "nothing", "tags": ["x"]}, "no dataset is called nothing"),
        (
            {
                "data_type": "local",
                "dataset_name": "orders",
                "enrichments": [{"enrichment_type": "colour", "config": {}}],
            },
            "enrichments[0].enrichment_type must be one of",
        ),
        (
            {
                "dataset": "orders",
                "description": "one",
                "enrichments": [
                    {"enrichment_type": "documentation", "config": {"description": "two"}}
                ],
            },
            "the document says description twice, and differently",
        ),
    ],
)
def test_a_wrong_item_is_named_with_its_reason_and_spares_the_others(
    platform: EmbeddedHandler, item: dict[str, Any], reason: str
) -> None:
    report = enrich(platform, {"datasets": [item, {"dataset": "customers", "tags": ["ok"]}]})
    assert [(each.status, each.item.split(":")[0]) for each in report.items] == [
        ("failed", "datasets[0]"),
        ("done", "lumos"),
    ]
    assert (report.failed[0].reason or "").startswith(reason)
    assert platform.get_dataset(ORDERS).tags == ()


def test_tags_alone_can_be_defined(platform: EmbeddedHandler) -> None:
    enrich(platform, {"tags": [{"name": "pii", "sensitive": True}]})
    assert list(platform.list_entities("tag")) == [Tag(name="pii", sensitive=True)]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "key 'datasets' is missing"),
        ({"dataset": []}, "unknown key 'dataset'; did you mean 'datasets'"),
        ({"datasets": "orders"}, "datasets must be a list"),
    ],
)
def test_a_document_of_another_shape_is_refused_as_a_whole(
    platform: EmbeddedHandler, document: Any, said: str
) -> None:
    with pytest.raises(InvalidSettingsError, match=said):
        enrich(platform, document)
