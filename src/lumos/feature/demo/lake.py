"""The lake of a small shop: in all formats, partitioned, nested, and in places damaged.

It is made from nothing, offline, and always the same to the last byte and second. Then it evolves
as such lakes do: a column goes, a type changes, a new column comes, a dataset comes, another goes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lumos.feature.demo.columns import Column, choice, maybe, rows_of, text_reference
from lumos.feature.demo.shop_tables import CUSTOMERS, ORDERS, PAYMENTS
from lumos.feature.demo.tables import (
    FAX_ORDERS,
    INFLUENCERS,
    NEXT_CLICKS,
    NEXT_ORDERS,
    RETURNS_EXPORT,
    first_tables,
)
from lumos.feature.demo.writers import encoded

if TYPE_CHECKING:
    from lumos.feature.demo.table import Table

FIRST_WRITTEN: Final = datetime(2024, 1, 22, 6, tzinfo=UTC)
EVOLVED: Final = datetime(2024, 1, 23, 6, tzinfo=UTC)

CUT_OFF: Final = "landing/partner_feed.parquet"
EMPTY: Final = "landing/stock_feed.csv"
DISGUISED: Final = RETURNS_EXPORT.paths[0]
"""A CSV file that is called Parquet: it can be read, and somebody should know."""

_COUPON = maybe(choice("coupon_code", "SPRING", "TEAPOT10"))


@dataclass(frozen=True)
class ExpectedDataset:
    """What must be found for one dataset."""

    name: str
    """Its path below the root of the lake, without format and partitions."""
    format: str
    files: int
    rows: int
    columns: tuple[str, ...]
    """Those in the files, then those of its Hive folders."""
    partitioning: str | None = None


@dataclass(frozen=True)
class ExpectedChange:
    """A change that must be caught once the lake has evolved."""

    dataset: str
    rule: str
    field: str | None = None


EXPECTED_CHANGES: Final = (
    ExpectedChange("crm/customers", "field.removed", "fax"),
    ExpectedChange("legacy/fax_orders", "dataset.removed"),
    ExpectedChange("marketing/influencers", "dataset.added"),
    ExpectedChange("sales/orders", "field.added.nullable", "coupon_code"),
    ExpectedChange("sales/payments", "type.changed", "order_id"),
)
EXPECTED_UNREADABLE: Final = (CUT_OFF, EMPTY)


def write_lake(root: Path) -> None:
    """Write the lake as it is at first; one that has evolved is taken back.

    Only files of the lake itself are written or removed, so anything else in the folder stays.
    """
    for path in {*_evolved_files()} - {*_first_files()}:
        (root / path).unlink(missing_ok=True)
    for table in first_tables():
        _write_table(root, table, at=FIRST_WRITTEN)
    whole = encoded(CUT_OFF, ORDERS, rows_of(ORDERS, 60, seed=CUT_OFF))
    _write(root / CUT_OFF, whole[: len(whole) // 2], at=FIRST_WRITTEN)
    _write(root / EMPTY, b"", at=FIRST_WRITTEN)
    _write(root / "sales/orders/_SUCCESS", b"", at=FIRST_WRITTEN)


def evolve_lake(root: Path) -> None:
    """Change a lake that was written before as a day of work would; doing it twice adds nothing."""
    for path in {*_first_files()} - {*_evolved_files()}:
        (root / path).unlink(missing_ok=True)
    for table in _news():
        _write_table(root, table, at=EVOLVED)


def expected_datasets(*, evolved: bool = False) -> tuple[ExpectedDataset, ...]:
    """Return what the lake holds, by name, at first or once it has evolved."""
    tables = {table.name: table for table in first_tables()}
    expected = {name: _expected(table) for name, table in tables.items()}
    if evolved:
        del expected[FAX_ORDERS.name]
        for news in _news():
            expected[news.name] = _evolved(expected.get(news.name), tables.get(news.name), news)
    return tuple(expected[name] for name in sorted(expected))


def _news() -> tuple[Table, ...]:
    """The files that come or are written anew, as separate tables."""
    tables = {table.name: table for table in first_tables()}
    customers, payments = tables["crm/customers"], tables["sales/payments"]
    return (
        replace(customers, columns=tuple(c for c in CUSTOMERS if c.name != "fax")),
        replace(payments, columns=_with(PAYMENTS, text_reference("order_id", "ORD", 5_000))),
        replace(tables["sales/orders"], columns=(*ORDERS, _COUPON), paths=NEXT_ORDERS),
        replace(tables["web/clickstream"], paths=NEXT_CLICKS),
        INFLUENCERS,
    )


def _with(columns: Sequence[Column], other: Column) -> tuple[Column, ...]:
    return tuple(other if column.name == other.name else column for column in columns)


def _expected(table: Table) -> ExpectedDataset:
    return ExpectedDataset(
        name=table.name,
        format=table.format,
        files=len(table.paths),
        rows=len(table.paths) * table.rows,
        columns=(*(column.name for column in table.columns), *table.partition_columns),
        partitioning=table.partitioning,
    )


def _evolved(old: ExpectedDataset | None, table: Table | None, news: Table) -> ExpectedDataset:
    new = _expected(news)
    if old is None or table is None or set(news.paths) & set(table.paths):
        return new
    return replace(new, files=old.files + new.files, rows=old.rows + new.rows)


def _first_files() -> tuple[str, ...]:
    return tuple(path for table in first_tables() for path in table.paths)


def _evolved_files() -> tuple[str, ...]:
    kept = (path for path in _first_files() if path not in FAX_ORDERS.paths)
    return (*kept, *(path for table in _news() for path in table.paths))


def _write_table(root: Path, table: Table, *, at: datetime) -> None:
    for path in table.paths:
        rows = rows_of(table.columns, table.rows, seed=path)
        named = path if path != DISGUISED else f"{path}.csv"
        _write(root / path, encoded(named, table.columns, rows), at=at)


def _write(path: Path, content: bytes, *, at: datetime) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (at.timestamp(), at.timestamp()))
