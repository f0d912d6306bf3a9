"""The adapter of Amundsen on the real thing: MariaDB, Amundsen's tables, its metadata service."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
import sqlalchemy
from sqlalchemy import Engine, MetaData, delete
from typing_extensions import override

from amundsen_server import AmundsenServer
from catalog_fates import SHOWN, amundsen_held_by, shown_concepts
from doubles.amundsen_database import AT, publish_orders
from lumos.core.errors import PlatformAuthError, PlatformNotFoundError
from lumos.core.models import ColumnMapping, Owner, Urn, with_parts
from lumos.core.platform.batch import Batch
from lumos.core.platform.fidelity import CONCEPTS, fidelity_of
from lumos.core.platform.impl.amundsen.handler import AmundsenHandler
from lumos.testing.platform_contract import PlatformContract
from lumos.testing.platform_samples import dataset, rich_dataset

ORDERS = Urn.of("hive", "gold", "sales", "orders")
CUSTOMERS = Urn.of("hive", "gold", "sales", "customers")


@pytest.fixture(scope="module")
def everything(amundsen_server: AmundsenServer) -> Iterator[tuple[Engine, MetaData]]:
    """The database with all of its tables, as Amundsen's migrations made them."""
    engine = sqlalchemy.create_engine(amundsen_server.database_url)
    tables = MetaData()
    tables.reflect(engine)
    yield engine, tables
    _empty(engine, tables)  # one that was named is left as it was found
    engine.dispose()


@pytest.fixture
def engine(everything: tuple[Engine, MetaData]) -> Engine:
    """The database, emptied."""
    _empty(*everything)
    return everything[0]


def _empty(engine: Engine, tables: MetaData) -> None:
    with engine.begin() as connection:
        for table in reversed(tables.sorted_tables):
            if table.name != "alembic_version":
                connection.execute(delete(table))


@pytest.fixture
def platform(amundsen_server: AmundsenServer, engine: Engine) -> Iterator[AmundsenHandler]:
    with AmundsenHandler.from_config({"database_url": amundsen_server.database_url}) as platform:
        yield platform


class TestAmundsenOnMariaDb(PlatformContract):
    @pytest.fixture
    @override
    def platform(
        self, amundsen_server: AmundsenServer, engine: Engine
    ) -> Iterator[AmundsenHandler]:
        config = {"database_url": amundsen_server.database_url}
        with AmundsenHandler.from_config(config) as platform:
            yield platform

    @pytest.mark.parametrize("query", ["заказы", "注文"])
    def test_words_that_no_key_can_hold_are_found_in_texts(
        self, platform: AmundsenHandler, query: str
    ) -> None:
        text = "заказы 注文"
        platform.emit_dataset(dataset("orders", documentation={"description": text}))

        assert platform.search(query).total == 1


def test_what_is_declared_as_shown_is_in_its_tables_and_nothing_else(
    amundsen_server: AmundsenServer, engine: Engine
) -> None:
    def connect() -> AmundsenHandler:
        return AmundsenHandler.from_config({"database_url": amundsen_server.database_url})

    shown = shown_concepts(amundsen_held_by(engine, connect), CONCEPTS)

    declared = {name for name in CONCEPTS if fidelity_of(AmundsenHandler, name) in SHOWN}
    assert (declared - shown, shown - declared) == (set(), set())


class Service:
    """The REST interface of the metadata service, which sees what people see."""

    def __init__(self, server: AmundsenServer) -> None:
        self._client = httpx2.Client(base_url=server.url, timeout=60)

    def get(self, path: str, **parameters: str) -> Any:
        answer = self._client.request("GET", path, params=parameters, json={})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def put(self, path: str, body: object, **parameters: str) -> None:
        answer = self._client.put(path, params=parameters, json=body)
        assert answer.status_code in (200, 201), answer.text


@pytest.fixture
def service(amundsen_server: AmundsenServer) -> Service:
    return Service(amundsen_server)


def _table(key: str) -> str:
    return f"/table/{quote(key, safe='')}"


def test_the_service_shows_what_lumos_wrote(platform: AmundsenHandler, service: Service) -> None:
    customers = with_parts(
        rich_dataset("customers"), urn=CUSTOMERS, platform="hive", ownership=[{"user": "ada"}]
    )
    orders = with_parts(customers, urn=ORDERS, name="orders")
    platform.emit_dataset(customers)
    platform.emit_dataset(orders)
    mapping = ColumnMapping(upstream_column="customer_id", downstream_column="customer_id")
    platform.emit_lineage(CUSTOMERS, ORDERS, column_mappings=(mapping,))
    key = "hive://gold.sales/customers"

    shown = service.get(_table(key))
    below = service.get(f"{_table(key)}/lineage", direction="downstream", depth="1")
    column = service.get(
        f"{_table(key)}/column/customer_id/lineage", direction="downstream", depth="1"
    )

    assert shown["description"] == "All who ever bought"
    assert {tag["tag_name"] for tag in shown["tags"]} == {"gold", "pii"}
    assert [owner["email"] for owner in shown["owners"]] == ["ada"]
    assert [each["name"] for each in shown["columns"]] == ["customer_id", "email", "orders"]
    assert shown["columns"][1]["description"] == "Where to write"
    assert [badge["badge_name"] for badge in shown["columns"][0]["badges"]] == ["key"]
    assert [each["key"] for each in below["downstream_entities"]] == ["hive://gold.sales/orders"]
    assert [each["key"] for each in column["downstream_entities"]] == [
        "hive://gold.sales/orders/customer_id"
    ]


