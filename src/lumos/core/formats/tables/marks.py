"""Recognizes files of Delta, Iceberg and Hudi tables by their paths alone.

The files of a table are never looked at one by one: most of those in its folders may be removed,
replaced or not yet part of it, and only its log says which. So the log's files, which have fixed
names, show where tables lie, and every other file below such a root belongs to the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

DELTA: Final = "delta"
ICEBERG: Final = "iceberg"
HUDI: Final = "hudi"
TABLE_FORMATS: Final = (DELTA, ICEBERG, HUDI)
"""Foremost first: a table that several formats describe at once is the first of them."""

_DELTA_LOG: Final = "_delta_log/"
_HUDI_LOG: Final = ".hoodie/"
_ICEBERG_LOG: Final = "metadata/"
_LOG_FOLDERS: Final = frozenset({"_delta_log", ".hoodie", "metadata"})
_DELTA_ANCHOR = re.compile(
    r"\d{20}\.(?:json|checkpoint\.parquet|checkpoint\.\d{10}\.\d{10}\.parquet"
    r"|checkpoint\.[0-9a-fA-F-]{36}\.(?:json|parquet))|_last_checkpoint"
    r"|\d{20}\.\d{20}\.compacted\.json"
)
_UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
ICEBERG_METADATA_FILE: Final = re.compile(
    rf"(?:v?(?P<number>\d{{1,20}})(?:-[^/]+?)?|{_UUID})"
    r"(?P<gzip>\.gz)?\.metadata\.json(?P<late_gzip>\.gz)?"
)
"""The name of a file that holds the whole metadata of an Iceberg table."""
VERSION_HINT: Final = "version-hint.text"
_ICEBERG_OTHER = re.compile(
    r"snap-[^/]*\.avro|[^/]*-m\d+\.avro|optimized-m-[^/]*\.avro|[^/]*\.stats|[^/]*\.puffin"
)
_HUDI_ANCHOR = "hoodie.properties"


class TableMark(NamedTuple):
    """The table that a file belongs to."""

    kind: str
    """`delta`, `iceberg` or `hudi`."""
    root: str
    """The folder of the table, without a slash at its end; empty for the source's root."""
    is_log: bool
    """The file is part of the log or metadata; otherwise it is data, or rubbish, below the root."""
    is_anchor: bool
    """The file alone shows that there is a table at the root."""


def table_of_path(path: str) -> TableMark | None:
    """Return the table to whose log or metadata a file belongs; None for any other file.

    Args:
        path: relative to the source's root, with `/` between the parts.
    """
    # Three searches for a text that is nearly always absent: this runs once for every file.
    if _DELTA_LOG in path and (mark := _in_folder(path, _DELTA_LOG, DELTA)):
        return mark
    if _HUDI_LOG in path and (mark := _in_folder(path, _HUDI_LOG, HUDI)):
        return mark
    if _ICEBERG_LOG in path:
        return _iceberg_mark(path)
    return None


def may_hold_log(path: str) -> bool:
    """Return whether a file or folder may be part of a table's log or metadata, by its path."""
    return path.rpartition("/")[2] in _LOG_FOLDERS or table_of_path(path) is not None


def inside_table(path: str, roots: Mapping[str, str]) -> TableMark | None:
    """Return the table in whose folder a file lies, the innermost of several.

    It costs one look-up for each folder of the path, however many tables there are.

    Args:
        path: relative to the source's root.
        roots: the kind of table at each root, as `table_roots` gives them.
    """
    if not roots:
        return None
    folder = path
    while folder:
        folder = folder.rpartition("/")[0]
        if kind := roots.get(folder):
            own = table_of_path(path)
            if own is not None and own.root == folder:
                return TableMark(kind, folder, is_log=True, is_anchor=own.is_anchor)
            return TableMark(kind, folder, is_log=False, is_anchor=False)
    return None


def table_roots(marks: Iterable[TableMark]) -> dict[str, str]:
    """Return the kind of table at each root that one of the marks proves, sorted by root.

    A table that is kept in several formats at once, as UniForm and XTable do, is read as the first
    of `TABLE_FORMATS`.
    """
    found: dict[str, str] = {}
    for mark in marks:
        if mark.is_anchor:
            known = found.get(mark.root)
            if known is None or TABLE_FORMATS.index(mark.kind) < TABLE_FORMATS.index(known):
                found[mark.root] = mark.kind
    return dict(sorted(found.items()))


def _in_folder(path: str, log: str, kind: str) -> TableMark | None:
    """Find the outermost log folder: Hudi keeps a metadata table inside its log folder."""
    start = path.find(log)
    while start > 0 and path[start - 1] != "/":
        start = path.find(log, start + 1)
    if start < 0:
        return None
    inner = path[start + len(log) :]
    is_anchor = (
        _DELTA_ANCHOR.fullmatch(inner) is not None if kind == DELTA else inner == _HUDI_ANCHOR
    )
    return TableMark(kind, path[:start].rstrip("/"), is_log=True, is_anchor=is_anchor)


def _iceberg_mark(path: str) -> TableMark | None:
    folder, _, name = path.rpartition("/")
    above, _, parent = folder.rpartition("/")
    if parent != "metadata":
        return None
    if name == VERSION_HINT or ICEBERG_METADATA_FILE.fullmatch(name):
        return TableMark(ICEBERG, above, is_log=True, is_anchor=True)
    if _ICEBERG_OTHER.fullmatch(name):
        return TableMark(ICEBERG, above, is_log=True, is_anchor=False)
    return None
