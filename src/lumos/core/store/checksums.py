"""Checksums of stored documents: a row that was changed by anything but Lumos is noticed when read.

They find damage and edits by hand, not intent: who may write to the database can write a
checksum too.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.errors import DamagedDocumentError

if TYPE_CHECKING:
    from lumos.core.store.engine import Row, SqlValue

NoteDamage = Callable[[DamagedDocumentError], None]
"""Is called with the error of a row that is left out."""

_HALF: Final = 32
_OFFSET: Final = 1 << 63
"""Brings a number of 64 bits into the range that databases have."""
_ESCAPED: Final = "surrogateescape"  # how bytes that are no text come out of SQLite


class CheckedTable(NamedTuple):
    """What the checksum of a table's rows is made of.

    Attributes:
        table: the table.
        kind: what one row is, for people.
        document: the column of the document.
        keys: the columns that say which document it is, those of the primary key first.
        key_length: of how many columns the primary key is.
        named: the columns that name the row to people.
        column: the column of the checksum.
        earlier: the column with the document of an earlier Lumos, where the other one is null.
        more: a column that goes on where the document ends; null in rows of an earlier Lumos.
    """

    table: str
    kind: str
    document: str
    keys: tuple[str, ...]
    key_length: int
    named: tuple[str, ...]
    column: str = "checksum"
    earlier: str | None = None
    more: str | None = None

    @property
    def primary(self) -> tuple[str, ...]:
        """The columns of the primary key, or of one that is as good."""
        return self.keys[: self.key_length]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a query has to select for a check."""
        others = (name for name in (self.more, self.earlier) if name)
        return tuple(dict.fromkeys((*self.keys, self.document, *others, self.column, *self.named)))

    def select(self, *more: str) -> str:
        """Return the beginning of a query for these columns, and for others."""
        names = ", ".join(dict.fromkeys((*self.columns, *more)))
        return f"SELECT {names} FROM {self.table}"  # noqa: S608 - names of this module

    def checksum(self, values: Mapping[str, SqlValue]) -> int:
        """Return the checksum of a row that is to be written."""
        more = values[self.more] if self.more else None
        return checksum_of(values[self.document], *[values[key] for key in self.keys], more=more)

    def is_whole(self, row: Row) -> bool:
        """Return whether a row is what was written."""
        document = row[self.document]
        if document is None and self.earlier:
            document = row[self.earlier]
        more = row[self.more] if self.more else None
        found = checksum_of(document, *[row[key] for key in self.keys], more=more)
        return found == row[self.column]

    def has_whole_keys(self, row: Row) -> bool:
        """Return whether the keys of a row are what was written; its document need not be there."""
        found = row[self.column]
        keys = [row[key] for key in self.keys]
        return isinstance(found, int) and (found + _OFFSET) >> _HALF == _checksum_of_keys(keys)

    def error(self, row: Row) -> DamagedDocumentError:
        """Return the error for a row that does not match its checksum."""
        if self is ENTITIES:  # a kind of entity is what people know, not that it is one
            return DamagedDocumentError(printable_key(row["kind"]), printable_key(row["name"]))
        return DamagedDocumentError(
            self.kind, " ".join(printable_key(row[name]) for name in self.named)
        )

    def require(self, row: Row) -> None:
        """Check a row.

        Raises:
            DamagedDocumentError: it is not what was written.
        """
        if not self.is_whole(row):
            raise self.error(row)


def whole_rows(rows: Iterable[Row], table: CheckedTable, damaged: NoteDamage) -> list[Row]:
    """Return the rows whose checksums match, and call `damaged` with the errors of the others."""
    found: list[Row] = []
    places: list[int] = []
    for row in rows:
        places = places or row.places(
            (table.column, table.document, table.more or table.document, *table.keys)
        )
        if _is_plainly_whole(row.values, places) or table.is_whole(row):
            found.append(row)
        else:
            damaged(table.error(row))
    return found


def rows_with_whole_keys(rows: Iterable[Row], table: CheckedTable) -> list[Row]:
    """Return the rows whose keys are what was written; their documents need not be there."""
    found: list[Row] = []
    places: list[int] = []
    for row in rows:
        places = places or row.places((table.column, *table.keys))
        if _has_plainly_whole_keys(row.values, places) or table.has_whole_keys(row):
            found.append(row)
    return found


def _has_plainly_whole_keys(values: tuple[SqlValue, ...], places: Sequence[int]) -> bool:
    checksum, *keys = places
    try:
        text = "\n".join([values[key] or "" for key in keys])  # type: ignore[misc]
        return zlib.crc32(text.encode()) == (values[checksum] + _OFFSET) >> _HALF  # type: ignore[operator]
    except (TypeError, UnicodeEncodeError):
        return False


