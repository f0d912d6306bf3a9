"""What else the company keeps: clicks, stock, campaigns, features, books."""

from __future__ import annotations

from typing import Final

from lumos.feature.demo.columns import (
    choice,
    code,
    day,
    flag,
    key,
    list_of,
    map_of,
    maybe,
    measure,
    moment,
    money,
    number,
    reference,
    share,
    struct,
    text_reference,
)
from lumos.feature.demo.table import Table, days

CLICKS: Final = (
    code("event_id", "EVT"),
    text_reference("session_id", "SES"),
    maybe(reference("customer_id")),
    choice("event", "page_view", "add_to_cart", "checkout"),
    moment("occurred_at"),
    struct(
        "page",
        choice("url", "/", "/products", "/cart"),
        maybe(choice("referrer", "https://search.example", "https://news.example")),
    ),
    map_of(choice("properties", "a", "b", "c"), "experiment", "device"),
)
WEB: Final = (
    Table(
        "web/clickstream",
        "parquet",
        tuple(
            path.format(hour=hour)
            for path in days(
                "web/clickstream/year=%Y/month=%m/day=%d/hour={hour:02d}/part-00000.parquet", 2
            )
            for hour in (0, 6, 12, 18)
        ),
        CLICKS,
        rows=150,
        partitioning="year={yyyy}/month={mm}/day={dd}/hour={hh}",
        partition_columns=("year", "month", "day", "hour"),
    ),
    Table(
        "web/sessions",
        "avro",
        days("web/sessions/%Y/%m/%d/part-00000.avro"),
        (
            code("session_id", "SES"),
            moment("started_at"),
            number("pages", 40),
            struct(
                "device",
                choice("kind", "phone", "laptop"),
                maybe(choice("browser", "Firefox", "Lynx")),
            ),
        ),
        partitioning="{yyyy}/{mm}/{dd}",
    ),
    Table(
        "web/searches",
        "json",
        days("web/searches/dt=%Y-%m-%d/part-00000.json.gz"),
        (
            code("search_id", "SRC"),
            choice("query", "teapot", "kettle blue", "mug"),
            number("hits", 90),
            list_of(text_reference("clicked", "SKU")),
        ),
        partitioning="dt={yyyy-mm-dd}",
        partition_columns=("dt",),
    ),
    Table(
        "web/ab_tests",
        "csv",
        ("web/ab_tests.csv",),
        (
            code("test_id", "ABT"),
            choice("variant", "A", "B"),
            share("conversion"),
            number("visitors", 9_999),
        ),
        rows=16,
    ),
)

LOGISTICS: Final = (
    Table(
        "logistics/shipments",
        "parquet",
        days("logistics/shipments/dt=%Y%m%d/part-00000.parquet"),
        (
            code("shipment_id", "SHP"),
            reference("order_id", 5_000),
            choice("carrier", "DHL", "UPS"),
            measure("weight_kg"),
            maybe(moment("delivered_at")),
        ),
        partitioning="dt={yyyymmdd}",
        partition_columns=("dt",),
    ),
    Table(
        "logistics/inventory",
        "orc",
        ("logistics/inventory/part-00000.orc", "logistics/inventory/part-00001.orc"),
        (
            text_reference("sku", "SKU"),
            reference("warehouse_id", 5),
            number("on_hand", 900),
            moment("counted_at"),
        ),
        rows=120,
    ),
    Table(
        "logistics/warehouses",
        "csv",
        ("logistics/warehouses.csv",),
        (
            key("warehouse_id"),
            choice("city", "Leipzig", "Lyon", "Leeds"),
            number("capacity", 9_999),
            flag("is_open"),
        ),
        rows=5,
    ),
    Table(
        "logistics/suppliers",
        "csv",
        ("logistics/suppliers.csv",),
        (
            code("supplier_id", "SUP"),
            choice("name", "Acme, Ltd.", 'The "Pot" Shop', "Tea & Co"),
            choice("country", "DE", "CN", "PT"),
            measure("lead_time_days", 60),
        ),
        rows=25,
    ),
    Table(
        "logistics/returns",
        "parquet",
        days("logistics/returns/%Y%m%d/part-00000.parquet", 3),
        (code("return_id", "RET"), text_reference("shipment_id", "SHP"), flag("resaleable")),
        partitioning="{yyyymmdd}",
    ),
)

COMPANY: Final = (
    Table(
        "marketing/campaigns",
        "json",
        ("marketing/campaigns.json",),
        (
            code("campaign_id", "CMP"),
            choice("name", "Spring", "Black Friday"),
            day("starts_on"),
            struct("budget", measure("planned", 9_999), maybe(measure("spent", 9_999))),
        ),
        rows=20,
    ),
    Table(
        "marketing/ad_spend",
        "csv",
        tuple(
            f"marketing/ad_spend/channel={channel}/part-00000.csv"
            for channel in ("search", "social%20media", "__HIVE_DEFAULT_PARTITION__")
        ),
        (
            text_reference("campaign_id", "CMP", 20),
            day("spent_on"),
            money("cost"),
            number("clicks", 900),
        ),
        partitioning="channel={channel}",
        partition_columns=("channel",),
    ),
    Table(
        "marketing/newsletter_subscribers",
        "csv",
        ("marketing/newsletter_subscribers.csv.gz",),
        (key("subscriber_id"), choice("email", "a@example.com", "b@example.com"), day("since")),
    ),
    Table(
        "ml/features/customer_churn",
        "parquet",
        tuple(f"ml/features/customer_churn-{n:05d}-of-00002.parquet" for n in range(2)),
        (
            reference("customer_id"),
            number("orders_90d", 30),
            share("return_rate"),
            share("churn_score"),
            moment("computed_at"),
        ),
        rows=150,
    ),
    Table(
        "ml/features/product_embeddings",
        "parquet",
        ("ml/features/product_embeddings/part-00000.parquet",),
        (code("sku", "SKU"), list_of(share("embedding"), length=-16), choice("model", "teapot-2")),
        rows=80,
    ),
    Table(
        "ml/training/recommendations",
        "avro",
        ("ml/training/recommendations.avro",),
        (
            reference("customer_id"),
            list_of(struct("items", text_reference("sku", "SKU"), share("score"))),
            flag("clicked"),
        ),
    ),
    Table(
        "finance/ledger",
        "parquet",
        ("finance/ledger.parquet/part-00000.parquet", "finance/ledger.parquet/part-00001.parquet"),
        (
            code("entry_id", "LED"),
            choice("account", "4400", "8400"),
            money("debit"),
            money("credit"),
            day("booked_on"),
        ),
    ),
    Table(
        "finance/exchange_rates",
        "parquet",
        ("finance/exchange_rates/part-00000.parquet",),
        (choice("currency", "GBP", "USD"), day("valid_on"), share("rate")),
    ),
    Table(
        "finance/exchange_rates.csv",
        "csv",
        ("finance/exchange_rates/part-00000.csv",),
        (choice("currency", "GBP", "USD"), day("valid_on"), share("rate")),
    ),
)
