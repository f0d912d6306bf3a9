"""What the adapter of Amundsen makes of its tables, on a double of its database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, delete, func, select, update

from doubles.amundsen_database import AT, amundsen_over, publish, publish_orders, sqlite_engine
from lumos.core.errors import (
    ConfigurationError,
    PlatformAnswerError,
    PlatformUnavailableError,
)
from lumos.core.models import (
    ColumnMapping,
    LineageEdge,
    LumosDataset,
    Owner,
    Tag,
    TypeName,
    Urn,
    with_parts,
)
from lumos.core.models.base import sha256_of
from lumos.core.models.dataset import DatasetKind
from lumos.core.platform.batch import Batch
from lumos.core.platform.batches import dataset_or_none
from lumos.core.platform.fidelity import CONCEPTS
from lumos.core.platform.impl.amundsen.handler import AmundsenHandler
from lumos.core.platform.impl.amundsen.mapping import tables
from lumos.core.platform.impl.amundsen.mapping.keys import column_key, key_of, native_key_of
from lumos.core.platform.impl.amundsen.mapping.packed_text import packed, unpacked
from lumos.core.platform.type_spelling import type_of_spelling
from lumos.testing.platform_samples import dataset, rich_dataset
from lumos.testing.strategies import names, urns

ORDERS = Urn.of("hive", "gold", "sales", "orders")
RAW = Urn.of("hive", "gold", "raw", "orders")
KEY = "hive://gold.sales/orders"


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return sqlite_engine(tmp_path / "amundsen.db")


@pytest.fixture
def platform(engine: Engine) -> Iterator[AmundsenHandler]:
    with amundsen_over(engine) as platform:
        yield platform


class TestReadingWhatOthersPublished:
    def test_a_table_comes_out_with_its_columns_people_and_labels(
        self, platform: AmundsenHandler, engine: Engine
    ) -> None:
        publish_orders(engine)

        orders = platform.get_dataset(ORDERS)

        assert orders.kind is DatasetKind.TABLE
        assert (orders.database, orders.namespace, orders.name) == ("gold", "sales", "orders")
        assert orders.documentation.description == "All orders"
        assert orders.tags == ("beta", "finance")
        assert orders.ownership.owners == (Owner(user="ada@example.org"),)
        assert [(field.name, field.type) for field in orders.schema.fields] == [
            ("order_id", TypeName.INT64),
            ("total", TypeName.DECIMAL),
            ("tags", TypeName.ARRAY),
        ]
        assert orders.schema.fields[1].description == "In euro"
        assert orders.schema.fields[0].tags == ("pk",)
        assert orders.statistics is not None
        assert orders.statistics.last_modified == AT
        assert orders.statistics.query_count == 7

    def test_what_has_no_canonical_place_is_kept_as_it_is(
        self, platform: AmundsenHandler, engine: Engine
    ) -> None:
        publish_orders(engine)

        kept = platform.get_dataset(ORDERS).extensions["amundsen"]

        assert isinstance(kept, dict)
        assert kept["key"] == KEY
        assert kept["badges"] == {"table": {"beta": "table_status"}, "column": {"pk": "column"}}
        assert isinstance(kept["rows"], dict)
        assert sorted(kept["rows"]) == [
            "application",
            "application_table",
            "column_stat",
            "table_follower",
            "table_programmatic_description",
            "table_source",
            "table_timestamp",
            "table_usage",
            "table_watermark",
        ]

    def test_lineage_comes_out_down_to_columns(
        self, platform: AmundsenHandler, engine: Engine
    ) -> None:
        publish_orders(engine)

        (edge,) = platform.list_edges()

        assert (edge.upstream_urn, edge.downstream_urn) == (RAW, ORDERS)
        assert edge.column_mappings == (
            ColumnMapping(upstream_column="total", downstream_column="total"),
        )
        assert platform.get_dataset(ORDERS).lineage.upstream == (RAW,)

    def test_people_tags_and_the_names_of_tables_come_out(
        self, platform: AmundsenHandler, engine: Engine
    ) -> None:
        publish_orders(engine)

        exported = platform.export_all(at=AT)

        assert [user.username for user in exported.users] == ["ada@example.org", "bob@example.org"]
        assert exported.tags == (Tag(name="finance"), Tag(name="unused"))
        assert exported.identity_map == {
            RAW: {"amundsen": "hive://gold.raw/orders"},
            ORDERS: {"amundsen": KEY},
        }

    def test_an_export_goes_into_an_empty_amundsen_without_loss(
        self, platform: AmundsenHandler, engine: Engine, tmp_path: Path
    ) -> None:
        publish_orders(engine)
        before = platform.export_all(at=AT)
        other = sqlite_engine(tmp_path / "other.db")

        with amundsen_over(other) as target:
            for one in before.datasets:
                target.emit_dataset(one)
            for edge in before.lineage_edges:
                target.apply(Batch(edges=[edge]))
            after = target.export_all(at=AT)

        assert after.datasets == before.datasets
        assert after.lineage_edges == before.lineage_edges
        own = {"table_metadata", "table_programmatic_description"}  # Lumos keeps its own there
        for name in {*tables.METADATA.tables} - own:
            if name.startswith(("table_", "column_", "application", "badge")):
                assert _count(other, name) == _count(engine, name), name

    def test_tables_that_no_urn_of_lumos_spells_are_found_again(
        self, platform: AmundsenHandler, engine: Engine
    ) -> None:
        publish_orders(engine)
        publish(
            engine,
            database_metadata=[{"rk": "database://Hive 2", "name": "Hive 2"}],
            cluster_metadata=[
                {"rk": "Hive 2://gold", "name": "gold", "database_rk": "database://Hive 2"}
            ],
            schema_metadata=[{"rk": "Hive 2://gold.s", "name": "s", "cluster_rk": "Hive 2://gold"}],
            table_metadata=[
                {"rk": "Hive 2://gold.s/my ü", "name": "my ü", "is_view": False}
                | {"schema_rk": "Hive 2://gold.s"},
                {"rk": "hive://gold.sales/a b", "name": "a b", "is_view": False}
                | {"schema_rk": "hive://gold.sales"},
            ],
        )

        for one in platform.list():
            assert platform.get_dataset(one.urn) == one
            platform.emit_dataset(one)

        assert _count(engine, "table_metadata") == 4


class TestWhatPeopleChange:
    """What Lumos wrote and others changed in Amundsen since."""

    @pytest.fixture
    def written(self, platform: AmundsenHandler) -> LumosDataset:
        owners = [{"group": "finance"}, {"user": "ada"}]
        one = with_parts(rich_dataset("orders"), urn=ORDERS, platform="hive", ownership=owners)
        platform.emit_dataset(one)
        return one

    def test_their_text_counts_and_all_else_stays(
        self, platform: AmundsenHandler, engine: Engine, written: LumosDataset
    ) -> None:
        with engine.begin() as connection:
            text = update(tables.TABLE_DESCRIPTION).values(description="By people")
            connection.execute(text)
            connection.execute(delete(tables.COLUMN_DESCRIPTION))

        read = platform.get_dataset(ORDERS)

        assert read.documentation.description == "By people"
        assert read.documentation.business_context == "Billing"
        assert read.schema.fields[1].description is None
        assert read.schema.fields[1].pii
        assert read.schema.fields[2] == written.schema.fields[2]
        assert read.properties == written.properties

    def test_owners_and_tags_that_amundsen_cannot_hold_stay_beside_theirs(
        self, platform: AmundsenHandler, engine: Engine, written: LumosDataset
    ) -> None:
        publish(
            engine,
            users=[{"rk": "bob", "email": "bob"}],
            table_owner=[{"table_rk": KEY, "user_rk": "bob"}],
        )
        with engine.begin() as connection:
            connection.execute(
                delete(tables.TABLE_OWNER).where(tables.TABLE_OWNER.c.user_rk == "ada")
            )
            connection.execute(delete(tables.TABLE_TAG).where(tables.TABLE_TAG.c.tag_rk == "pii"))

        read = platform.get_dataset(ORDERS)

        assert read.ownership.owners == (Owner(group="finance"), Owner(user="bob"))
        assert read.tags == ("gold",)

    def test_columns_that_were_added_changed_or_dropped_are_seen(
        self, platform: AmundsenHandler, engine: Engine, written: LumosDataset
    ) -> None:
        publish(
            engine,
            column_metadata=[
                {"rk": f"{KEY}/city", "name": "city", "type": "varchar(40)", "sort_order": 9}
                | {"table_rk": KEY}
            ],
        )
        column = tables.COLUMN
        with engine.begin() as connection:
            connection.execute(delete(column).where(column.c.name == "orders"))
            changed = update(column).where(column.c.name == "customer_id").values(type="string")
            connection.execute(changed)

        fields = platform.get_dataset(ORDERS).schema.fields

        assert [(each.name, each.type) for each in fields] == [
            ("customer_id", TypeName.STRING),
            ("email", TypeName.STRING),
            ("city", TypeName.STRING),
        ]
        assert fields[1] == written.schema.fields[1]

    def test_an_edge_that_they_removed_is_gone(
        self, platform: AmundsenHandler, engine: Engine, written: LumosDataset
    ) -> None:
        platform.emit_dataset(dataset("customers"))
        platform.emit_lineage(dataset("customers").urn, ORDERS)
        with engine.begin() as connection:
            connection.execute(delete(tables.TABLE_LINEAGE))

        assert [*platform.list_edges()] == []
        assert platform.get_dataset(ORDERS).lineage.upstream == ()

    def test_a_stash_that_was_tampered_with_is_told(
        self, platform: AmundsenHandler, engine: Engine, written: LumosDataset
    ) -> None:
        note = tables.NOTE
        with engine.begin() as connection:
            stash = update(note).where(note.c.description_source == "lumos-stash")
            connection.execute(stash.values(description="lz1:secret"))

        with pytest.raises(PlatformAnswerError) as caught:
            platform.get_dataset(ORDERS)

        assert "secret" not in str(caught.value)

    @pytest.mark.parametrize(
        ("told", "read"),
        [
            (1_705_314_600, "2024-01-15T10:30:00Z"),
            (1_705_314_600_000, "2024-01-15T10:30:00Z"),
            (-(10**12), "1938-04-24T22:13:20Z"),
            (10**17, None),
        ],
    )
    def test_the_time_of_a_table_is_read_whatever_a_publisher_wrote(
        self, platform: AmundsenHandler, engine: Engine, told: int, read: str | None
    ) -> None:
        publish_orders(engine)
        with engine.begin() as connection:
            connection.execute(update(tables.TIMESTAMP).values(last_updated_timestamp=told))
            connection.execute(update(tables.USAGE).values(read_count=-1))

        found = platform.get_dataset(ORDERS).to_json()

        assert found.get("statistics", {}) == ({"last_modified": read} if read else {})
        assert str(told) in str(found["extensions"])


class TestWriting:
    def test_an_edge_is_shown_as_soon_as_both_ends_are_there(
        self, platform: AmundsenHandler, engine: Engine
    ) -> None:
        one, two = dataset("one"), dataset("two")
        edge = LineageEdge(upstream_urn=one.urn, downstream_urn=two.urn, provenance="sql")
        platform.apply(Batch(edges=[edge]))
        platform.emit_dataset(one)
        assert _count(engine, "table_lineage") == 0

        platform.emit_dataset(two)

        assert _count(engine, "table_lineage") == 1
        assert [*platform.list_edges()] == [edge]

    def test_what_others_publish_on_a_table_is_never_taken_away(
        self, platform: AmundsenHandler, engine: Engine
    ) -> None:
        publish_orders(engine)
        platform.emit_dataset(with_parts(rich_dataset("orders"), urn=ORDERS, platform="hive"))

        for name in ("table_follower", "table_usage", "table_watermark", "table_source"):
            assert _count(engine, name) == 1
        notes = select(tables.NOTE).where(tables.NOTE.c.description_source == "quality_report")
        with engine.begin() as connection:
            assert len(connection.execute(notes).all()) == 1

    def test_what_amundsens_removal_of_stale_rows_took_is_written_again(
        self, platform: AmundsenHandler, engine: Engine
    ) -> None:
        one = rich_dataset("orders")
        platform.emit_dataset(one)
        with engine.begin() as connection:  # by the tag of its publisher, as that job does
            stale = tables.TABLE.c.published_tag != "2024-01-15"
            connection.execute(delete(tables.TABLE).where(stale))
        assert dataset_or_none(platform, one.urn) is None

        platform.emit_dataset(one)

        assert platform.get_dataset(one.urn) == one

    def test_a_failed_write_leaves_no_trace(
        self, platform: AmundsenHandler, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise PlatformUnavailableError("gone")

        target = "lumos.core.platform.impl.amundsen.writer.tables.TableWriter._write_notes"
        monkeypatch.setattr(target, fail)
        with pytest.raises(PlatformUnavailableError):
            platform.emit_dataset(rich_dataset())

        assert _count(engine, "table_metadata") == 0

    def test_a_batch_is_written_as_a_whole(self, platform: AmundsenHandler) -> None:
        batch = [rich_dataset(name) for name in ("a", "b", "c")]
        platform.apply(Batch(datasets=batch))

        assert [*platform.list()] == batch

    def test_a_wide_dataset_is_kept_in_several_pieces(self, platform: AmundsenHandler) -> None:
        fields = [
            {"name": f"column_{place}", "type": "STRING", "description": sha256_of(place)}
            for place in range(2_000)
        ]
        wide = dataset("wide", schema={"fields": fields})
        platform.emit_dataset(wide)

        assert platform.get_dataset(wide.urn) == wide

    def test_every_concept_has_a_declared_fate(self) -> None:
        assert {*AmundsenHandler.FIDELITY} == {*CONCEPTS}


class TestKeys:
    @pytest.mark.parametrize(
        ("parts", "key"),
        [
            (("gold", "sales", "orders"), "s3://gold.sales/orders"),
            (("lake", "orders"), "s3://lumos.lake/orders"),
            (("orders",), "s3://lumos.lumos/orders"),
        ],
    )
    def test_plain_names_make_plain_keys(self, parts: tuple[str, ...], key: str) -> None:
        assert key_of(Urn.of("s3", *parts)).text == key

    @given(st.lists(urns(), min_size=2, max_size=2, unique=True))
    def test_no_two_urns_share_a_key(self, pair: list[Urn]) -> None:
        one, other = (key_of(urn).text for urn in pair)

        assert one != other
        assert one.isascii()

    @given(urns())
    def test_a_key_of_others_leads_back_to_its_urn(self, urn: Urn) -> None:
        key = native_key_of(urn)

        assert key is None or key.urn() == urn

    @given(st.lists(names, min_size=2, max_size=2, unique=True))
    def test_no_two_columns_share_a_key(self, pair: list[str]) -> None:
        one, other = (column_key("t", name) for name in pair)

        assert one != other


@pytest.mark.parametrize(
    ("spelling", "signature"),
    [
        ("bigint", TypeName.INT64),
        ("VARCHAR(40)", TypeName.STRING),
        ("decimal(10, 2)", TypeName.DECIMAL),
        ("array<struct<a:int,b:map<string,double>>>", TypeName.ARRAY),
        ("row(a varchar, b array(bigint))", TypeName.STRUCT),
        ("timestamp with time zone", TypeName.TIMESTAMP),
        ("array<struct<a:int,b:map<stri...", TypeName.UNKNOWN),
        ("struct<a:int,a:int>", TypeName.UNKNOWN),
        ("something else", TypeName.UNKNOWN),
    ],
)
def test_spellings_of_types_are_understood_or_kept(spelling: str, signature: TypeName) -> None:
    parts = type_of_spelling(spelling)

    assert parts["type"] is signature
    assert parts["native_type"] == spelling


@given(st.text(max_size=40))
def test_no_spelling_of_a_type_is_an_error(spelling: str) -> None:
    with_type = {"name": "x", **type_of_spelling(f"struct<{spelling}>")}

    dataset(schema={"fields": [with_type]})


@given(
    st.dictionaries(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
)
def test_any_document_is_packed_as_plain_ascii(document: dict[str, str]) -> None:
    pieces = packed({**document})

    assert all(piece.isascii() for piece in pieces)
    assert unpacked(pieces) == document


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"database_url": "bolt://secret@neo4j:7687"},
        {"database_url": "secret"},
        {"database_url": "mysql://secret@host/db", "timeout": 0},
        {"database_url": "mysql://secret@host/db", "token": "x"},
    ],
)
def test_wrong_settings_are_told_without_echo(config: dict[str, str | int]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        AmundsenHandler.from_config(config)

    assert "platform_config.amundsen" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_database_that_is_down_is_told_in_one_line() -> None:
    config = {"database_url": "mysql://lumos:secret@127.0.0.1:1/amundsen"}
    platform = AmundsenHandler.from_config(config)
    with platform, pytest.raises(PlatformUnavailableError) as caught:
        platform.get_dataset(ORDERS)

    assert "secret" not in str(caught.value)
    assert "\n" not in caught.value.message


def _count(engine: Engine, name: str) -> int:
    with engine.begin() as connection:
        table = tables.METADATA.tables[name]
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())
