"""The tables of Amundsen's relational back end that Lumos reads and writes."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Integer, MetaData, String, Table
from sqlalchemy import Text as LongText

METADATA = MetaData()
PUBLISHER = "lumos"
"""Who wrote a row, in the column that Amundsen's removal of stale rows looks at."""
LONGEST_TAG = 128
LONGEST_USER = 320
_LONGEST_NAME = 256
LONGEST_TYPE = 32
LONGEST_CATEGORY = 32

_KEY = 1024
_COLUMN_KEY = 1536


def _key(name: str = "rk", *, length: int = _KEY) -> Column[str]:
    return Column(name, String(length), primary_key=True)


def _to(name: str, target: str, *, length: int = _KEY, primary: bool = False) -> Column[str]:
    reference = ForeignKey(f"{target}.rk", ondelete="CASCADE")
    return Column(name, String(length), reference, primary_key=primary, nullable=False)


def _table(name: str, *columns: Column[str] | Column[int] | Column[bool]) -> Table:
    return Table(
        name,
        METADATA,
        *columns,
        Column("published_tag", String(128)),
        Column("publisher_last_updated_epoch_ms", BigInteger),
    )


def _name(name: str = "name", *, length: int = _LONGEST_NAME) -> Column[str]:
    return Column(name, String(length), nullable=False)


def _described(name: str, owner: str, target: str) -> Table:
    text: Column[str] = Column("description", LongText)
    return _table(name, _key(), _name("description_source", length=32), text, _to(owner, target))


def _number(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False)


DATABASE = _table("database_metadata", _key(), _name())
CLUSTER = _table("cluster_metadata", _key(), _name(), _to("database_rk", "database_metadata"))
SCHEMA = _table("schema_metadata", _key(), _name(), _to("cluster_rk", "cluster_metadata"))
TABLE = _table(
    "table_metadata",
    _key(),
    _name(),
    Column("is_view", Boolean, nullable=False),
    _to("schema_rk", "schema_metadata"),
)
COLUMN = _table(
    "column_metadata",
    _key(length=_COLUMN_KEY),
    _name(length=768),
    _name("type", length=LONGEST_TYPE),
    _number("sort_order"),
    _to("table_rk", "table_metadata"),
)
USER = _table(
    "users",
    _key(length=LONGEST_USER),
    _name("email", length=LONGEST_USER),
    Column("is_active", Boolean),
    *(
        Column(name, String(length))
        for name, length in {
            "profile_url": 320,
            "first_name": 64,
            "last_name": 64,
            "full_name": 256,
            "github_username": 128,
            "team_name": 128,
            "employee_type": 32,
            "slack_id": 32,
            "role_name": 32,
            "manager_rk": 320,
        }.items()
    ),
)
TAG = _table("tag", _key(length=LONGEST_TAG), _name("tag_type", length=32))
BADGE = _table("badge", _key(length=LONGEST_TAG), _name("category", length=LONGEST_CATEGORY))
TABLE_DESCRIPTION = _described("table_description", "table_rk", "table_metadata")
NOTE = _described("table_programmatic_description", "table_rk", "table_metadata")
COLUMN_DESCRIPTION = _described("column_description", "column_rk", "column_metadata")
_OF_TABLE = ("table_rk", "table_metadata")


def _joined(name: str, owner: tuple[str, str], other: str, *more: Column[int]) -> Table:
    mine = _to(*owner, length=_COLUMN_KEY, primary=True)
    return _table(
        name, mine, _to(f"{other.rstrip('s')}_rk", other, length=320, primary=True), *more
    )


TABLE_TAG = _joined("table_tag", _OF_TABLE, "tag")
TABLE_BADGE = _joined("table_badge", _OF_TABLE, "badge")
COLUMN_BADGE = _joined("column_badge", ("column_rk", "column_metadata"), "badge")
TABLE_OWNER = _joined("table_owner", _OF_TABLE, "users")
FOLLOWER = _joined("table_follower", _OF_TABLE, "users")
USAGE = _joined("table_usage", _OF_TABLE, "users", _number("read_count"))
SOURCE = _table(
    "table_source",
    _key(),
    _name("source", length=2048),
    _name("source_type", length=32),
    _to(*_OF_TABLE),
)
TIMESTAMP = _table(
    "table_timestamp",
    _key(),
    _number("last_updated_timestamp"),
    _number("timestamp"),
    _name(),
    _to(*_OF_TABLE),
)
WATERMARK = _table(
    "table_watermark",
    _key(),
    *(_name(name, length=32) for name in ("partition_key", "partition_value", "create_time")),
    _to(*_OF_TABLE),
)
STAT = _table(
    "column_stat",
    _key(length=_COLUMN_KEY),
    _name("stat_type"),
    _name("stat_val", length=128),
    _name("start_epoch", length=16),
    _name("end_epoch", length=16),
    _to("column_rk", "column_metadata", length=_COLUMN_KEY),
)
APPLICATION = _table(
    "application",
    _key(),
    _name("application_url", length=2048),
    _name(),
    _name("id", length=128),
    Column("description", LongText, nullable=False),
)
APPLICATION_TABLE = _table(
    "application_table",
    _to("rk", "table_metadata", primary=True),
    _to("application_rk", "application"),
)


def _lineage(kind: str) -> Table:
    ends = (
        _to(f"{kind}_{end}_rk", f"{kind}_metadata", primary=True) for end in ("source", "target")
    )
    return _table(f"{kind}_lineage", *ends)


TABLE_LINEAGE = _lineage("table")
COLUMN_LINEAGE = _lineage("column")
