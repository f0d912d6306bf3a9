"""Counting a catalog while its datasets stream by, in memory that does not grow with it."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from lumos.feature.extraction.catalog_report import DatasetLine, Inventory, LimitedList, Share

if TYPE_CHECKING:
    from lumos.core.models import LumosDataset

T = TypeVar("T")
UNKNOWN_FORMAT = "not known"


class ReportLimits(NamedTuple):
    """How long the lists of a report may be."""

    datasets: int = 200
    shares: int = 12
    findings: int = 50
    changes: int = 100
    dated: int = 5


DEFAULT_REPORT_LIMITS = ReportLimits()


def limited_list(items: Iterable[T], limit: int) -> LimitedList[T]:
    """Keep the first items and count the rest."""
    iterator = iter(items)
    kept = tuple(islice(iterator, limit))
    return LimitedList(total=len(kept) + sum(1 for _ in iterator), items=kept)


def line_of(dataset: LumosDataset) -> DatasetLine:
    """Put a dataset into one line."""
    facts = dataset.statistics
    rows = None
    if facts is not None:
        rows = facts.row_count if facts.row_count is not None else facts.row_count_estimate
    return DatasetLine(
        urn=dataset.urn,
        name=dataset.name,
        platform=dataset.platform,
        format=dataset.format,
        columns=len(dataset.schema.fields),
        rows=rows,
        size_bytes=facts.total_size_bytes if facts else None,
        owners=tuple(dict.fromkeys(owner.name for owner in dataset.ownership.owners)),
        described=bool((dataset.documentation.description or "").strip()),
        last_modified=facts.last_modified if facts else None,
        version=dataset.version,
    )


def inventory_of(
    datasets: Iterable[LumosDataset], limits: ReportLimits = DEFAULT_REPORT_LIMITS
) -> Inventory:
    """Count datasets and keep the lines that a report shows."""
    counted = _Counted(limits)
    for dataset in datasets:
        counted.add(dataset)
    return counted.result()


def _format_of(dataset: LumosDataset) -> str:
    if dataset.format:
        return dataset.format
    return dataset.kind.lower() if dataset.kind else UNKNOWN_FORMAT


class _Lines:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._total = 0
        self._kept: list[DatasetLine] = []

    def add(self, line: DatasetLine) -> None:
        self._total += 1
        if len(self._kept) < self._limit:
            self._kept.append(line)

    def result(self) -> LimitedList[DatasetLine]:
        return LimitedList(total=self._total, items=tuple(self._kept))


class _Shares:
    def __init__(self) -> None:
        self._datasets: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    def add(self, name: str, size: int) -> None:
        self._datasets[name] += 1
        self._bytes[name] += size

    def result(self, limit: int) -> LimitedList[Share]:
        return limited_list(self._largest_first(), limit)

    def _largest_first(self) -> Iterator[Share]:
        for name, count in sorted(self._datasets.items(), key=lambda each: (-each[1], each[0])):
            yield Share(name=name, datasets=count, size_bytes=self._bytes[name])


class _Extremes:
    """The datasets with the highest, or with `sign` -1 the lowest, times."""

    def __init__(self, limit: int, *, sign: int) -> None:
        self._limit = limit
        self._sign = sign
        self._heap: list[tuple[float, int, DatasetLine]] = []

    def add(self, moment: datetime, line: DatasetLine, *, position: int) -> None:
        # The position settles ties, so that two lines are never compared.
        entry = (self._sign * moment.timestamp(), -position, line)
        if len(self._heap) < self._limit:
            heapq.heappush(self._heap, entry)
        else:
            heapq.heappushpop(self._heap, entry)

    def result(self) -> tuple[DatasetLine, ...]:
        return tuple(line for _, _, line in sorted(self._heap, reverse=True))


class _Counted:
    def __init__(self, limits: ReportLimits) -> None:
        self._limits = limits
        self._datasets = self._columns = self._rows = self._files = self._bytes = self._undated = 0
        self._platforms, self._formats = _Shares(), _Shares()
        self._listing = _Lines(limits.datasets)
        self._unowned, self._undescribed = _Lines(limits.findings), _Lines(limits.findings)
        self._freshest = _Extremes(limits.dated, sign=1)
        self._stalest = _Extremes(limits.dated, sign=-1)

    def add(self, dataset: LumosDataset) -> None:
        line = line_of(dataset)
        size = line.size_bytes or 0
        self._datasets += 1
        self._columns += line.columns
        self._rows += line.rows or 0
        self._files += (dataset.statistics.file_count or 0) if dataset.statistics else 0
        self._bytes += size
        self._platforms.add(line.platform, size)
        self._formats.add(_format_of(dataset), size)
        self._listing.add(line)
        if not line.owners:
            self._unowned.add(line)
        if not line.described:
            self._undescribed.add(line)
        if line.last_modified is None:
            self._undated += 1
        else:
            self._freshest.add(line.last_modified, line, position=self._datasets)
            self._stalest.add(line.last_modified, line, position=self._datasets)

    def result(self) -> Inventory:
        return Inventory(
            datasets=self._datasets,
            columns=self._columns,
            rows=self._rows,
            files=self._files,
            size_bytes=self._bytes,
            platforms=self._platforms.result(self._limits.shares),
            formats=self._formats.result(self._limits.shares),
            without_owner=self._unowned.result(),
            without_description=self._undescribed.result(),
            freshest=self._freshest.result(),
            stalest=self._stalest.result(),
            undated=self._undated,
            listing=self._listing.result(),
        )
