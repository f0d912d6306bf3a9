"""Whatever stands in one row of a catalog in a database: all else is read, that one or its name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, Table, select, text, update
from sqlalchemy.exc import StatementError

from doubles.amundsen_database import amundsen_over, publish, publish_orders, sqlite_engine
from doubles.snowflake_account import DATABASE, SnowflakeAccount, snowflake_over
from lumos.core.models import DatasetLineage, LumosDataset, with_parts
from lumos.core.platform.abilities import (
    EntityAbility,
    ExtensionAbility,
    IdentityAbility,
    LineageAbility,
)
from lumos.core.platform.batch import Batch
from lumos.core.platform.impl.amundsen.mapping import tables
from lumos.core.platform.impl.snowflake.client import SnowflakeSession
from lumos.core.platform.impl.snowflake.handler import SnowflakeHandler
from lumos.core.platform.interface import ENTITY_KINDS, MetadataPlatformInterface
from lumos.testing.platform_samples import ENTITY_MAKERS, edge, rich_dataset

EXAMPLES = 300 if os.environ.get("LUMOS_TEST_FULL") == "1" else 25
ODD_VALUES: tuple[Any, ...] = (None, "", " ", -1, 0, 2**62, "x", "{", '{"v":1}', "lumos://", "\x00")
KEY, SOURCE = "hive://gold.sales/orders", "hive://gold.raw/orders"
ROWS = (
    (tables.TABLE, "rk"),
    (tables.COLUMN, "table_rk"),
    (tables.TABLE_DESCRIPTION, "table_rk"),
    (tables.NOTE, "table_rk"),
    (tables.SOURCE, "table_rk"),
    (tables.TIMESTAMP, "table_rk"),
    (tables.WATERMARK, "table_rk"),
    (tables.USAGE, "table_rk"),
)


def alone(found: LumosDataset) -> LumosDataset:
    return with_parts(found, lineage=DatasetLineage())


def all_of(platform: MetadataPlatformInterface) -> None:
    """Read all that is no dataset."""
    assert all(
        each.upstream_urn != each.downstream_urn
        for each in LineageAbility.of(platform).list_edges()
    )
    for kind in ENTITY_KINDS:
        [*EntityAbility.of(platform).list_entities(kind)]
    IdentityAbility.of(platform).identity_map()
    ExtensionAbility.of(platform).extensions()
    platform.search("")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """An Amundsen with tables of its own and datasets that Lumos wrote."""
    engine = sqlite_engine(tmp_path_factory.mktemp("amundsen") / "amundsen.db")
    publish_orders(engine)
    with amundsen_over(engine) as platform:
        for kind in ENTITY_KINDS:
            platform.apply(Batch(entities=[ENTITY_MAKERS[kind](f"some {kind}")]))
        above, below = rich_dataset("above"), rich_dataset("below")
        platform.apply(Batch(datasets=[above, below]))
        platform.apply(Batch(edges=[edge(above, below)]))
        platform.apply(Batch(extensions={"other": {"kept": True}}))
    return engine


@settings(max_examples=EXAMPLES)
@given(
    kind=st.sampled_from(ROWS),
    number=st.integers(min_value=0, max_value=100),
    column=st.integers(min_value=0, max_value=100),
    value=st.sampled_from(ODD_VALUES),
)
def test_one_odd_row_of_amundsen_costs_no_other(
    engine: Engine, kind: tuple[Table, str], *, number: int, column: int, value: Any
) -> None:
    with amundsen_over(engine) as platform:
        before = {each.urn: alone(each) for each in platform.list()}
    table, owner = kind
    with engine.begin() as connection:
        keys = sorted({row[0] for row in connection.execute(select(table.c[owner]))})
    key = keys[number % len(keys)]
    names = [each.name for each in table.c if not each.primary_key and not each.foreign_keys]
    name = names[column % len(names)]
    here = table.c[owner] == key
    with engine.begin() as connection:
        rows = [dict(row) for row in connection.execute(select(table).where(here)).mappings()]
    try:
        with engine.begin() as connection:
            connection.execute(update(table).where(here).values({name: value}))
    except StatementError:  # the database takes no such value
        return
    try:
        with amundsen_over(engine) as platform:
            after = {each.urn: alone(each) for each in platform.list()}
            named = [each for each in platform.unreadable() if each.kind == "dataset"]
            all_of(platform)
    finally:
        with engine.begin() as connection:
            for row in rows:
                same = [table.c[each.name] == row[each.name] for each in table.primary_key.columns]
                connection.execute(update(table).where(*same).values(row))
    assert len(after) + len(named) == len(before)
    differing = [urn for urn, each in before.items() if after.get(urn) != each]
    assert len(differing) <= 1


def test_a_table_of_amundsen_that_reads_itself_keeps_that_on_its_way(tmp_path: Path) -> None:
    engine = sqlite_engine(tmp_path / "amundsen.db")
    publish_orders(engine)
    publish(engine, table_lineage=[{"table_source_rk": KEY, "table_target_rk": KEY}])
    with amundsen_over(engine) as platform:
        found = {each.urn: each for each in platform.list()}
        edges = [*platform.list_edges()]
        assert [(each.upstream_urn, each.downstream_urn) for each in edges] == [
            ("lumos://hive/gold/raw/orders", "lumos://hive/gold/sales/orders")
        ]
        orders = found[edges[0].downstream_urn]
        platform.apply(Batch(removed_edges=[edges[0]]))
    pairs = text("SELECT table_source_rk, table_target_rk FROM table_lineage")
    with engine.begin() as connection:
        assert [tuple(row) for row in connection.execute(pairs)] == [(KEY, KEY)]
    other = sqlite_engine(tmp_path / "other.db")
    with amundsen_over(other) as platform:
        platform.emit_dataset(alone(orders))
        assert [*platform.list()] == [alone(orders)]
        assert [*platform.list_edges()] == []
    with other.begin() as connection:
        assert [tuple(row) for row in connection.execute(pairs)] == [(KEY, KEY)]


@pytest.fixture(scope="module")
def snowflake() -> Iterator[SnowflakeHandler]:
    """A Snowflake with two tables, of which Lumos knows more, and datasets that are none."""
    account = SnowflakeAccount()
    for name in ("ORDERS", "OTHERS"):
        account.run(f'CREATE TABLE "{DATABASE}"."PUBLIC"."{name}" ("ID" BIGINT, "NOTE" VARCHAR(9))')
    with snowflake_over(account) as platform:
        tables = [with_parts(each, tags=("gold",)) for each in platform.list()]
        datasets = [*tables, rich_dataset("above"), rich_dataset("below")]
        platform.apply(Batch(datasets=datasets))
        platform.apply(Batch(edges=[edge(datasets[2], datasets[3])]))
        platform.apply(Batch(extensions={"other": {"kept": True}}))
        for kind in ENTITY_KINDS:
            platform.apply(Batch(entities=[ENTITY_MAKERS[kind](f"some {kind}")]))
        yield platform


@settings(max_examples=EXAMPLES)
@given(
    victim=st.sampled_from(
        ["ORDERS", "lumos://s3/lake/above", f"lumos://snowflake/{DATABASE}/PUBLIC/ORDERS"]
    ),
    place=st.integers(min_value=1, max_value=11),
    value=st.sampled_from(ODD_VALUES),
)
def test_one_odd_row_of_snowflake_costs_no_other(
    snowflake: SnowflakeHandler, victim: str, place: int, value: Any
) -> None:
    before = {each.urn: alone(each) for each in snowflake.list()}
    untouched = SnowflakeSession.rows

    def rows(self: SnowflakeSession, statement: str) -> list[tuple[object, ...]]:
        return [
            (*row[:place], value, *row[place + 1 :])
            if victim in row[:2] and row[place : place + 1] not in ((), (victim,))
            else row
            for row in untouched(self, statement)
        ]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SnowflakeSession, "rows", rows)
        after = {each.urn: alone(each) for each in snowflake.list()}
        named = [each for each in snowflake.unreadable() if each.kind == "dataset"]
        all_of(snowflake)
    assert len(after) + len(named) == len(before)
    differing = [urn for urn, each in before.items() if after.get(urn) != each]
    assert len(differing) <= 1
