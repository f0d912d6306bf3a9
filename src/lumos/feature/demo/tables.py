"""All datasets of the lake: as it is at first, and what comes later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lumos.feature.demo.columns import (
    choice,
    code,
    day,
    flag,
    key,
    moment,
    money,
    number,
    struct,
    text_reference,
)
from lumos.feature.demo.company_tables import COMPANY, LOGISTICS, WEB
from lumos.feature.demo.shop_tables import CATALOG, CRM, SALES
from lumos.feature.demo.table import Table, days

FAX_ORDERS: Final = Table(
    "legacy/fax_orders",
    "csv",
    ("legacy/fax_orders.csv",),
    (
        key("fax_id"),
        moment("received_at"),
        choice("text", "2 teapots", "illegible"),
        number("pages", 3),
    ),
    rows=8,
)
RETURNS_EXPORT: Final = Table(
    "landing/returns_export",
    "csv",
    ("landing/returns_export.parquet",),
    (text_reference("return_id", "RET"), day("returned_on"), flag("resaleable")),
)
INFLUENCERS: Final = Table(
    "marketing/influencers",
    "json",
    ("marketing/influencers.jsonl",),
    (
        code("influencer_id", "INF"),
        choice("handle", "@pots", "@kettle"),
        number("followers", 90_000),
        struct("contract", day("signed_on"), money("fee")),
    ),
    rows=15,
)


def first_tables() -> Iterator[Table]:
    """Yield the datasets of the lake as it is at first."""
    yield from (*SALES, *CRM, *CATALOG, *WEB, *LOGISTICS, *COMPANY, RETURNS_EXPORT, FAX_ORDERS)


NEXT_ORDERS: Final = days(
    "sales/orders/year=%Y/month=%m/day=%d/part-00000.snappy.parquet", 1, start=6
)
NEXT_CLICKS: Final = tuple(
    f"{path}/hour=00/part-00000.parquet"
    for path in days("web/clickstream/year=%Y/month=%m/day=%d", 1, start=2)
)
