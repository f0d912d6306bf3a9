"""Reads the timeline of a Hudi table: which commits were completed, and what each one wrote.

Up to version 0.15 the instants lie in `.hoodie` itself and are JSON. From 1.0 on they lie in
`.hoodie/timeline`, carry the time of their completion in the name, and are Avro.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.tables.parts import (
    Totals,
    count_of,
    parsed_object,
)
from lumos.core.formats.tables.ranges import LARGEST_DOCUMENT_BYTES, joined, read_log_document
from lumos.core.json_reading import Json, as_objects, as_texts, object_at, objects_at, text_at

if TYPE_CHECKING:
    from lumos.core.formats.tables.access import TableAccess, TableEntry

LOG_FOLDER: Final = ".hoodie"
_AVRO = b"Obj\x01"
_INSTANT = re.compile(
    r"(?P<start>\d{14,17})(?:_(?P<end>\d{14,17}))?\."
    r"(?P<action>commit|deltacommit|replacecommit|clustering)"
)
_ACTIONS: Final = frozenset({"commit", "deltacommit", "replacecommit", "clustering"})
_MANIFEST = re.compile(r"manifest_(\d{1,18})")
_LOG_FILE = re.compile(r"\..*\.log\.\d+.*")


class Instant(NamedTuple):
    """A completed change of the table's data."""

    completed: str
    start: str
    action: str
    folder: str
    entry: TableEntry


def completed_instants(entries: Iterable[TableEntry], *, folder: str) -> list[Instant]:
    """Return the completed commits in a listing, in the order in which they were completed."""
    found = []
    for entry in entries:
        if match := _INSTANT.fullmatch(entry.name):
            completed = match["end"] or match["start"]
            found.append(Instant(completed, match["start"], match["action"], folder, entry))
    return sorted(found)


def read_instant(access: TableAccess, root: str, instant: Instant) -> Json:
    """Return what a commit says of itself.

    Raises:
        UnreadableItemError: the file cannot be read or is damaged.
    """
    what = f"its commit {instant.entry.name}"
    content = read_log_document(access, joined(root, instant.folder, instant.entry.name), what=what)
    if content.startswith(_AVRO):
        return _avro_record(content, what)
    # An empty commit was made by a writer that failed between its steps; it changed nothing.
    return parsed_object(content, what=what) if content.strip() else {}


def archived_commits(
    access: TableAccess, root: str, entries: Iterable[TableEntry], *, folder: str
) -> dict[str, Json] | None:
    """Return the archived commits by the time of their completion; None where they are too many.

    From version 1.0 on the archive is a few Parquet files that the newest manifest names; what was
    there before is in another format and is not read.

    Raises:
        UnreadableItemError: the archive is damaged or incomplete.
    """
    listed = {entry.name: entry for entry in entries}
    manifests = [int(m[1]) for name in listed if (m := _MANIFEST.fullmatch(name))]
    if not manifests:
        return None
    name = f"manifest_{max(manifests)}"
    what = f"its archive's {name}"
    manifest = parsed_object(
        read_log_document(access, joined(root, folder, name), what=what), what=what
    )
    names = [text_at(one, "fileName") for one in objects_at(manifest, "files")]
    missing = [one for one in names if one not in listed]
    if missing:
        raise UnreadableItemError("its archive is incomplete: a file that it names is missing")
    files = [listed[one] for one in names if one]
    if sum(file.size for file in files) > LARGEST_DOCUMENT_BYTES:
        return None
    commits: dict[str, Json] = {}
    for file in files:
        content = read_log_document(access, joined(root, folder, file.name), what="its archive")
        commits.update(_archived_in(content, file.name))
    return dict(sorted(commits.items()))


def _archived_in(content: bytes, name: str) -> dict[str, Json]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        columns = ["completionTime", "action", "metadata"]
        rows = pq.read_table(pa.BufferReader(content), columns=columns, use_threads=False)
        records = rows.to_pylist()
    except (OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError):
        raise UnreadableItemError(f"its archived commits {name} are damaged") from None
    return {
        str(record["completionTime"]): _avro_record(record["metadata"], "an archived commit")
        for record in records
        if record.get("action") in _ACTIONS and record.get("metadata")
    }


def _avro_record(content: bytes, what: str) -> Json:
    import fastavro

    try:
        record = next(iter(fastavro.reader(io.BytesIO(content))), None)
    except (
        ValueError, TypeError, KeyError, IndexError, EOFError, OverflowError, MemoryError,
        RecursionError, ArithmeticError, AttributeError, fastavro.schema.SchemaParseException,
        fastavro.schema.UnknownType,
    ):  # fmt: skip
        raise UnreadableItemError(f"{what} is damaged") from None
    if not isinstance(record, dict):
        raise UnreadableItemError(f"{what} is damaged: it is empty")
    return record


@dataclass
class _FileGroup:
    """The newest state of a file and of the changes logged beside it."""

    size: int = 0
    rows: int | None = 0
    log_files: int = 0
    log_bytes: int = 0
    log_rows: int = 0


@dataclass
class FileGroups:
    """The files that the current state consists of, folded from commit after commit.

    One entry is kept for each file group that the commits name.
    """

    _groups: dict[str, _FileGroup] = field(default_factory=dict)

    def apply(self, commit: Json) -> None:
        """Take over what one more commit wrote."""
        name = "partitionToReplaceFileIds"
        for replaced in object_at(commit, name).values():
            for group in as_texts(replaced, name):
                self._groups.pop(group, None)
        name = "partitionToWriteStats"
        for written in object_at(commit, name).values():
            for stat in as_objects(written, name):
                self._write(stat)

    def _write(self, stat: Json) -> None:
        group_id, path = text_at(stat, "fileId"), text_at(stat, "path")
        if group_id is None or path is None:
            return  # a write that failed or made no file
        size = count_of(stat.get("fileSizeInBytes")) or count_of(stat.get("totalWriteBytes")) or 0
        if _LOG_FILE.fullmatch(path.rpartition("/")[2]):
            group = self._groups.setdefault(group_id, _FileGroup())
            group.log_files += 1
            group.log_bytes += size
            inserted = count_of(stat.get("numInserts")) or 0
            group.log_rows += inserted - (count_of(stat.get("numDeletes")) or 0)
        else:
            self._groups[group_id] = _FileGroup(size, count_of(stat.get("numWrites")))

    def totals(self) -> tuple[Totals, bool]:
        """Return the sums, and whether changes wait in logs, which makes the rows a guess."""
        totals, logged = Totals(), False
        for group in self._groups.values():
            rows = None if group.rows is None else max(0, group.rows + group.log_rows)
            totals.add(group.size + group.log_bytes, rows)
            totals.files += group.log_files
            totals.told_files += group.log_files
            logged = logged or group.log_files > 0
        return totals, logged
