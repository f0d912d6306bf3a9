"""The rows that pass between the stages, and the tables that the file index keeps of them."""

from __future__ import annotations

from typing import NamedTuple

LISTED = (
    "source string, path binary, size long, mtime_us long, etag string, kind string, "
    "anchor boolean, error string"
)
"""What a listing finds: files, the logs of tables, and what could not be listed."""

ITEMS = (
    "source string, path binary, size long, mtime_us long, etag string, kind string, part long, "
    "dataset string, layout string, partition string, format string, fingerprint string, "
    "rows long, rows_estimate long, columns string, facts string, warnings string, "
    "reason string, retry boolean, skipped string"
)
"""What is known of each file or table: where it lies, where it belongs, what was read from it."""

READ = f"{ITEMS}, schema string"
"""What reading gives; each schema comes at least once in every task that meets it."""

SCHEMAS = "fingerprint string, schema string"
DATASETS = (
    "source string, dataset string, urn string, hash string, format string, document string, "
    "warnings string"
)

FILE_PART = 0
"""The row that stands for a whole file; members of it, such as further sheets, count up."""
CARRIED_PART = -1
"""What was read before from a file that cannot be read now."""


class ListedFile(NamedTuple):
    """A file of a source, or a part of it that could not be listed."""

    source: str
    path: bytes
    size: int | None
    mtime_us: int | None
    etag: str | None = None
    kind: str | None = None
    """The table format whose log the file belongs to; the path is then that of the table."""
    anchor: bool = False
    """Whether this file alone shows that there is a table."""
    error: str | None = None


class ItemToRead(NamedTuple):
    """A file, or a table, that has to be opened."""

    source: str
    path: bytes
    size: int
    mtime_us: int
    etag: str | None
    kind: str | None


class Place(NamedTuple):
    """Where a file belongs, all as text: its dataset, and the partition that it lies in."""

    dataset: str
    layout: str
    partition: str


class ReadOutcome(NamedTuple):
    """What was read from a file, or from a member of it, or the reason why nothing was."""

    part: int = FILE_PART
    place: Place | None = None
    format: str | None = None
    fingerprint: str | None = None
    rows: int | None = None
    rows_estimate: int | None = None
    columns: str | None = None
    facts: str | None = None
    warnings: str | None = None
    reason: str | None = None
    retry: bool = False
    """Whether the reason may pass by itself, so that the file is tried again unchanged."""
    skipped: str | None = None
    schema: str | None = None


class FileRow(NamedTuple):
    """What a fold needs to know of one file."""

    path: bytes
    size: int
    mtime_us: int
    layout: str
    partition: str
    format: str
    fingerprint: str
    rows: int | None
    rows_estimate: int | None
    columns: str | None
    facts: str | None


class BuiltDataset(NamedTuple):
    """A dataset as canonical JSON."""

    source: str
    dataset: str
    urn: str
    hash: str
    format: str
    document: str
    warnings: str | None
