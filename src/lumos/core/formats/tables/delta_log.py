"""Finds the files of a Delta log that the current state is made of, and reads their actions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.tables.parts import parsed_object
from lumos.core.formats.tables.ranges import joined, open_ranges, read_lines
from lumos.core.json_reading import Json, as_object, object_at, text_at

if TYPE_CHECKING:
    from lumos.core.formats.tables.access import TableAccess, TableEntry

LOG_FOLDER: Final = "_delta_log"
SIDECAR_FOLDER: Final = "_sidecars"

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(
    r"(?P<version>\d{20})\.checkpoint\."
    r"(?:(?P<part>\d{10})\.(?P<parts>\d{10})\.parquet|(?P<uuid>[0-9a-fA-F-]{36})\.(?:json|parquet)"
    r"|parquet)"
)
_ROWS_AT_ONCE = 8_192
_SMALL_ACTIONS = ("protocol", "metaData", "domainMetadata", "sidecar")
_COMMIT_INFO = "commitInfo"
_ADD_COLUMNS = ("path", "size", "deletionVector")
_ROW_COUNT = "stats_parsed.numRecords"
_FIRST_IN_STATS = re.compile(r'\s*\{\s*"numRecords"\s*:\s*(\d{1,18})\s*[,}]')


@dataclass(frozen=True)
class LogFiles:
    """The files to be read: all parts of one checkpoint, and the commits after it in order."""

    version: int
    checkpoint: tuple[TableEntry, ...] = ()
    commits: tuple[TableEntry, ...] = ()
    newest_mtime_us: int | None = None


def log_files(entries: Sequence[TableEntry]) -> LogFiles:
    """Choose what to read from a listing of the log.

    The newest complete checkpoint is found in the listing, so `_last_checkpoint`, a hint for those
    who do not list, is not needed and may be missing, old or damaged.

    Raises:
        UnreadableItemError: a file is missing without which the current state is unknown.
    """
    commits = {int(m[1]): entry for entry in entries if (m := _COMMIT.fullmatch(entry.name))}
    base, checkpoint = _newest_checkpoint(entries)
    newest = max((*commits, base))
    if newest < 0:
        raise UnreadableItemError("its log holds neither a commit nor a complete checkpoint")
    wanted = range(base + 1, newest + 1)
    for version in wanted:
        if version not in commits:
            raise UnreadableItemError(
                f"its log is incomplete: commit {version} is missing, and there is no later"
                " checkpoint",
                hint="a table copied without its whole _delta_log cannot be read",
            )
    last = commits.get(newest) or checkpoint[-1]
    return LogFiles(
        version=newest,
        checkpoint=checkpoint,
        commits=tuple(commits[version] for version in wanted),
        newest_mtime_us=last.mtime_us,
    )


def _newest_checkpoint(entries: Sequence[TableEntry]) -> tuple[int, tuple[TableEntry, ...]]:
    """Return the version of the newest checkpoint of which every part is there, and its parts."""
    found: dict[tuple[int, str], dict[int, TableEntry]] = {}
    for entry in entries:
        if match := _CHECKPOINT.fullmatch(entry.name):
            form = match["uuid"] or match["parts"] or ""
            parts = found.setdefault((int(match["version"]), form), {})
            parts[int(match["part"] or 1)] = entry
    whole = [
        (version, form)
        for (version, form), parts in found.items()
        if len(parts) == (int(form) if form.isdecimal() else 1)
    ]
    if not whole:
        return -1, ()
    best = max(whole)
    return best[0], tuple(entry for _, entry in sorted(found[best].items()))


@dataclass(frozen=True)
class FileAction:
    """A file that an action adds to the table or removes from it."""

    key: str
    added: bool
    size: object = None
    rows: int | None = None
    deleted_rows: int = 0


@dataclass
class ActionBatch:
    """Actions that were read together."""

    files: list[FileAction] = field(default_factory=list)
    others: list[tuple[str, Json]] = field(default_factory=list)


def read_commit(access: TableAccess, root: str, entry: TableEntry) -> Iterator[ActionBatch]:
    """Yield the actions of one commit, or of a checkpoint that is written as JSON.

    Raises:
        UnreadableItemError: the file cannot be read or a line is no action.
    """
    what = f"its log file {entry.name}"
    path = joined(root, LOG_FOLDER, entry.name)
    batch = ActionBatch()
    for line in read_lines(access, path, what=what):
        for kind, action in parsed_object(line, what=what).items():
            if action is None:
                continue
            if kind in ("add", "remove"):
                batch.files.append(_file_action(kind, as_object(action, kind)))
            elif kind == _COMMIT_INFO or kind in _SMALL_ACTIONS:
                batch.others.append((kind, as_object(action, kind)))
        if len(batch.files) >= _ROWS_AT_ONCE:
            yield batch
            batch = ActionBatch()
    yield batch


def read_checkpoint(
    access: TableAccess, root: str, entry: TableEntry, *, folder: str = LOG_FOLDER
) -> Iterator[ActionBatch]:
    """Yield the actions of one part of a checkpoint, some thousand at a time.

    Raises:
        UnreadableItemError: it cannot be read or is no checkpoint.
    """
    if entry.name.endswith(".json"):
        yield from read_commit(access, root, entry)
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = joined(root, folder, entry.name)
    try:
        with (
            open_ranges(access, path, size=entry.size) as stream,
            pq.ParquetFile(pa.PythonFile(stream, mode="r"), pre_buffer=False) as file,
        ):
            # One thread: the caller that answers the reads may take only one question at a time.
            for rows in file.iter_batches(
                _ROWS_AT_ONCE, columns=_columns(file.schema), use_threads=False
            ):
                yield _actions_of(rows)
    except (OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError):
        raise UnreadableItemError(f"its checkpoint {entry.name} is damaged") from None


def _columns(schema: Any) -> list[str]:
    """Return the leaves to read: without the values of partitions and the statistics of columns."""
    leaves = [schema.column(i).path for i in range(len(schema))]
    counted = f"add.{_ROW_COUNT}" in leaves
    wanted = [f"add.{name}" for name in _ADD_COLUMNS]
    wanted.append(f"add.{_ROW_COUNT}" if counted else "add.stats")
    wanted.extend(_SMALL_ACTIONS)
    return [
        leaf
        for leaf in leaves
        if any(leaf == name or leaf.startswith(f"{name}.") for name in wanted)
    ]


def _actions_of(rows: Any) -> ActionBatch:
    batch = ActionBatch()
    names = rows.schema.names
    for kind in _SMALL_ACTIONS:
        if kind in names:
            column = rows.column(kind)
            if column.null_count < len(column):
                present = column.filter(column.is_valid()).to_pylist(maps_as_pydicts="lossy")
                batch.others.extend((kind, action) for action in present)
    if "add" in names:
        batch.files.extend(_added_in(rows.column("add")))
    return batch


def _added_in(column: Any) -> Iterator[FileAction]:
    """Yield the files that a column of actions adds; members are read as columns, for speed."""
    present = column.filter(column.is_valid())
    names = [present.type.field(i).name for i in range(present.type.num_fields)]
    members = [present.field(name).to_pylist() for name in names]
    for values in zip(*members, strict=True):
        add = dict(zip(names, values, strict=True))
        if add.get("path"):
            yield _file_action("add", add)


def _file_action(kind: str, action: Json) -> FileAction:
    path, vector = text_at(action, "path"), object_at(action, "deletionVector")
    if path is None:
        raise UnreadableItemError("its log is damaged: an action names no file")
    deleted = vector.get("cardinality")
    return FileAction(
        key=_key(path, vector),
        added=kind == "add",
        size=action.get("size"),
        rows=_rows_of(action),
        deleted_rows=deleted if isinstance(deleted, int) else 0,
    )


def _key(path: str, vector: Json) -> str:
    """Return what identifies a file: its path together with the rows deleted from it."""
    storage = text_at(vector, "storageType") if vector else None
    if storage is None:
        return path
    offset = vector.get("offset")
    place = "" if offset is None else f"@{offset}"
    return f"{path}\n{storage}{vector.get('pathOrInlineDv')}{place}"


def _rows_of(action: Json) -> int | None:
    parsed = object_at(action, "stats_parsed").get("numRecords")
    if isinstance(parsed, int):
        return parsed if parsed >= 0 else None
    stats = action.get("stats")
    if not isinstance(stats, str):
        return None
    # Every writer puts the count first, and statistics may be long.
    if match := _FIRST_IN_STATS.match(stats):
        return int(match[1])
    try:
        rows = parsed_object(stats.encode(), what="").get("numRecords")
    except UnreadableItemError:
        return None
    return rows if isinstance(rows, int) and not isinstance(rows, bool) and rows >= 0 else None


def sidecar_name(action: Json) -> str | None:
    """Return the name of the file that holds a share of a checkpoint."""
    path = text_at(action, "path")
    return None if path is None else unquote(path).rpartition("/")[2]
