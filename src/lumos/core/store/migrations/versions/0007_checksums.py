"""A checksum for each stored document, so that damage is noticed when it is read."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

# Table, column of the checksum, its document as SQL, and the columns of its keys.
CHECKSUMS = (
    ("datasets", "checksum", "document", ("urn", "contract_hash", "version")),
    ("lineage_edges", "checksum", "document", ("edge_key", "upstream_urn", "downstream_urn")),
    ("entities", "checksum", "document", ("kind", "name")),
    ("identity_map", "checksum", "document", ("urn", "catalog")),
    ("versions", "checksum", "document", ("urn", "sequence", "version", "contract_hash")),
    ("versions", "state_checksum", "state", ("urn", "sequence")),
    ("changes", "checksum", "document", ("urn", "sequence", "position")),
    ("runs", "checksum", "document", ("id", "operation")),
    ("alerts", "checksum", "document", ("id", "channel", "urn", "version")),
    ("sync_states", "checksum", "kept", ("target", "kind", "name", "hash")),
)
_PAGE = 1_000


def upgrade() -> None:
    for table, column, _, _ in CHECKSUMS:
        op.add_column(table, sa.Column(column, sa.BigInteger))
    if op.get_context().dialect.name == "sqlite":
        _fill_sqlite()
    else:
        _fill_postgresql()


def downgrade() -> None:
    # Never by a copy of a table: dropping the old one would take along what refers to it.
    for table, column, _, _ in CHECKSUMS:
        op.execute(f"ALTER TABLE {table} DROP COLUMN {column}")


def _fill_sqlite() -> None:
    """Let SQLite call the checksum for each row; bytes that are no text any more pass too."""
    connection = op.get_bind()
    driver = connection.connection.driver_connection
    if driver is None:
        raise RuntimeError("the migration has no connection")
    driver.create_function("lumos_checksum", -1, _checksum, deterministic=True)
    for table, column, document, keys in CHECKSUMS:
        if column == "state_checksum":
            document = "COALESCE(state, dataset)"  # noqa: PLW2901
        given = ", ".join(f"CAST({each} AS BLOB)" for each in (document, *keys))
        connection.exec_driver_sql(f"UPDATE {table} SET {column} = lumos_checksum({given})")  # noqa: S608


def _fill_postgresql() -> None:
    connection = op.get_bind()
    for table, column, document, keys in CHECKSUMS:
        earlier = ("dataset",) if column == "state_checksum" else ()
        found = connection.exec_driver_sql(
            f"SELECT ctid::text, {', '.join((*keys, document, *earlier))} FROM {table}",  # noqa: S608
            execution_options={"stream_results": True},
        )
        filled = sa.text(f"UPDATE {table} SET {column} = :sum WHERE ctid = CAST(:row AS tid)")  # noqa: S608
        for page in found.partitions(_PAGE):
            rows = [(row[0], row[1 : 1 + len(keys)], row[1 + len(keys) :]) for row in page]
            connection.execute(
                filled,
                [
                    {"row": place, "sum": _checksum(_first(documents), *map(_bytes, values))}
                    for place, values, documents in rows
                ],
            )


def _first(documents: Sequence[object]) -> bytes | None:
    return next((_bytes(each) for each in documents if each is not None), None)


def _bytes(value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return str(value).encode()


def _checksum(document: bytes | None, *keys: bytes | None) -> int:
    head = zlib.crc32(b"\n".join([key or b"" for key in keys]))
    return (head << 32 | zlib.crc32(document or b"")) - (1 << 63)
