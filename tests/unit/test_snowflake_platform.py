"""What the adapter of Snowflake makes of tables and views, on the emulator fakesnow."""
# ruff: noqa: S608 - statements of tests

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import strategies
from doubles.snowflake_account import DATABASE, SnowflakeAccount, snowflake_over
from lumos.core.errors import DatasetNotFoundError, PlatformAnswerError, PlatformError
from lumos.core.models import (
    DatasetLineage,
    LumosDataset,
    Owner,
    Tag,
    TypeName,
    Urn,
    with_parts,
)
from lumos.core.models.dataset import DatasetKind
from lumos.core.platform.batch import Batch
from lumos.core.platform.batches import dataset_or_none
from lumos.core.platform.fidelity import CONCEPTS
from lumos.core.platform.impl.snowflake.handler import SnowflakeHandler
from lumos.core.platform.impl.snowflake.mapping.sql import literal, qualified
from lumos.core.platform.interface import SearchFilters
from lumos.testing.platform_concepts import concept_dataset
from lumos.testing.platform_samples import HOSTILE_NAMES, dataset, rich_dataset

ORDERS = Urn.of("snowflake", DATABASE, "PUBLIC", "ORDERS")
RECENT = Urn.of("snowflake", DATABASE, "PUBLIC", "RECENT")
TABLE = qualified(DATABASE, "PUBLIC", "ORDERS")
VIEW = qualified(DATABASE, "PUBLIC", "RECENT")
OTHERS = (
    f'CREATE TABLE {TABLE} ("ID" NUMBER(38,0) NOT NULL, "Total" NUMBER(10,2), '
    '"NOTE" VARCHAR(40), "RAW" VARIANT, "AT" TIMESTAMP_NTZ, "DONE" BOOLEAN)',
    f'CREATE VIEW {VIEW} AS SELECT "ID" FROM {TABLE}',
    f"COMMENT ON TABLE {TABLE} IS 'All orders'",
    f"COMMENT ON COLUMN {TABLE}.\"Total\" IS 'It''s in euro'",
    f'CREATE SCHEMA "{DATABASE}"."GOVERNANCE"',
    f'CREATE TAG "{DATABASE}"."GOVERNANCE"."COST_CENTER"',
    f'CREATE TAG "{DATABASE}"."GOVERNANCE"."PII"',
    f'ALTER TABLE {TABLE} SET TAG "{DATABASE}"."GOVERNANCE"."COST_CENTER" = \'sales\'',
    f'ALTER TABLE {TABLE} MODIFY COLUMN "NOTE" SET TAG "{DATABASE}"."GOVERNANCE"."PII" = \'true\'',
)


@pytest.fixture(scope="module")
def shared_account() -> SnowflakeAccount:
    return SnowflakeAccount()


@pytest.fixture
def account(shared_account: SnowflakeAccount) -> SnowflakeAccount:
    shared_account.reset()
    shared_account.run(*OTHERS)
    return shared_account


@pytest.fixture
def platform(account: SnowflakeAccount) -> Iterator[SnowflakeHandler]:
    with snowflake_over(account) as platform:
        yield platform


def on_the_table(one: LumosDataset) -> LumosDataset:
    """Return a dataset with the name of a table that is there."""
    return with_parts(one, urn=ORDERS, name="ORDERS", platform="snowflake")


def written(account: SnowflakeAccount) -> list[str]:
    return [each for each in account.statements if not each.startswith(("SELECT", "SHOW"))]


