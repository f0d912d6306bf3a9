"""Who says what of a dataset, as the state keeps it, on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from lumos.core.errors import DamagedDocumentError
from lumos.core.models import Contributor, LumosDataset, Urn, with_parts
from lumos.core.models.dataset_contributions import EARLIER, IMPORT
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.store.catalog.catalog_tables import CatalogTables
from lumos.core.store.database import StateDatabase
from state_databases import ENGINES, url_for

AT = datetime(2024, 5, 1, tzinfo=UTC)
LATER = AT + timedelta(days=1)
ORDERS = Urn("lumos://postgres/shop/public/orders")
LAKE, OTHER = Contributor.of("source:lake"), Contributor.of("source:other")
DBT = Contributor.of("declared:dbt")


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest) -> Iterator[StateDatabase]:
    with StateDatabase.open(url_for(request.param, request)) as opened:
        yield opened


@pytest.fixture
def tables(database: StateDatabase) -> CatalogTables:
    return CatalogTables(database)


def orders(*columns: str, **parts: object) -> LumosDataset:
    fields = [{"name": name, "type": "STRING"} for name in columns or ("id", "note")]
    return LumosDataset.from_json(
        {
            "urn": ORDERS,
            "name": "orders",
            "platform": "postgres",
            "schema": {"fields": fields},
            **parts,
        }
    )


def say(tables: CatalogTables, by: Contributor, dataset: LumosDataset) -> None:
    said = tables.contributions.of(ORDERS).stating(by, dataset.to_json(), at=LATER, hash="h")
    tables.put_said(said, at=LATER)


def shown(tables: CatalogTables) -> LumosDataset:
    dataset = tables.dataset(ORDERS)
    assert dataset is not None
    return dataset


def rows(database: StateDatabase) -> int:
    (row,) = database.query("SELECT count(*) AS found FROM contributions")
    return row.integer("found")


def test_one_contributor_alone_needs_no_rows(
    tables: CatalogTables, database: StateDatabase
) -> None:
    tables.put_found(orders(), LAKE, hash="h", at=AT)
    assert rows(database) == 0
    said = tables.contributions.of(ORDERS)
    assert said.sole is not None
    assert said.sole.contributor == LAKE
    assert said.dataset() == orders()
    assert tables.contributions.found_states(LAKE) == [(ORDERS, "h")]


def test_what_another_says_does_not_make_a_source_look_changed(tables: CatalogTables) -> None:
    tables.put_found(orders(tags=["raw"]), LAKE, hash="h", at=AT)
    tables.put_dataset(with_parts(shown(tables), tags=("gold", "raw")), at=LATER)
    assert shown(tables).tags == ("gold", "raw")
    assert tables.contributions.found_states(LAKE) == [(ORDERS, "h")]
    say(tables, LAKE, orders("id", "note", "price", tags=["bronze"]))
    assert shown(tables).tags == ("bronze", "gold")
    assert [field.name for field in shown(tables).schema.fields] == ["id", "note", "price"]


def test_what_outranks_an_editor_is_said_again_by_the_next_scan(tables: CatalogTables) -> None:
    tables.put_found(orders(format="parquet"), LAKE, hash="h", at=AT)
    edited = with_parts(shown(tables), format="delta")
    assert tables.put_dataset(edited, at=LATER)
    assert shown(tables) == edited
    assert tables.contributions.found_states(LAKE) == [(ORDERS, "")]
    say(tables, LAKE, orders(format="parquet"))
    assert shown(tables).format == "parquet"


def test_three_contributors_each_of_whom_can_be_withdrawn(
    tables: CatalogTables, database: StateDatabase
) -> None:
    tables.put_found(orders(tags=["raw"]), LAKE, hash="h", at=AT)
    say(tables, DBT, orders(documentation={"description": "from dbt"}, tags=["dbt"]))
    person = EmbeddedHandler(database, contributor=Contributor.of("people:datahub"))
    person.emit_dataset(with_parts(shown(tables), tags=("dbt", "seen")))  # takes `raw` away
    assert (shown(tables).tags, rows(database)) == (("dbt", "seen"), 3)

    said = tables.contributions.of(ORDERS)
    without_dbt = said.without(DBT).dataset()
    assert without_dbt.tags == ("seen",)
    assert without_dbt.documentation.description is None
    without_person = said.without(Contributor.of("people:datahub")).dataset()
    assert without_person.tags == ("dbt", "raw")
    assert not said.without(LAKE).is_alive
    assert said.without(LAKE).declared_by == (DBT,)


def test_what_people_said_of_a_dataset_that_went_comes_back_with_it(
    tables: CatalogTables,
) -> None:
    tables.put_found(orders(), LAKE, hash="h", at=AT)
    tables.put_dataset(with_parts(shown(tables), tags=("gold",)), at=AT)
    left = tables.contributions.of(ORDERS).without(LAKE)
    assert not left.is_alive
    tables.delete_dataset(ORDERS, left=left)
    assert tables.dataset(ORDERS) is None
    assert tables.contributions.found_states(LAKE) == []

    say(tables, LAKE, orders("id"))
    assert shown(tables).tags == ("gold",)
    assert [field.name for field in shown(tables).schema.fields] == ["id"]


def test_a_dataset_is_there_as_long_as_any_source_finds_it(tables: CatalogTables) -> None:
    tables.put_found(orders(), LAKE, hash="h", at=AT)
    say(tables, OTHER, orders("id"))
    said = tables.contributions.of(ORDERS)
    assert said.without(LAKE).is_alive
    assert not said.without(LAKE).without(OTHER).is_alive


def test_a_dataset_that_was_only_declared_is_there(tables: CatalogTables) -> None:
    tables.put_found(orders(), DBT, hash="h", at=AT)
    assert tables.contributions.of(ORDERS).is_alive
    assert not tables.contributions.of(ORDERS).without(DBT).is_alive


def test_a_source_that_is_no_longer_configured_leaves_what_others_say(
    tables: CatalogTables,
) -> None:
    tables.put_found(orders(), LAKE, hash="h", at=AT)
    say(tables, DBT, orders("id", documentation={"description": "from dbt"}))
    left = tables.contributions.of(ORDERS).forgetting(LAKE)
    assert left.is_alive
    assert left.dataset().documentation.description == "from dbt"


def earlier(database: StateDatabase, dataset: LumosDataset, *, source: str | None) -> None:
    """Store a dataset as a version of Lumos before contributions did."""
    origin = {"lumos": {"source": source, "dataset": '["orders"]'}} if source else {}
    CatalogTables(database).put_dataset(with_parts(dataset, extensions=origin), at=AT)
    database.execute(
        "UPDATE datasets SET contributor = NULL, found_hash = :hash",
        {"hash": "old" if source else None},
    )


def test_a_state_of_before_tells_what_its_source_found(
    tables: CatalogTables, database: StateDatabase
) -> None:
    earlier(database, orders(tags=["seen"]), source="lake")
    said = tables.contributions.of(ORDERS)
    assert {each.contributor for each in said.said} == {EARLIER, LAKE}
    assert tables.contributions.found_states(LAKE) == [(ORDERS, "old")]
    assert said.dataset() == shown(tables)


def test_words_of_a_state_of_before_stay_when_its_source_speaks_again(
    tables: CatalogTables, database: StateDatabase
) -> None:
    described = orders(
        tags=["raw", "seen"],
        documentation={"description": "a person's"},
        schema={"fields": [{"name": "id", "type": "STRING", "description": "the key"}]},
        quality={"score": 90},
    )
    earlier(database, described, source="lake")
    origin = {"extensions": {"lumos": {"source": "lake", "dataset": '["orders"]'}}}
    say(tables, LAKE, orders("id", "note", tags=["raw"], **origin))
    now = shown(tables)
    assert now.tags == ("raw", "seen")
    assert now.documentation.description == "a person's"
    assert [field.description for field in now.schema.fields] == ["the key", None]
    assert now.quality is not None
    # What the source says itself is the source's: it may take it back.
    say(tables, LAKE, orders("id", **origin))
    assert shown(tables).tags == ("seen",)
    assert shown(tables).documentation.description == "a person's"


def test_a_text_of_a_state_of_before_gives_way_to_the_source(
    tables: CatalogTables, database: StateDatabase
) -> None:
    earlier(database, orders(documentation={"description": "old comment"}), source="lake")
    say(tables, LAKE, orders(documentation={"description": "new comment"}))
    assert shown(tables).documentation.description == "new comment"


def test_a_backup_gives_back_to_a_source_what_the_source_says(
    tables: CatalogTables, database: StateDatabase
) -> None:
    backup = EmbeddedHandler(database, contributor=IMPORT)
    backup.emit_dataset(orders(documentation={"description": "comment"}, tags=["raw", "seen"]))
    say(tables, LAKE, orders(documentation={"description": "comment"}, tags=["raw"]))
    assert shown(tables).tags == ("raw", "seen")
    say(tables, LAKE, orders(documentation={"description": "new comment"}))
    assert shown(tables).documentation.description == "new comment"
    assert shown(tables).tags == ("seen",)


def test_a_damaged_contribution_is_named_unless_it_is_replaced(
    tables: CatalogTables, database: StateDatabase
) -> None:
    tables.put_found(orders(), LAKE, hash="h", at=AT)
    say(tables, DBT, orders(tags=["dbt"]))
    database.execute(
        "UPDATE contributions SET document = replace(document, 'note', 'nope') "
        "WHERE contributor = 'source:lake'"
    )
    with pytest.raises(DamagedDocumentError, match="source:lake"):
        tables.contributions.of(ORDERS)
    said = tables.contributions.of(ORDERS, replacing=[LAKE])
    assert {each.contributor for each in said.said} == {DBT}


@pytest.mark.parametrize("name", ["a\\b", "a\0b", "a:b", "*", "名前"])
def test_any_name_of_a_source_is_kept(tables: CatalogTables, name: str) -> None:
    odd = Contributor.of(f"source:{name}")
    tables.put_found(orders(), odd, hash="h", at=AT)
    say(tables, DBT, orders(tags=["dbt"]))
    assert {each.contributor for each in tables.contributions.of(ORDERS).said} == {odd, DBT}
    assert tables.contributions.found_states(odd) == [(ORDERS, "h")]
