"""Amundsen's tables in SQLite: a double of its database for tests without a server.

Keys, lengths and cascades are those of the real tables; the service tests run the same contract on
MariaDB with tables that Amundsen's own migrations made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy
from sqlalchemy import Engine, event, insert
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry

from lumos.core.platform.impl.amundsen.client.database import AmundsenDatabase
from lumos.core.platform.impl.amundsen.handler import AmundsenHandler
from lumos.core.platform.impl.amundsen.mapping import tables

AT = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
PUBLISHED = {"published_tag": "2024-01-14", "publisher_last_updated_epoch_ms": 1_705_190_400_000}


def sqlite_engine(path: Path) -> Engine:
    """Return an engine of a new file with the tables of Amundsen in it."""
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")

    @event.listens_for(engine, "connect")
    def _keep_references(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        connection.cursor().execute("PRAGMA foreign_keys = ON")
        connection.cursor().execute("PRAGMA synchronous = OFF")

    tables.METADATA.create_all(engine)
    return engine


def amundsen_over(engine: Engine) -> AmundsenHandler:
    """Return the adapter over an engine, by a clock that stands."""
    return AmundsenHandler(AmundsenDatabase(engine, clock=lambda: AT))


def publish(engine: Engine, **rows: Sequence[Mapping[str, object]]) -> None:
    """Insert rows as Amundsen's own publisher does, by the names of their tables."""
    with engine.begin() as connection:
        for name, given in rows.items():
            table = tables.METADATA.tables[name]
            connection.execute(insert(table), [{**row, **PUBLISHED} for row in given])


def publish_orders(engine: Engine) -> None:
    """Publish a table with all that Amundsen can know of it, one above it, and their lineage."""
    key, source = "hive://gold.sales/orders", "hive://gold.raw/orders"
    publish(
        engine,
        database_metadata=[{"rk": "database://hive", "name": "hive"}],
        cluster_metadata=[{"rk": "hive://gold", "name": "gold", "database_rk": "database://hive"}],
        schema_metadata=[
            {"rk": f"hive://gold.{name}", "name": name, "cluster_rk": "hive://gold"}
            for name in ("sales", "raw")
        ],
        table_metadata=[
            {"rk": key, "name": "orders", "is_view": False, "schema_rk": "hive://gold.sales"},
            {"rk": source, "name": "orders", "is_view": True, "schema_rk": "hive://gold.raw"},
        ],
        column_metadata=[
            {
                "rk": f"{table}/{name}",
                "name": name,
                "type": kind,
                "sort_order": place,
                "table_rk": table,
            }
            for table in (key, source)
            for place, (name, kind) in enumerate(
                [("order_id", "bigint"), ("total", "decimal(10,2)"), ("tags", "array<string>")]
            )
        ],
        users=[
            {"rk": f"{name}@example.org", "email": f"{name}@example.org", "team_name": "data"}
            for name in ("ada", "bob")
        ],
        tag=[{"rk": "finance", "tag_type": "default"}, {"rk": "unused", "tag_type": "default"}],
        badge=[{"rk": "beta", "category": "table_status"}, {"rk": "pk", "category": "column"}],
        table_description=[_text(f"{key}/_description", "All orders", table_rk=key)],
        column_description=[
            _text(f"{key}/total/_description", "In euro", column_rk=f"{key}/total")
        ],
        table_programmatic_description=[
            {**_text(f"{key}/_quality_description", "99 %", table_rk=key)}
            | {"description_source": "quality_report"}
        ],
        table_tag=[{"table_rk": key, "tag_rk": "finance"}],
        table_badge=[{"table_rk": key, "badge_rk": "beta"}],
        column_badge=[{"column_rk": f"{key}/order_id", "badge_rk": "pk"}],
        table_owner=[{"table_rk": key, "user_rk": "ada@example.org"}],
        table_follower=[{"table_rk": key, "user_rk": "bob@example.org"}],
        table_usage=[{"table_rk": key, "user_rk": "bob@example.org", "read_count": 7}],
        table_source=[
            {"rk": f"{key}/_source", "source": "https://git.example.org", "source_type": "github"}
            | {"table_rk": key}
        ],
        table_timestamp=[
            {"rk": f"{key}/timestamp", "last_updated_timestamp": 1_705_314_600, "name": "updated"}
            | {"timestamp": 1_705_314_600, "table_rk": key}
        ],
        table_watermark=[
            {"rk": f"{key}/high_watermark/", "partition_key": "ds", "partition_value": "2024-01-14"}
            | {"create_time": "2024-01-14T01:00:00", "table_rk": key}
        ],
        column_stat=[
            {"rk": f"{key}/total/max/", "stat_type": "max", "stat_val": "99.5"}
            | {"start_epoch": "0", "end_epoch": "1", "column_rk": f"{key}/total"}
        ],
        application=[
            {"rk": "application://airflow/load", "application_url": "https://airflow.example.org"}
            | {"name": "Airflow", "id": "load/orders", "description": "Airflow with id load"}
        ],
        application_table=[{"rk": key, "application_rk": "application://airflow/load"}],
        table_lineage=[{"table_source_rk": source, "table_target_rk": key}],
        column_lineage=[
            {"column_source_rk": f"{source}/total", "column_target_rk": f"{key}/total"}
        ],
    )


def _text(key: str, text: str, **owner: str) -> dict[str, object]:
    return {"rk": key, "description_source": "description", "description": text, **owner}
