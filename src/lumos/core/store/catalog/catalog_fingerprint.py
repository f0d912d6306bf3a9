"""A fingerprint of a catalog, which shows without parsing whether it changed."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from lumos.core.store.database import StateDatabase

_PAGE = 500


class _Table(NamedTuple):
    name: str
    first: str
    second: str
    value: str
    """What is stored under the two keys; a dataset's version comes from its history."""
    document: str = "document"


_TABLES = (
    _Table(
        "datasets",
        "urn",
        "urn",
        "(SELECT max(v.sequence) FROM versions v WHERE v.urn = datasets.urn)",
        "document || COALESCE(observed, '')",
    ),
    _Table("lineage_edges", "edge_key", "edge_key", "NULL"),
    _Table("entities", "kind", "name", "NULL"),
    _Table("identity_map", "urn", "catalog", "NULL"),
)


def catalog_fingerprint(database: StateDatabase) -> str:
    """Return what differs whenever anything that a snapshot would hold does."""
    digest = hashlib.sha256()
    with database.consistent_read():
        for table in _TABLES:
            _add(digest, database, table)
    return digest.hexdigest()


def _add(digest: hashlib._Hash, database: StateDatabase, table: _Table) -> None:
    name, first, second, value, document = table
    # Names of tables and columns are this module's own.
    page = (
        f"SELECT {first} AS first_key, {second} AS second_key, "  # noqa: S608
        f"{document} AS document, {value} AS value FROM {name} "
        f"WHERE ({first}, {second}) > (:first, :second) "
        f"ORDER BY {first}, {second} LIMIT {_PAGE}"
    )
    after = {"first": "", "second": ""}
    digest.update(name.encode())
    while rows := database.query(page, after):
        for row in rows:
            fields = [row.text("first_key"), row.text("second_key"), row.text("document")]
            text = "\0".join([*fields, row.optional_text("value") or ""])
            digest.update(text.encode("utf-8", "surrogatepass"))
            digest.update(b"\0\n")
        after = {"first": rows[-1].text("first_key"), "second": rows[-1].text("second_key")}
