"""What a dataset of the demo's lake is made from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from lumos.feature.demo.columns import FIRST_DAY, Column


@dataclass(frozen=True)
class Table:
    """A dataset of the lake, all its files alike."""

    name: str
    """What it must be called once found."""
    format: str
    paths: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: int = 40
    """In each file."""
    partitioning: str | None = None
    partition_columns: tuple[str, ...] = ()
    """The columns that its folders add."""


def days(template: str, count: int = 4, *, start: int = 0) -> tuple[str, ...]:
    """Return a path for each of some days, from a template as `strftime` takes it."""
    dates = (FIRST_DAY + timedelta(days=start + offset) for offset in range(count))
    return tuple(each.strftime(template) for each in dates)
