"""The rows that pass between the stages, and the tables that the file index keeps of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import orjson

LISTED = (
    "source string, path binary, size long, mtime_us long, etag string, kind string, "
    "anchor boolean, error string, unit binary, position long"
)
"""What a listing finds: files, the files of tables' logs, what could not be listed, and units."""

ITEMS = (
    "source string, path binary, size long, mtime_us long, etag string, kind string, unit binary, "
    "part long, dataset string, layout string, partition string, bond string, format string, "
    "fingerprint string, rows long, rows_estimate long, columns string, dialect string, "
    "facts string, "
    "warnings string, reason string, retry boolean, skipped string"
)
"""What is known of each file or table: where it lies, where it belongs, what was read from it."""

ROW = "row"
"""The column with the kind of a row of a stage; each kind is a separate table."""
FILES, LOGS, UNLISTED, LINKS, UNITS = "file", "log", "unlisted", "link", "unit"
OUTSIDE_LINK = "outside link"
ITEM, SCHEMA, PIECE, BUILT = "item", "schema", "piece", "dataset"
READING_TIME = "time"

SCHEMAS = "fingerprint string, schema string"
PIECES = "source string, dataset string, state binary, schemas string"
"""What one task knows of one dataset: the fold of its files, and their schemas by fingerprint."""
DATASETS = (
    "source string, dataset string, urn string, hash string, format string, document string, "
    "warnings string, reason string, grouping string"
)
"""Datasets, and those that could not be built: these have a reason, and no URN or document."""

UNITS_TO_SCAN = "source string, slot long, number long, content binary"
FOUND = f"{DATASETS}, unit long"
"""Datasets of sources that yield records, with the number of the unit that each was found in."""
RECORDS = (
    "kind string, source string, unit long, key string, urn string, hash string, document string"
)
"""What such sources say beside datasets, and what they looked at: see `ScannedRow`."""
PROBLEMS = (
    "kind string, source string, unit long, key string, urn string, reason string, code string, "
    "hint string, retryable boolean, document string"
)
READING_TIMES = "source string, files long, failed long, bytes long, microseconds long"
"""What a task read of one source; the times of tasks that run at once add up."""
DATASET, EDGE, OBSERVATION = "dataset", "edge", "observation"
SCOPE, MARK, UNIT_DONE = "scope", "mark", "unit_done"
UNREADABLE, UNLISTED_PART, SKIPPED, WARNING = "unreadable", "unlisted", "skipped", "warning"
UNIT_FAILED = "unit_failed"
PROBLEM_KINDS = frozenset({UNREADABLE, UNLISTED_PART, SKIPPED, WARNING, UNIT_FAILED})

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
    """The table format whose log the file belongs to; the path is then that of the table.

    `OUTSIDE_LINK` for a symlink that leads outside of its source and is not followed.
    """
    anchor: bool = False
    """Whether this file alone shows that there is a table."""
    error: str | None = None
    """Why it could not be listed."""


class ListedUnit(NamedTuple):
    """A part of a source that was listed in one go."""

    source: str
    unit: bytes
    files: int
    digest: str | None
    """Says what was there; None where a part could not be listed."""
    is_same: bool
    """Whether it is unchanged, so that its files were not listed."""
    listing_us: int = 0
    """How many microseconds its listing took."""


class ItemToRead(NamedTuple):
    """A file, or a table, that has to be opened."""

    source: str
    path: bytes
    size: int
    mtime_us: int
    etag: str | None
    kind: str | None
    unit: bytes | None = None
    """What it was listed with; a table may be spread over several."""


class RowPlace(NamedTuple):
    """Where a file belongs, all as text: its dataset, and the partition that it lies in."""

    dataset: str
    layout: str
    partition: str
    bond: str | None = None
    """Why it may belong to others, and its name if it does not; None where its path decides."""


class ReadOutcome(NamedTuple):
    """What was read from a file, or from a member of it, or the reason why nothing was."""

    part: int = FILE_PART
    place: RowPlace | None = None
    format: str | None = None
    fingerprint: str | None = None
    rows: int | None = None
    rows_estimate: int | None = None
    columns: str | None = None
    dialect: str | None = None
    """How the file is written, as a JSON object."""
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
    bond: str | None
    dialect: str | None
    warnings: str | None = None
    reason: str | None = None
    """Why it could not be read; it then says nothing but where it lies."""


class BuiltDataset(NamedTuple):
    """A dataset as canonical JSON, or the reason why there is none."""

    source: str
    dataset: str
    urn: str
    hash: str
    format: str
    document: str
    warnings: str | None
    reason: str | None = None
    """Why the dataset could not be built; all but source, dataset and format is then empty."""
    grouping: str | None = None
    """Its name and columns as JSON, where files were put together by what is in them."""


class UnitToScan(NamedTuple):
    """A unit of a source that yields records, on its way to an executor."""

    source: str
    slot: int
    """Which of the scans that the source allows at the same time this one is."""
    number: int
    """Its place among the units of its source, in the order of the plan."""
    content: bytes
    """The unit as a pickle."""


class UnitRetry(NamedTuple):
    """A failed attempt to scan a unit that was followed by another one."""

    attempt: int
    wait_seconds: float
    reason: str
    code: str


class UnitLog(NamedTuple):
    """What a scan of a unit leaves for the log, which only the driver writes."""

    seconds: float = 0.0
    datasets: int = 0
    retries: Sequence[UnitRetry] = ()

    def to_json(self) -> str:
        return orjson.dumps([self.seconds, self.datasets, list(map(list, self.retries))]).decode()

    @classmethod
    def from_json(cls, text: str | None) -> UnitLog:
        """Return what a unit left; nothing for one whose executor failed."""
        if text is None:
            return cls()
        seconds, datasets, retries = orjson.loads(text)
        return cls(seconds, datasets, [UnitRetry(*each) for each in retries])


class ScannedRow(NamedTuple):
    """One record of a source, or the outcome of a unit."""

    kind: str
    """One of the kinds above, or the kind of an entity: user, group, tag, job, …"""
    source: str
    unit: int
    """The number of the unit that it was found in."""
    key: str
    """What identifies it among others of its kind: a URN, a name, the item of a problem, a unit."""
    urn: str | None = None
    """The dataset that it is about, where that is one."""
    hash: str | None = None
    """SHA-256 of the document."""
    document: str | None = None
    """Canonical JSON; the value of a mark; the `UnitLog` of a unit that is over."""
    reason: str | None = None
    """What is wrong; this and the following are as `LumosError` has them."""
    code: str | None = None
    hint: str | None = None
    retryable: bool = False