def _is_plainly_whole(values: tuple[SqlValue, ...], places: Sequence[int]) -> bool:
    """Check a row of text alone, as nearly all are, in a third of the time of `is_whole`."""
    checksum, document, more, *keys = places
    try:
        text = "\n".join([values[key] or "" for key in keys])  # type: ignore[misc]
        head, body = zlib.crc32(text.encode()), zlib.crc32(values[document].encode())  # type: ignore[union-attr]
        if more != document and values[more] is not None:
            body = zlib.crc32(values[more].encode(), body)  # type: ignore[union-attr]
    except (AttributeError, TypeError, UnicodeEncodeError):
        return False
    return (head << _HALF | body) - _OFFSET == values[checksum]


def current_version(row: Row, damaged: NoteDamage) -> str | None:
    """Return a dataset's newest version; `damaged` is called for one that is no longer text.

    The checksum of a version lies behind its state, which is too much to read for every dataset:
    a version that is text but not what was written is found by `lumos doctor`.
    """
    version = row.optional_text("current_version")
    if version is None or version.isascii():
        return version
    try:
        version.encode()
    except UnicodeEncodeError:
        damaged(DamagedDocumentError(VERSIONS.kind, printable_key(row["urn"])))
        return None
    return version


def pass_over(_error: DamagedDocumentError) -> None:
    """Leave a damaged row out."""


def refuse_damage(error: DamagedDocumentError) -> None:
    """Raise the error of a damaged row, where the caller asked for this very row."""
    raise error


def checksum_of(document: SqlValue, *keys: SqlValue, more: SqlValue = None) -> int:
    """Return the CRC-32 of the keys and that of the document as one number."""
    body = zlib.crc32(_bytes(more), zlib.crc32(_bytes(document)))
    return (_checksum_of_keys(keys) << _HALF | body) - _OFFSET


def printable_key(value: SqlValue) -> str:
    """Return a key for people, also where it is no text any more."""
    return str(value).encode("utf-8", "backslashreplace").decode()


def _checksum_of_keys(keys: Sequence[SqlValue]) -> int:
    text = "\n".join(["" if key is None else str(key) for key in keys])
    return zlib.crc32(text.encode("utf-8", _ESCAPED))


def _bytes(document: SqlValue) -> bytes:
    if isinstance(document, bytes):
        return document
    return b"" if document is None else str(document).encode("utf-8", _ESCAPED)


DATASETS: Final = CheckedTable(
    "datasets",
    "dataset",
    "document",
    ("urn", "contract_hash", "version"),
    1,
    ("urn",),
    more="observed",
)
EDGES: Final = CheckedTable(
    "lineage_edges",
    "lineage_edge",
    "document",
    ("edge_key", "upstream_urn", "downstream_urn"),
    1,
    ("upstream_urn", "downstream_urn"),
)
ENTITIES: Final = CheckedTable(
    "entities", "entity", "document", ("kind", "name"), 2, ("kind", "name")
)
IDENTITIES: Final = CheckedTable(
    "identity_map", "identity", "document", ("urn", "catalog"), 2, ("urn", "catalog")
)
VERSIONS: Final = CheckedTable(
    "versions",
    "version",
    "document",
    ("urn", "sequence", "version", "contract_hash"),
    2,
    ("urn", "sequence"),
)
PACKED_STATES: Final = CheckedTable(
    "versions",
    "state of version",
    "state",
    ("urn", "sequence"),
    2,
    ("urn", "sequence"),
    column="state_checksum",
    earlier="dataset",
)
CHANGES: Final = CheckedTable(
    "changes", "change", "document", ("urn", "sequence", "position"), 3, ("urn", "sequence")
)
RUNS: Final = CheckedTable("runs", "run", "document", ("id", "operation"), 1, ("id",))
ALERTS: Final = CheckedTable(
    "alerts",
    "alert",
    "document",
    ("id", "channel", "urn", "version"),
    1,
    ("urn", "version", "channel"),
)
SYNC_STATES: Final = CheckedTable(
    "sync_states", "sync state", "kept", ("target", "kind", "name", "hash"), 3, ("name",)
)
CONTRIBUTIONS: Final = CheckedTable(
    "contributions",
    "contribution",
    "document",
    ("urn", "contributor"),
    2,
    ("urn", "contributor"),
)
EDGE_CONTRIBUTIONS: Final = CheckedTable(
    "edge_contributions",
    "edge contribution",
    "document",
    ("edge_key", "contributor"),
    2,
    ("upstream_urn", "downstream_urn", "contributor"),
)
OBSERVATIONS: Final = CheckedTable(
    "observations",
    "observation",
    "document",
    ("urn", "kind", "contributor", "sequence", "at"),
    4,
    ("urn", "kind", "contributor", "at"),
)
TABLES: Final = (
    DATASETS,
    OBSERVATIONS,
    CONTRIBUTIONS,
    EDGE_CONTRIBUTIONS,
    EDGES,
    ENTITIES,
    IDENTITIES,
    VERSIONS,
    PACKED_STATES,
    CHANGES,
    RUNS,
    ALERTS,
    SYNC_STATES,
)