class TestReading:
    def test_a_table_comes_out_with_columns_comments_tags_and_its_owner(
        self, platform: SnowflakeHandler
    ) -> None:
        orders = platform.get_dataset(ORDERS)

        assert orders.kind is DatasetKind.TABLE
        assert (orders.database, orders.namespace, orders.name) == (DATABASE, "PUBLIC", "ORDERS")
        assert orders.documentation.description == "All orders"
        assert orders.tags == ("COST_CENTER=sales",)
        assert orders.ownership.owners == (Owner(group="SYSADMIN"),)
        assert [(field.name, field.signature()) for field in orders.schema.fields] == [
            ("ID", "DECIMAL(38,0)"),
            ("Total", "DECIMAL(10,2)"),
            ("NOTE", "STRING(40)"),
            ("RAW", "JSON"),
            ("AT", "TIMESTAMP_NTZ"),
            ("DONE", "BOOLEAN"),
        ]
        assert not orders.schema.fields[0].nullable
        assert orders.schema.fields[1].description == "It's in euro"
        assert orders.schema.fields[2].tags == ("PII",)
        assert orders.statistics is not None
        assert orders.statistics.row_count == 0
        kept = orders.extensions["snowflake"]
        assert isinstance(kept, dict)
        assert kept["table_type"] == "BASE TABLE"
        assert kept["tags"] == [{"tag": f"{DATABASE}.GOVERNANCE.COST_CENTER", "value": "sales"}]

    def test_a_view_is_a_view(self, platform: SnowflakeHandler) -> None:
        assert platform.get_dataset(RECENT).kind is DatasetKind.VIEW

    def test_all_is_listed_and_what_lumos_keeps_is_not(self, platform: SnowflakeHandler) -> None:
        platform.emit_dataset(dataset("a"))

        found = [one.urn for one in platform.list(page_size=1)]

        assert found == [dataset("a").urn, ORDERS, RECENT]

    def test_a_tag_of_the_schema_is_not_one_of_its_tables(
        self, platform: SnowflakeHandler, account: SnowflakeAccount, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(account, "tags_of_schema", True)

        assert platform.get_dataset(ORDERS).tags == ("COST_CENTER=sales",)

    def test_reading_makes_and_changes_nothing(
        self, platform: SnowflakeHandler, account: SnowflakeAccount
    ) -> None:
        assert len([*platform.list()]) == 2
        assert [tag.name for tag in platform.list_entities("tag") if isinstance(tag, Tag)] == [
            "COST_CENTER",
            "PII",
        ]
        assert platform.identity_map() == {}
        assert platform.reached().startswith("snowflake ")

        assert written(account) == []


class TestWriting:
    def test_comments_and_tags_are_shown_and_all_comes_back(
        self, platform: SnowflakeHandler, account: SnowflakeAccount
    ) -> None:
        one = on_the_table(
            with_parts(
                rich_dataset(),
                schema={
                    "fields": [
                        {"name": "ID", "type": "INT64", "description": "Its 'id'", "tags": ["key"]},
                        {"name": "ELSEWHERE", "type": "STRING"},
                    ]
                },
            )
        )
        before = account.uses[(DATABASE, "PUBLIC", "ORDERS"), None].copy()
        platform.emit_dataset(one)

        found = platform.get_dataset(ORDERS)
        assert found == one
        own = {(DATABASE, "LUMOS", "gold"): "true", (DATABASE, "LUMOS", "pii"): "true"}
        assert account.uses[(DATABASE, "PUBLIC", "ORDERS"), None] == before | own
        assert account.uses[(DATABASE, "PUBLIC", "ORDERS"), "ID"] == {
            (DATABASE, "LUMOS", "key"): "true"
        }
        ((comment,),) = account.run(
            f'SELECT COMMENT FROM "{DATABASE}".INFORMATION_SCHEMA.COLUMNS '
            "WHERE COLUMN_NAME = 'ID' AND TABLE_NAME = 'ORDERS'"
        )
        assert comment == "Its 'id'"
        assert f"COMMENT ON TABLE {TABLE} IS 'All who ever bought'" in written(account)

    def test_what_is_so_already_is_not_written_again(
        self, platform: SnowflakeHandler, account: SnowflakeAccount
    ) -> None:
        platform.emit_dataset(on_the_table(rich_dataset()))
        account.statements.clear()
        platform.emit_dataset(on_the_table(rich_dataset()))

        assert written(account) == []

    def test_a_view_gets_its_comments_and_tags_as_a_view(
        self, platform: SnowflakeHandler, account: SnowflakeAccount
    ) -> None:
        fields = [{"name": "ID", "type": "INT64", "description": "it's", "tags": ["key"]}]
        one = dataset(
            "x",
            schema={"fields": fields},
            tags=["gold"],
            documentation={"description": "The last 'week'"},
        )
        platform.emit_dataset(with_parts(one, urn=RECENT, name="RECENT", platform="snowflake"))

        told = "\n".join(written(account))
        assert f"COMMENT ON VIEW {VIEW} IS 'The last ''week'''" in told
        assert f"ALTER VIEW {VIEW} SET TAG" in told
        assert f'ALTER VIEW {VIEW} MODIFY COLUMN "ID" SET TAG' in told
        assert f"""ALTER VIEW {VIEW} ALTER COLUMN "ID" COMMENT 'it''s'""" in told
        assert "COMMENT ON COLUMN" not in told
        assert platform.get_dataset(RECENT).schema.fields[0].description == "it's"

    def test_every_concept_comes_back_from_a_table(
        self, platform: SnowflakeHandler, account: SnowflakeAccount
    ) -> None:
        emitted = {}
        for concept in CONCEPTS:
            sample = concept_dataset(concept)
            if sample is not None:
                account.run(f'CREATE TABLE {qualified(DATABASE, "PUBLIC", concept)} ("id" NUMBER)')
                urn = Urn.of("snowflake", DATABASE, "PUBLIC", concept)
                emitted[urn] = with_parts(sample, urn=urn, name=concept, platform="snowflake")
        platform.apply(Batch(datasets=[*emitted.values()]))

        found = {one.urn: one for one in platform.list()}
        assert {urn: found[urn] for urn in emitted} == emitted

    @settings(
        max_examples=8,
        phases=[Phase.generate],  # a failure is seen without minutes of shrinking
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(data=st.data())
    def test_any_dataset_comes_back_from_a_table(
        self, platform: SnowflakeHandler, data: st.DataObject
    ) -> None:
        drawn = on_the_table(data.draw(strategies.datasets()))
        one = with_parts(drawn, lineage=DatasetLineage())
        platform.emit_dataset(one)

        assert platform.get_dataset(ORDERS) == one

    def test_names_and_text_are_only_names_and_text(
        self, platform: SnowflakeHandler, account: SnowflakeAccount
    ) -> None:
        """A table, its column, its tag and its comments have each of the hostile names."""
        usable = [name for name in HOSTILE_NAMES.values() if "\0" not in name and len(name) < 256]
        for name in usable:
            account.make_table(name, column=name)
            urn = Urn.of("snowflake", DATABASE, "PUBLIC", name)
            fields = [{"name": name, "type": "STRING", "description": name, "tags": [name]}]
            one = with_parts(
                dataset("x"),
                schema={"fields": fields},
                tags=[name],
                documentation={"description": name},
            )
            one = with_parts(one, urn=urn, name=name, platform="snowflake")
            platform.emit_dataset(one)

            assert platform.get_dataset(urn) == one, name
        assert len([*platform.list()]) == len(usable) + 2
        assert platform.get_dataset(ORDERS).documentation.description == "All orders"

    def test_tables_of_others_are_never_made_changed_or_dropped(
        self, platform: SnowflakeHandler, account: SnowflakeAccount
    ) -> None:
        platform.emit_dataset(on_the_table(rich_dataset()))
        platform.emit_dataset(with_parts(rich_dataset("new"), platform="snowflake"))
        platform.emit_dataset(on_the_table(dataset()))
        platform.apply(Batch(entities=[Tag(name="gold", description="Checked")]))
        platform.delete(rich_dataset("new").urn)

        own = f'"{DATABASE}"."LUMOS"'
        allowed = (
            f"CREATE SCHEMA IF NOT EXISTS {own}",
            f"CREATE TABLE IF NOT EXISTS {own}.",
            f"CREATE TAG IF NOT EXISTS {own}.",
            f"ALTER TAG {own}.",
            f"MERGE INTO {own}.",
            f"DELETE FROM {own}.",
            "COMMENT ON ",
        )
        for statement in written(account):
            is_tagging = statement.startswith("ALTER ") and "SET TAG " in statement
            assert statement.startswith(allowed) or is_tagging, statement

    def test_a_tag_of_others_stays_on_the_table_where_lumos_does_not_name_it(
        self, platform: SnowflakeHandler, account: SnowflakeAccount
    ) -> None:
        before = {place: uses.copy() for place, uses in account.uses.items()}
        platform.emit_dataset(on_the_table(dataset()))

        assert account.uses == before
        assert platform.get_dataset(ORDERS) == on_the_table(dataset())

    def test_more_tags_than_snowflake_takes_come_back_all_the_same(
        self, platform: SnowflakeHandler, account: SnowflakeAccount
    ) -> None:
        tags = tuple(f"t{number:02}" for number in range(60))
        platform.emit_dataset(on_the_table(with_parts(dataset(), tags=tags)))

        assert len(account.uses[(DATABASE, "PUBLIC", "ORDERS"), None]) == 50
        assert platform.get_dataset(ORDERS).tags == tags

    def test_an_edition_without_tags_keeps_them_in_the_stash(
        self, account: SnowflakeAccount
    ) -> None:
        with snowflake_over(account, use_tags=False) as platform:
            platform.emit_dataset(on_the_table(rich_dataset()))
            platform.apply(Batch(entities=[Tag(name="gold")]))

            assert platform.get_dataset(ORDERS) == on_the_table(rich_dataset())
            assert [*platform.list_entities("tag")] == [Tag(name="gold")]
        assert not any(" TAG" in statement for statement in account.statements)

    def test_ownership_moves_only_where_that_was_asked_for(
        self, platform: SnowflakeHandler, account: SnowflakeAccount
    ) -> None:
        sales = on_the_table(with_parts(dataset(), ownership=[{"group": "SALES"}]))
        platform.emit_dataset(sales)
        assert account.owners == {}
        assert platform.get_dataset(ORDERS).ownership == sales.ownership

        with snowflake_over(account, transfer_ownership=True) as transferring:
            transferring.emit_dataset(sales)
            assert transferring.get_dataset(ORDERS).ownership == sales.ownership
        assert account.owners == {(DATABASE, "PUBLIC", "ORDERS"): "SALES"}


class TestWhatPeopleChange:
    """What Lumos wrote and others changed in Snowflake since."""

    @pytest.fixture
    def one(self, platform: SnowflakeHandler) -> LumosDataset:
        fields = [{"name": "ID", "type": "INT64", "pii": True, "description": "old"}]
        one = on_the_table(with_parts(rich_dataset(), schema={"fields": fields}))
        platform.emit_dataset(one)
        return one

    def test_their_text_counts_and_all_else_stays(
        self, platform: SnowflakeHandler, account: SnowflakeAccount, one: LumosDataset
    ) -> None:
        account.run(
            f"COMMENT ON TABLE {TABLE} IS {literal('By people')}",
            f"COMMENT ON COLUMN {TABLE}.\"ID\" IS 'new'",
            f'ALTER TABLE {TABLE} UNSET TAG "{DATABASE}"."LUMOS"."gold"',
        )

        found = platform.get_dataset(ORDERS)

        assert found.documentation.description == "By people"
        assert found.documentation.business_context == "Billing"
        assert found.schema.fields[0].description == "new"
        assert found.schema.fields[0].pii
        assert found.tags == ("pii",)
        assert (found.properties, found.ownership) == (one.properties, one.ownership)

    def test_a_column_that_was_added_is_seen(
        self, platform: SnowflakeHandler, account: SnowflakeAccount, one: LumosDataset
    ) -> None:
        account.run(f'ALTER TABLE {TABLE} ADD COLUMN "CITY" VARCHAR')

        fields = {field.name: field for field in platform.get_dataset(ORDERS).schema.fields}

        assert fields["CITY"].type is TypeName.STRING
        assert fields["ID"] == one.schema.fields[0]

    def test_a_table_that_was_dropped_is_gone(
        self, platform: SnowflakeHandler, account: SnowflakeAccount, one: LumosDataset
    ) -> None:
        account.run(f"DROP VIEW {VIEW}", f"DROP TABLE {TABLE}")

        assert dataset_or_none(platform, ORDERS) is None
        assert [*platform.list()] == []
        with pytest.raises(DatasetNotFoundError):
            platform.delete(ORDERS)

    def test_what_a_table_loses_by_being_replaced_is_not_lost(
        self, platform: SnowflakeHandler, account: SnowflakeAccount, one: LumosDataset
    ) -> None:
        account.replace_table("ORDERS", '"ID" NUMBER')

        found = platform.get_dataset(ORDERS)

        assert found.documentation == one.documentation
        assert found.tags == one.tags
        assert found.schema.fields[0] == one.schema.fields[0]
        platform.emit_dataset(found)
        assert {tag[2] for tag in account.uses[(DATABASE, "PUBLIC", "ORDERS"), None]} == {*one.tags}
        account.run(f"COMMENT ON TABLE {TABLE} IS ''")
        assert platform.get_dataset(ORDERS).documentation.description is None

    def test_a_comment_on_a_tag_counts(
        self, platform: SnowflakeHandler, account: SnowflakeAccount
    ) -> None:
        platform.apply(Batch(entities=[Tag(name="silver", description="mine", sensitive=True)]))
        account.run(f'ALTER TAG "{DATABASE}"."LUMOS"."silver" SET COMMENT = \'theirs\'')

        found = {tag.name: tag for tag in platform.list_entities("tag") if isinstance(tag, Tag)}
        assert found["silver"] == Tag(name="silver", description="theirs", sensitive=True)


def test_many_are_found_by_as_many_statements_as_one(
    platform: SnowflakeHandler, account: SnowflakeAccount
) -> None:
    emitted = [on_the_table(rich_dataset()), *(dataset(f"d{number}") for number in range(30))]
    platform.apply(Batch(datasets=emitted))
    account.statements.clear()

    found = platform.find_datasets([one.urn for one in emitted] + [RECENT, dataset("no").urn])

    assert [found[one.urn].dataset for one in emitted] == emitted
    there = {urn for urn, each in found.items() if each.dataset}
    assert there == {RECENT, *(one.urn for one in emitted)}
    assert len(account.statements) == 4  # tables, their tags and columns, the stash


@pytest.mark.parametrize("query", ["all orders", "euro", "total", "snowflake shop", "sysadmin"])
def test_a_table_is_found_by_what_snowflake_says_of_it(
    platform: SnowflakeHandler, query: str
) -> None:
    (hit,) = platform.search(query, SearchFilters(platform="snowflake"), limit=1).hits

    assert hit.urn == ORDERS
    assert hit.external_id == f"{DATABASE}.PUBLIC.ORDERS"


def test_a_table_is_found_by_what_lumos_wrote_of_it(platform: SnowflakeHandler) -> None:
    platform.emit_dataset(on_the_table(rich_dataset()))

    for query in ("ever bought", "gold", "billing orders", "finance-team"):
        assert [hit.urn for hit in platform.search(query).hits] == [ORDERS], query
    assert [hit.urn for hit in platform.search("", SearchFilters(tag="gold")).hits] == [ORDERS]
    assert platform.search("").total == 2


class TestWhatIsNoTable:
    def test_a_dataset_for_which_there_is_no_table_is_kept_all_the_same(
        self, platform: SnowflakeHandler
    ) -> None:
        planned = Urn.of("snowflake", DATABASE, "PUBLIC", "PLANNED")
        elsewhere = Urn.of("snowflake", "FINANCE", "customers")
        for urn in (planned, elsewhere):
            one = with_parts(rich_dataset(), urn=urn, platform="snowflake")
            platform.emit_dataset(one)
            assert platform.get_dataset(urn) == one

    def test_when_the_table_comes_it_is_shown_there(
        self, platform: SnowflakeHandler, account: SnowflakeAccount
    ) -> None:
        planned = Urn.of("snowflake", DATABASE, "PUBLIC", "PLANNED")
        one = with_parts(rich_dataset(), urn=planned, name="PLANNED", platform="snowflake")
        platform.emit_dataset(one)
        account.run(f'CREATE TABLE {qualified(DATABASE, "PUBLIC", "PLANNED")} ("ID" NUMBER)')

        found = platform.get_dataset(planned)
        assert found.documentation == one.documentation
        assert "ID" in {field.name for field in found.schema.fields}
        platform.emit_dataset(found)
        assert (DATABASE, "LUMOS", "gold") in account.uses[(DATABASE, "PUBLIC", "PLANNED"), None]
        assert platform.get_dataset(planned) == found

    def test_a_table_cannot_be_deleted_and_it_is_said_why(self, platform: SnowflakeHandler) -> None:
        with pytest.raises(PlatformError, match="does not drop tables"):
            platform.delete(ORDERS)

        assert dataset_or_none(platform, ORDERS) is not None

    def test_a_stash_that_others_changed_is_told(
        self, platform: SnowflakeHandler, account: SnowflakeAccount
    ) -> None:
        platform.emit_dataset(rich_dataset())
        account.run(f'UPDATE "{DATABASE}"."LUMOS"."STASH" SET DOCUMENT = \'{{\'')

        with pytest.raises(PlatformAnswerError, match="changed or is incomplete"):
            platform.get_dataset(rich_dataset().urn)
