"""What a listing of sources found, as far as it has to be known in this process."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.formats.tables.marks import may_hold_log
from lumos.spark.parquet_rows import count_rows, scan_rows
from lumos.spark.stages.files import UNIT_COLUMNS, unit_of_row
from lumos.spark.stages.rows import FILES, LINKS, LOGS, ROW, UNITS, UNLISTED, ListedUnit

if TYPE_CHECKING:
    from lumos.spark.stages.changed_files import Scope

_MOST_CLOSED = 64
"""Where more folders cannot be listed, their whole sources count as such."""


class Unlisted(NamedTuple):
    """A folder that could not be listed."""

    source: str
    path: bytes
    error: str


@dataclass
class Listing:
    """A listing of all units; its rows lie in a folder."""

    folder: Path
    units: list[ListedUnit] = field(default_factory=list)
    unlisted: list[Unlisted] = field(default_factory=list)
    links: list[tuple[str, bytes]] = field(default_factory=list)
    """Source and path of each symlink that leads outside of its source."""
    files: int = 0
    """How many files were listed, without those of unchanged units."""
    logs: int = 0
    """How many files of tables' logs there are, in all units."""

    @property
    def files_folder(self) -> Path:
        return kind_folder(self.folder, FILES)

    @property
    def logs_folder(self) -> Path:
        return kind_folder(self.folder, LOGS)

    def files_of(self) -> Counter[str]:
        """Count the files of each source."""
        counts: Counter[str] = Counter()
        for unit in self.units:
            counts[unit.source] += unit.files
        return counts

    def same(self) -> dict[str, tuple[bytes, ...]]:
        """Return the units of each source that are as they were."""
        same: dict[str, tuple[bytes, ...]] = {}
        for unit in self.units:
            if unit.is_same:
                same[unit.source] = (*same.get(unit.source, ()), unit.unit)
        return same

    @property
    def has_news(self) -> bool:
        return not all(unit.is_same for unit in self.units)

    def closed(self, *, doubt_empty: bool) -> Scope:
        """Return the folders of each source that could not be listed, and links to tables' logs.

        A source without a single file may be a disk that is not mounted: nothing of it was seen.
        """
        closed: dict[str, tuple[bytes, ...]] = {}
        if doubt_empty:
            closed = {source: (b"",) for source, files in self.files_of().items() if not files}
        logs = [link for link in self.links if may_hold_log(os.fsdecode(link[1]))]
        unseen = [*((each.source, each.path) for each in self.unlisted), *logs]
        if len(unseen) > _MOST_CLOSED:
            return closed | {source: (b"",) for source, _ in unseen}
        for source, path in unseen:
            closed[source] = (*closed.get(source, ()), path)
        return closed


def listing_of(folder: Path) -> Listing:
    """Return what the rows in a folder say."""
    units = scan_rows(kind_folder(folder, UNITS), UNIT_COLUMNS)
    return Listing(
        folder,
        units=[unit_of_row(row) for row in units],
        unlisted=list(_unlisted(folder)),
        links=list(_links(folder)),
        files=count_rows(kind_folder(folder, FILES)),
        logs=count_rows(kind_folder(folder, LOGS)),
    )


def kind_folder(folder: Path, kind: str) -> Path:
    """Return where the rows of one kind lie."""
    return folder / f"{ROW}={kind}"


def _links(folder: Path) -> Iterator[tuple[str, bytes]]:
    rows = scan_rows(kind_folder(folder, LINKS), ("source", "path"))
    yield from sorted({(str(source), bytes(path)) for source, path in rows})  # type: ignore[call-overload]


def _unlisted(folder: Path) -> Iterator[Unlisted]:
    columns: Sequence[str] = ("source", "path", "error")
    rows = scan_rows(kind_folder(folder, UNLISTED), columns)
    yield from sorted({Unlisted(*row) for row in rows})  # type: ignore[arg-type]