def test_what_people_change_through_the_service_is_read(
    platform: AmundsenHandler, service: Service
) -> None:
    written = with_parts(rich_dataset("orders"), urn=ORDERS, platform="hive")
    platform.emit_dataset(written)
    table = _table("hive://gold.sales/orders")
    service.put("/user", {"user_id": "bob@example.org", "email": "bob@example.org"})
    service.put(f"{table}/description", {"description": "All orders"})
    service.put(f"{table}/column/email/description", {"description": "By people"})
    service.put(f"{table}/tag/reviewed", {}, tag_type="default")
    service.put(f"{table}/owner/bob@example.org", {})

    read = platform.get_dataset(ORDERS)

    assert read.documentation.description == "All orders"
    assert read.documentation.business_context == "Billing"
    assert read.schema.fields[1].description == "By people"
    assert read.schema.fields[1].pii
    assert read.tags == ("gold", "pii", "reviewed")
    assert set(read.ownership.owners) == {
        *written.ownership.owners,
        Owner(user="bob@example.org"),
    }


def test_a_catalog_that_others_filled_comes_out_whole_and_goes_in_again(
    platform: AmundsenHandler, engine: Engine, everything: tuple[Engine, MetaData]
) -> None:
    publish_orders(engine)
    before = platform.export_all(at=AT)

    _empty(*everything)
    for one in before.datasets:
        platform.emit_dataset(one)
    for edge in before.lineage_edges:
        platform.apply(Batch(edges=[edge]))
    for user in before.users:
        platform.apply(Batch(entities=[user]))
    for tag in before.tags:
        platform.apply(Batch(entities=[tag]))
    after = platform.export_all(at=AT)

    assert len(before.datasets) == 2
    assert after.datasets == before.datasets
    assert after.lineage_edges == before.lineage_edges
    assert (after.users, after.tags) == (before.users, before.tags)


def test_tables_that_lumos_does_not_model_come_out_as_they_are(
    platform: AmundsenHandler, engine: Engine, everything: tuple[Engine, MetaData]
) -> None:
    published = {"published_tag": "x", "publisher_last_updated_epoch_ms": 1}
    clusters = everything[1].tables["dashboard_cluster"]
    with engine.begin() as connection:
        row = {"rk": "mode_dashboard://gold", "name": "gold", **published}
        connection.execute(clusters.insert(), [row])

    assert platform.extensions() == {"amundsen": {"dashboard_cluster": [row]}}


def test_the_way_out_by_the_command_line(
    amundsen_server: AmundsenServer, engine: Engine, tmp_path: Path
) -> None:
    publish_orders(engine)
    url = amundsen_server.database_url
    settings = f"platform: amundsen\nplatform_config:\n  amundsen:\n    database_url: {url}\n"
    (tmp_path / "lumos.yaml").write_text(settings)

    def lumos(*arguments: str) -> str:
        command = [sys.executable, "-m", "lumos", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout

    lumos("export", "--platform", "amundsen", "--output", "out.json")
    lumos("import", "--input", "out.json", "--platform", "embedded")

    said = lumos("diff", "--source", "amundsen", "--target", "embedded")
    assert "2/2 datasets migrated" in said
    assert "1/1 lineage edges migrated" in said


def test_a_user_who_may_only_read_reads_and_is_told_what_is_missing(
    amundsen_server: AmundsenServer, platform: AmundsenHandler
) -> None:
    written = with_parts(rich_dataset("orders"), urn=ORDERS, platform="hive")
    platform.emit_dataset(written)
    with AmundsenHandler.from_config({"database_url": amundsen_server.readers_url}) as reader:
        assert [*reader.list()] == [written]
        with pytest.raises(PlatformAuthError, match="lacks a privilege"):
            reader.emit_dataset(dataset("another"))


def test_names_that_differ_in_case_only_are_different(platform: AmundsenHandler) -> None:
    lower, upper = (
        with_parts(dataset("t"), urn=Urn.of("hive", "gold", "sales", name), platform="hive")
        for name in ("orders", "ORDERS")
    )
    tagged = with_parts(upper, tags=["pii", "PII"], ownership=[{"user": "ada"}, {"user": "Ada"}])
    platform.apply(Batch(datasets=[lower, tagged]))

    assert [*platform.list()] == [tagged, lower]


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (":x@", ":wrong@", PlatformAuthError),
        ("/amundsen", "/mysql", PlatformAuthError),
        ("/amundsen", "/information_schema", PlatformNotFoundError),
    ],
)
def test_a_wrong_address_is_told_as_what_it_is(
    amundsen_server: AmundsenServer, old: str, new: str, error: type[Exception]
) -> None:
    config = {"database_url": amundsen_server.database_url.replace(old, new)}
    with AmundsenHandler.from_config(config) as platform, pytest.raises(error) as caught:
        platform.get_dataset(dataset().urn)

    assert "wrong" not in str(caught.value)
