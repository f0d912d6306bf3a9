"""Datasets that come together are written together, and each is as if it had come alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from doubles.openmetadata_store import Json, OpenMetadataStore
from doubles.openmetadata_tests import RefusedError
from lumos.core.errors import PlatformError
from lumos.core.models import LumosDataset, Urn, with_parts
from lumos.core.platform.batch import Batch
from lumos.core.platform.impl.openmetadata.handler import OpenMetadataHandler
from lumos.testing.platform_samples import dataset, edge, rich_dataset

AT = "2026-01-02T03:04:05Z"
BULK = ("PUT", "tables/bulk")
ALONE = ("POST", "tables")


def table(name: str, **parts: Any) -> LumosDataset:
    urn = Urn.of("snowflake", "shop", "public", name)
    return dataset(name, urn=urn, platform="snowflake", **parts)


def tables(number: int, **parts: Any) -> list[LumosDataset]:
    return [table(f"t{each}", **parts) for each in range(number)]


def test_new_tables_are_made_by_one_request(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    made = tables(9, tags=["gold"], documentation={"description": "All of <b>them</b>"})

    platform.apply(Batch(datasets=made))

    assert store.requests.count(BULK) == 1
    assert ALONE not in store.requests
    assert [*platform.list()] == made


def test_the_same_tables_again_are_not_written_again(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    platform.apply(Batch(datasets=tables(5)))
    store.requests.clear()

    platform.apply(Batch(datasets=tables(5)))

    assert store.writes() == []


def test_of_known_and_new_tables_the_known_ones_are_patched(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    platform.apply(Batch(datasets=tables(4, tags=["old"], ownership=[{"user": "ada"}])))
    platform.apply(Batch(edges=[edge(table("t0"), table("mentioned"))]))
    store.requests.clear()
    wanted = [*tables(6, tags=["new"]), table("mentioned")]

    platform.apply(Batch(datasets=wanted))

    assert store.requests.count(BULK) == 1
    assert ALONE not in store.requests
    assert {each.urn: each.tags for each in platform.list()} == {
        each.urn: each.tags for each in wanted
    }
    assert not any(each.ownership.owners for each in platform.list())
    assert len([*platform.list_edges()]) == 1


def test_everything_of_a_dataset_comes_back_from_a_batch(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    rich = rich_dataset()
    moved = with_parts(rich, urn=Urn.of("snowflake", "a", "b", "c"), platform="snowflake")
    checked = table(
        "checked",
        schema={"fields": [{"name": "id", "type": "INT64"}]},
        assertions=[{"name": "id is set", "kind": "not_null", "column": "id"}],
        quality={"checks": [{"name": "id is set", "status": "PASSED", "timestamp": AT}]},
        profile={"profiled_at": AT, "row_count": 9, "file_count": 1},
        properties={"a": 1},
    )
    together = [rich, moved, checked, table("odd::name"), dataset("other")]

    platform.apply(Batch(datasets=together))

    assert {each.urn: each for each in platform.list()} == {each.urn: each for each in together}
    assert store.requests.count(BULK) == 1


@pytest.mark.parametrize("together", [True, False])
def test_what_new_tables_inherit_is_not_taken_for_theirs(
    platform: OpenMetadataHandler,
    store: OpenMetadataStore,
    monkeypatch: pytest.MonkeyPatch,
    together: bool,
) -> None:
    add = store._add
    product = {"id": "7", "type": "dataProduct", "fullyQualifiedName": "Sales.Orders"}

    def inheriting(collection: str, body: Json) -> Json:
        made = add(collection, body)
        return made if collection != "tables" else made | {"dataProducts": [product]}

    def added(collection: str, body: Json) -> Json:
        made = inheriting(collection, body)
        store.entities[collection][made["fullyQualifiedName"]] = made
        return made

    monkeypatch.setattr(store, "_add", added)
    made = tables(3)
    for chunk in [made] if together else [[each] for each in made]:
        platform.apply(Batch(datasets=chunk))

    assert [*platform.list()] == made


def test_a_key_to_a_table_of_the_same_batch_is_shown(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    column = {"fields": [{"name": "id", "type": "INT64"}]}
    key = {"columns": ["id"], "references": table("t1").urn, "referenced_columns": ["id"]}
    pointing = table("t0", schema={**column, "foreign_keys": [key]})

    platform.apply(
        Batch(datasets=[pointing, table("t1", schema=column), table("t2", schema=column)])
    )

    (shown,) = store.entities["tables"]["snowflake.shop.public.t0"]["tableConstraints"]
    assert shown["constraintType"] == "FOREIGN_KEY"
    assert platform.get_dataset(pointing.urn) == pointing


def test_a_row_that_could_not_be_stored_is_written_alone(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    store.unstorable = {"t1"}

    platform.apply(Batch(datasets=tables(3)))

    assert (store.requests.count(BULK), store.requests.count(ALONE)) == (1, 1)
    assert [*platform.list()] == tables(3)


def test_a_row_that_is_refused_spares_the_others_and_is_told(
    platform: OpenMetadataHandler, store: OpenMetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = store.put

    def refusing(collection: str, body: Json) -> tuple[Json, bool]:
        if collection == "tables" and body["name"] == "t1":
            raise RefusedError(400, "no")
        return put(collection, body)

    monkeypatch.setattr(store, "put", refusing)
    with pytest.raises(PlatformError) as refused:
        platform.apply(Batch(datasets=tables(3)))

    assert "POST /tables at" in str(refused.value)
    assert [each.urn for each in platform.list()] == [table("t0").urn, table("t2").urn]


def test_tables_that_people_deleted_come_back_as_they_are_sent(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    platform.apply(Batch(datasets=tables(3, tags=["old"], ownership=[{"user": "ada"}])))
    for name in ("t0", "t1"):
        identity = store.entities["tables"][f"snowflake.shop.public.{name}"]["id"]
        store.delete("tables", identity, for_good=False)
    store.requests.clear()

    platform.apply(Batch(datasets=tables(3, tags=["new"])))

    assert store.requests.count(BULK) == 1
    assert [*platform.list()] == tables(3, tags=["new"])


def test_a_server_that_takes_none_together_is_asked_once_and_told_one_by_one(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    store.version = "1.10.0"

    platform.apply(Batch(datasets=tables(3)))
    platform.apply(Batch(datasets=tables(6)))

    assert (store.requests.count(BULK), store.requests.count(ALONE)) == (1, 6)
    assert [*platform.list()] == tables(6)


def test_batches_that_overlap_do_not_disturb_each_other(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    made = tables(12)
    linked = [with_parts(each, lineage={"upstream": (made[0].urn,)}) for each in made[1:]]
    chunks = [linked[start : start + 5] for start in range(0, 7, 2)]

    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            [*pool.map(platform.apply, [Batch(datasets=chunk) for chunk in chunks])]

    assert {each.downstream_urn for each in platform.list_edges()} == {
        each.urn for chunk in chunks for each in chunk
    }
    assert {each.urn for each in platform.list()} == {
        each.urn for chunk in chunks for each in chunk
    }


def test_a_list_that_is_far_longer_than_what_is_looked_for_is_not_read(
    platform: OpenMetadataHandler, store: OpenMetadataStore
) -> None:
    platform.apply(Batch(datasets=tables(50)))
    wanted = [table("t7"), table("t11"), table("t13")]
    for _ in range(2):
        store.requests.clear()
        found = platform.find_datasets([each.urn for each in wanted])
        assert sorted(found) == sorted(each.urn for each in wanted)
    assert ("GET", "tables") not in store.requests
