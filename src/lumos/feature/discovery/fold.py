"""Adds up what is known of the files of one dataset, in any order and in any number of parts.

A fold is a function of the files that were added, not of their order: adding is commutative and
associative, so every executor folds the files it has and the states are merged wherever they meet.
It grows with distinct schemas, layouts and partitions, not with files; of partitions beyond
`MOST_PARTITIONS` only their number is estimated and their range is kept.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol

import orjson
from pydantic import JsonValue

from lumos.core.models import ColumnStatistics
from lumos.feature.discovery.distinct import DistinctSketch
from lumos.feature.discovery.partitions import (
    NO_VALUE,
    Natural,
    PartitionOrder,
    RankedPartition,
    natural,
    order_of,
)

MOST_PARTITIONS: Final = 65_536
"""Up to so many partitions of one layout are counted exactly."""
LISTED_FILES: Final = 20
"""So many files of a dataset are named."""
MOST_STEMS: Final = 32
"""With more plain names below `key=value` folders, none of them is a table."""
ANY_STEM: Final = "*"
_PARTITION: Final = "partition"


class FileLike(Protocol):
    """What a fold needs to know of one file."""

    @property
    def path(self) -> bytes: ...
    @property
    def size(self) -> int: ...
    @property
    def mtime_us(self) -> int: ...
    @property
    def layout(self) -> str:
        """A JSON object with `prefix`, `partitioning`, `partition_keys` and `partition_types`."""
        ...

    @property
    def partition(self) -> str:
        """A JSON array of the values of the keys, in their order."""
        ...

    @property
    def format(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def rows(self) -> int | None: ...
    @property
    def rows_estimate(self) -> int | None: ...
    @property
    def columns(self) -> str | bytes | None:
        """A JSON object with the statistics of each column, by path."""
        ...

    @property
    def bond(self) -> str | None:
        """A JSON array: why the file may belong to others, and what it is called if it does not.

        None where its path alone decides.
        """
        ...

    @property
    def dialect(self) -> str | None:
        """A JSON object that says how the file is written."""
        ...


class FileRow(NamedTuple):
    """One file, as a fold takes it."""

    size: int
    mtime_us: int
    layout: str
    partition: str
    format: str
    fingerprint: str
    rows: int | None = None
    rows_estimate: int | None = None
    columns: str | bytes | None = None
    path: bytes = b""
    bond: str | None = None
    dialect: str | None = None


class SchemaTotals:
    """The files of one schema."""

    __slots__ = (
        "bytes", "estimated_files", "estimated_rows", "exact_files", "exact_rows", "files",
        "first", "last", "newest_us", "oldest_us",
    )  # fmt: skip
    _COUNTS: Final = (
        "files", "bytes", "exact_rows", "exact_files", "estimated_rows", "estimated_files",
    )  # fmt: skip

    def __init__(self, mtime_us: int) -> None:
        self.files = 0
        self.bytes = 0
        self.exact_rows = 0
        self.exact_files = 0
        self.estimated_rows = 0
        self.estimated_files = 0
        self.newest_us = mtime_us
        self.oldest_us = mtime_us
        self.first: RankedPartition | None = None
        self.last: RankedPartition | None = None

    def add(self, file: FileLike, partition: RankedPartition | None) -> None:
        self.files += 1
        self.bytes += file.size
        if file.rows is not None:
            self.exact_rows += file.rows
            self.exact_files += 1
        elif file.rows_estimate is not None:
            self.estimated_rows += file.rows_estimate
            self.estimated_files += 1
        mtime_us = file.mtime_us
        if mtime_us > self.newest_us:
            self.newest_us = mtime_us
        elif mtime_us < self.oldest_us:
            self.oldest_us = mtime_us
        if partition is not None:
            self._span(partition)

    def merge(self, other: SchemaTotals) -> None:
        for name in self._COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.newest_us = max(self.newest_us, other.newest_us)
        self.oldest_us = min(self.oldest_us, other.oldest_us)
        for partition in (other.first, other.last):
            if partition is not None:
                self._span(partition)

    def _span(self, partition: RankedPartition) -> None:
        if self.first is None or partition < self.first:
            self.first = partition
        if self.last is None or partition > self.last:
            self.last = partition

    def as_json(self) -> list[JsonValue]:
        counts: list[JsonValue] = [getattr(self, name) for name in self._COUNTS]
        span = [each.as_json() if each else None for each in (self.first, self.last)]
        return [*counts, self.newest_us, self.oldest_us, *span]

    @classmethod
    def from_json(cls, document: list[object]) -> SchemaTotals:
        *counts, newest, oldest, first, last = document
        totals = cls(int(newest))  # type: ignore[call-overload]
        totals.oldest_us = oldest  # type: ignore[assignment]
        for name, value in zip(cls._COUNTS, counts, strict=True):
            setattr(totals, name, value)
        totals.first = RankedPartition.from_json(first) if first else None  # type: ignore[arg-type]
        totals.last = RankedPartition.from_json(last) if last else None  # type: ignore[arg-type]
        return totals


class LayoutTotals:
    """The files that lie in one way, and their partitions."""

    __slots__ = ("_order", "files", "high", "known", "low", "sketch", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.files = 0
        self.known: dict[str, RankedPartition | None] = {}
        """Every partition, while there are not too many."""
        self.sketch: DistinctSketch | None = None
        """What is left of them when there are."""
        self._order: PartitionOrder = order_of(text)
        keys = len(self._order.forms)
        self.low: list[Natural] = [NO_VALUE] * keys
        """The smallest value of each key, if any partition has one."""
        self.high: list[Natural] = [NO_VALUE] * keys

    def add(self, partition: str) -> RankedPartition | None:
        """Count a file and return its partition; None where the layout has none."""
        self.files += 1
        if not self.low:
            return None
        ranked = self.known.get(partition)
        if ranked is None:
            ranked = RankedPartition(self._order.key(orjson.loads(partition)), partition, self.text)
            self._widen(ranked.order[1])
            self._know(partition, ranked)
        return ranked

    def merge(self, other: LayoutTotals) -> None:
        self.files += other.files
        self._widen(other.low)
        self._widen(other.high)
        for partition, ranked in other.known.items():
            self._know(partition, ranked)
        if other.sketch is not None:
            self._sketched().merge(other.sketch)

    def _widen(self, values: Iterable[Natural]) -> None:
        low, high = self.low, self.high
        for index, value in enumerate(values):
            high[index] = max(high[index], value)
            if value != NO_VALUE and (value < low[index] or low[index] == NO_VALUE):
                low[index] = value

    def _know(self, partition: str, ranked: RankedPartition | None) -> None:
        if self.sketch is not None:
            self.sketch.add(partition)
            return
        self.known[partition] = ranked
        if len(self.known) > MOST_PARTITIONS:
            self._sketched()

    def _sketched(self) -> DistinctSketch:
        if self.sketch is None:
            self.sketch = DistinctSketch()
            for partition in self.known:
                self.sketch.add(partition)
            self.known = {}
        return self.sketch

    def as_json(self) -> list[JsonValue]:
        hashes: list[JsonValue] | None = None if self.sketch is None else [*self.sketch.hashes()]
        return [self.files, [*sorted(self.known)], hashes, *map(_values, (self.low, self.high))]

    @classmethod
    def from_json(cls, text: str, document: list[object]) -> LayoutTotals:
        totals = cls(text)
        files, known, hashes, low, high = document
        totals.files = files  # type: ignore[assignment]
        totals.known = dict.fromkeys(known)  # type: ignore[call-overload]
        totals.sketch = None if hashes is None else DistinctSketch(hashes)  # type: ignore[arg-type]
        totals.low = [natural(value) for value in low]  # type: ignore[attr-defined]
        totals.high = [natural(value) for value in high]  # type: ignore[attr-defined]
        return totals


class FormatFold:
    """Files of one format that are not taken apart."""

    __slots__ = (
        "alone", "columns", "dialects", "files_with_columns", "layouts", "paths", "schemas",
    )  # fmt: skip

    def __init__(self) -> None:
        self.schemas: dict[str, SchemaTotals] = {}
        self.layouts: dict[str, LayoutTotals] = {}
        self.columns: dict[str, list[JsonValue]] = {}
        """The statistics of each column, as `ColumnStatistics.to_json` spells them."""
        self.files_with_columns = 0
        self.paths: list[str] = []
        """The first files, in order."""
        self.dialects: dict[str, int] = {}
        """How many files are written in which way."""
        self.alone: str | None = None
        """The first of the bonds of its files."""

    @property
    def file_count(self) -> int:
        return sum(schema.files for schema in self.schemas.values())

    @property
    def partition_count(self) -> int:
        """About how many partitions there are."""
        return sum(
            len(layout.known) if layout.sketch is None else layout.sketch.count()
            for layout in self.layouts.values()
        )

    def partitions(self) -> Iterator[str]:
        """Yield the partitions that are known by name."""
        for layout in self.layouts.values():
            yield from layout.known

    def add(self, file: FileLike) -> None:
        layout = self.layouts.get(file.layout)
        if layout is None:
            layout = self.layouts[file.layout] = LayoutTotals(file.layout)
        schema = self.schemas.get(file.fingerprint)
        if schema is None:
            schema = self.schemas[file.fingerprint] = SchemaTotals(file.mtime_us)
        schema.add(file, layout.add(file.partition))
        self._list(file.path.decode("utf-8", "backslashreplace"))
        if file.dialect is not None:
            self.dialects[file.dialect] = self.dialects.get(file.dialect, 0) + 1
        if file.bond is not None:
            self._name(file.bond)
        if file.columns is not None:
            self.files_with_columns += 1
            _add_columns(self.columns, orjson.loads(file.columns))

    def merge(self, other: FormatFold) -> None:
        for fingerprint, schema in other.schemas.items():
            known = self.schemas.get(fingerprint)
            if known is None:
                known = self.schemas[fingerprint] = SchemaTotals(schema.newest_us)
            known.merge(schema)
        for text, layout in other.layouts.items():
            ours = self.layouts.get(text)
            if ours is None:
                ours = self.layouts[text] = LayoutTotals(text)
            ours.merge(layout)
        self.files_with_columns += other.files_with_columns
        _add_columns(self.columns, other.columns)
        self.paths = sorted([*self.paths, *other.paths])[:LISTED_FILES]
        for dialect, files in other.dialects.items():
            self.dialects[dialect] = self.dialects.get(dialect, 0) + files
        if other.alone is not None:
            self._name(other.alone)

    def _list(self, path: str) -> None:
        if len(self.paths) < LISTED_FILES or path < self.paths[-1]:
            insort(self.paths, path)
            del self.paths[LISTED_FILES:]

    def _name(self, bond: str) -> None:
        if self.alone is None or (len(bond), bond) < (len(self.alone), self.alone):
            self.alone = bond

    def column_statistics(self) -> dict[str, ColumnStatistics]:
        """Return the statistics of each column; none where some file has none."""
        if self.files_with_columns < sum(schema.files for schema in self.schemas.values()):
            return {}
        return {
            path: ColumnStatistics.from_json([*statistics])
            for path, statistics in sorted(self.columns.items())
        }

    def as_json(self) -> list[JsonValue]:
        return [
            {fingerprint: schema.as_json() for fingerprint, schema in self.schemas.items()},
            {text: layout.as_json() for text, layout in self.layouts.items()},
            {path: [*statistics] for path, statistics in self.columns.items()},
            self.files_with_columns,
            [*self.paths],
            {**self.dialects},
            self.alone,
        ]

    @classmethod
    def from_json(cls, document: list[object]) -> FormatFold:
        schemas, layouts, columns, files_with_columns, paths, dialects, alone = document
        fold = cls()
        fold.schemas = {
            fingerprint: SchemaTotals.from_json(totals)
            for fingerprint, totals in schemas.items()  # type: ignore[attr-defined]
        }
        fold.layouts = {
            text: LayoutTotals.from_json(text, totals)
            for text, totals in layouts.items()  # type: ignore[attr-defined]
        }
        fold.columns = columns  # type: ignore[assignment]
        fold.files_with_columns = files_with_columns  # type: ignore[assignment]
        fold.paths = paths  # type: ignore[assignment]
        fold.dialects = dialects  # type: ignore[assignment]
        fold.alone = alone  # type: ignore[assignment]
        return fold


class FileProblems:
    """Files that cannot be read, or only with warnings; the first of them are named."""

    __slots__ = ("paths", "unreadable", "with_warnings")

    def __init__(self) -> None:
        self.unreadable = 0
        self.with_warnings = 0
        self.paths: list[str] = []

    def __bool__(self) -> bool:
        """Return whether there is any."""
        return bool(self.paths)

    def add(self, path: bytes, *, is_readable: bool) -> None:
        self.with_warnings += is_readable
        self.unreadable += not is_readable
        self._list([path.decode("utf-8", "backslashreplace")])

    def merge(self, other: FileProblems) -> None:
        self.unreadable += other.unreadable
        self.with_warnings += other.with_warnings
        self._list(other.paths)

    def _list(self, paths: list[str]) -> None:
        self.paths = sorted({*self.paths, *paths})[:LISTED_FILES]

    def as_json(self) -> dict[str, JsonValue]:
        return {
            "unreadable": self.unreadable,
            "with_warnings": self.with_warnings,
            "first": [*self.paths],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, JsonValue]) -> FileProblems:
        problems = cls()
        problems.unreadable = document["unreadable"]  # type: ignore[assignment]
        problems.with_warnings = document["with_warnings"]  # type: ignore[assignment]
        problems.paths = document["first"]  # type: ignore[assignment]
        return problems


class DatasetFold:
    """All files that may be of one dataset, by format and by what may divide them.

    Files that only their names bind together are kept apart by schema, and files below `key=value`
    folders by their plain names, so that `grouping` can decide which of them are one dataset.
    """

    __slots__ = ("formats",)

    def __init__(self) -> None:
        self.formats: dict[str, FormatFold] = {}
        """By format, and behind line ends by bond and by what divides the files."""

    def add(self, file: FileLike) -> None:
        """Count one file in."""
        key = file.format if file.bond is None else self._key(file)
        fold = self.formats.get(key)
        if fold is None:
            fold = self.formats[key] = FormatFold()
        fold.add(file)
        if key.endswith(f"\n{ANY_STEM}"):
            fold.alone = None

    def _key(self, file: FileLike) -> str:
        kind, *alone = orjson.loads(file.bond or "[]")
        if kind != _PARTITION:
            return f"{file.format}\n{kind}\n{file.fingerprint}"
        key = f"{file.format}\n{kind}\n{alone[-1]}"
        return key if key in self.formats else self._with_room(key)

    def _with_room(self, key: str) -> str:
        """Return the key, or the one for any name where there are too many different ones."""
        start = key[: key.index(_PARTITION) + len(_PARTITION) + 1]
        any_stem = f"{start}{ANY_STEM}"
        if any_stem in self.formats:
            return any_stem
        stems = [each for each in self.formats if each.startswith(start)]
        if len(stems) < MOST_STEMS:
            return key
        everything = FormatFold()
        for stem in stems:
            everything.merge(self.formats.pop(stem))
        everything.alone = None
        self.formats[any_stem] = everything
        return any_stem

    def merge(self, other: DatasetFold) -> None:
        """Count the files of another fold in; the other one stays as it is."""
        for name in sorted(other.formats, key=lambda key: (not key.endswith(ANY_STEM), key)):
            key = name
            if name not in self.formats and f"\n{_PARTITION}\n" in name:
                key = self._with_room(name)
                if name.endswith(ANY_STEM) and key == name and name not in self.formats:
                    self._gather(name)
            known = self.formats.get(key)
            if known is None:
                known = self.formats[key] = FormatFold()
            known.merge(other.formats[name])
            if key.endswith(f"\n{ANY_STEM}"):
                known.alone = None

    def _gather(self, any_stem: str) -> None:
        """Put all plain names together, because another fold did."""
        start = any_stem[: -len(ANY_STEM)]
        everything = FormatFold()
        for stem in [each for each in self.formats if each.startswith(start)]:
            everything.merge(self.formats.pop(stem))
        self.formats[any_stem] = everything

    def merged(self, other: DatasetFold) -> DatasetFold:
        """Return the fold of the files of both."""
        both = DatasetFold()
        both.merge(self)
        both.merge(other)
        return both

    def to_bytes(self) -> bytes:
        """Return the state, the same for the same files in whatever order they came."""
        document = {name: fold.as_json() for name, fold in self.formats.items()}
        return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)

    @classmethod
    def from_bytes(cls, state: bytes) -> DatasetFold:
        """Return the fold of which `to_bytes` made this state."""
        fold = cls()
        documents: dict[str, list[object]] = orjson.loads(state)
        fold.formats = {name: FormatFold.from_json(each) for name, each in documents.items()}
        return fold


def _values(ranks: Iterable[Natural]) -> list[JsonValue]:
    return [None if rank == NO_VALUE else rank[2] for rank in ranks]


def _add_columns(
    columns: dict[str, list[JsonValue]], others: Mapping[str, list[JsonValue]]
) -> None:
    for path, other in others.items():
        known = columns.get(path)
        if known is None:
            columns[path] = [*other]
        elif len(known) == len(other) == 4:  # noqa: PLR2004 - neither has a range
            for index, count in enumerate(other):
                total = known[index]
                known[index] = None if count is None or total is None else total + count  # type: ignore[operator]
        else:
            both = ColumnStatistics.from_json(known).merged_with(ColumnStatistics.from_json(other))
            columns[path] = both.to_json()
