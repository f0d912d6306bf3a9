"""The adapter of Snowflake through Snowflake's own connector, to the emulator as a server.

`make test` runs the same emulator in its process. Here all goes over HTTP, as to Snowflake: the
login, the statements as the connector sends them, and the types of what it makes of the answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import fakesnow
import pytest
import snowflake.connector
from pydantic import JsonValue

from lumos.core.errors import PlatformNotFoundError, PlatformUnavailableError
from lumos.core.models import Urn, with_parts
from lumos.core.models.dataset import DatasetKind
from lumos.core.platform.batch import Batch
from lumos.core.platform.batches import dataset_or_none
from lumos.core.platform.impl.snowflake.handler import SnowflakeHandler
from lumos.testing.platform_samples import (
    ENTITY_MAKERS,
    HOSTILE_NAMES,
    dataset,
    edge,
    rich_dataset,
)
from ports import closed_port, free_port

pytestmark = [
    pytest.mark.service,
    pytest.mark.filterwarnings("ignore:Arrow output on a DB-API result:UserWarning"),
]
ORDERS = Urn.of("snowflake", "SHOP", "PUBLIC", "ORDERS")


class Server(NamedTuple):
    """The emulator, and how Lumos gets there; it takes tags without keeping them."""

    config: dict[str, JsonValue]
    connection: snowflake.connector.SnowflakeConnection


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with fakesnow.server(port=free_port()) as arguments:
        arguments["network_timeout"] = 60
        connection = snowflake.connector.connect(**arguments, database="SHOP", schema="PUBLIC")
        config: dict[str, JsonValue] = {
            name: arguments[name] for name in ("account", "user", "password", "host", "port")
        }
        yield Server(
            {**config, "protocol": "http", "databases": ["SHOP"], "use_tags": False}, connection
        )
        connection.close()


@pytest.fixture
def platform(server: Server) -> Iterator[SnowflakeHandler]:
    with server.connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA IF EXISTS LUMOS CASCADE")
        cursor.execute(
            "CREATE OR REPLACE TABLE ORDERS (ID NUMBER(38,0) NOT NULL, TOTAL NUMBER(10,2), "
            "NOTE VARCHAR(40), MADE TIMESTAMP_NTZ)"
        )
    with SnowflakeHandler.from_config(server.config) as platform:
        yield platform


def test_it_says_who_it_is(platform: SnowflakeHandler) -> None:
    assert platform.reached().startswith("snowflake 1")


def test_a_table_comes_out_with_its_types(platform: SnowflakeHandler) -> None:
    orders = platform.get_dataset(ORDERS)

    assert orders.kind is DatasetKind.TABLE
    assert [field.signature() for field in orders.schema.fields] == [
        "DECIMAL(38,0)",
        "DECIMAL(10,2)",
        "STRING(40)",
        "TIMESTAMP_NTZ",
    ]
    assert orders.statistics is not None
    assert orders.statistics.row_count == 0


def test_a_dataset_goes_onto_its_table_and_edits_come_back(
    platform: SnowflakeHandler, server: Server
) -> None:
    one = with_parts(rich_dataset(), urn=ORDERS, name="ORDERS", platform="snowflake")
    platform.emit_dataset(one)
    assert platform.get_dataset(ORDERS) == one

    with server.connection.cursor() as cursor:
        cursor.execute("COMMENT ON TABLE ORDERS IS 'By people'")

    assert platform.get_dataset(ORDERS).documentation.description == "By people"
    assert platform.get_dataset(ORDERS).properties == one.properties


def test_names_are_only_names_on_the_wire(platform: SnowflakeHandler) -> None:
    # The emulator takes a dollar sign within a constant for a variable.
    names = [name for name in HOSTILE_NAMES.values() if "$" not in name]
    emitted = [
        dataset(name, tags=[name], documentation={"description": name}, properties={name: name})
        for name in names
    ]
    platform.apply(Batch(datasets=emitted))

    found = {one.urn: one for one in platform.list()}
    assert [found[one.urn] for one in emitted] == emitted
    assert len(found) == len(emitted) + 1


def test_all_else_is_kept(platform: SnowflakeHandler) -> None:
    one, two = dataset("one"), dataset("two")
    platform.apply(Batch(datasets=[one, two]))
    platform.apply(Batch(edges=[edge(one, two, provenance="it's")]))
    for kind, make in ENTITY_MAKERS.items():
        platform.apply(Batch(entities=[make("it's")]))
        assert [*platform.list_entities(kind)] == [make("it's")]
    assert [*platform.list_edges()] == [edge(one, two, provenance="it's")]

    platform.delete(one.urn)

    assert [*platform.list_edges()] == []
    assert dataset_or_none(platform, one.urn) is None


def test_what_is_not_there_is_told(server: Server) -> None:
    config: dict[str, JsonValue] = {**server.config, "databases": ["NO_SUCH"]}
    with (
        SnowflakeHandler.from_config(config) as platform,
        pytest.raises(PlatformNotFoundError),
    ):
        platform.reached()
    nobody = {**server.config, "port": closed_port(), "timeout": 1}
    with (
        SnowflakeHandler.from_config(nobody) as platform,
        pytest.raises(PlatformUnavailableError),
    ):
        platform.reached()
