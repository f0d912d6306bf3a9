"""What the shop sells, to whom, and how it is paid."""

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

_ADDRESS = struct(
    "shipping_address",
    choice("street", "Hauptstraße 1", "High Street 22", "Rue de la Paix 3", "Via Roma 4"),
    choice("city", "Berlin", "London", "Paris", "Roma", "Lisboa"),
    choice("country", "DE", "GB", "FR", "IT", "PT"),
    maybe(choice("postcode", "10115", "SW1A 1AA", "75002", "00184")),
)
_STATUS = choice("status", "placed", "paid", "shipped", "delivered", "cancelled")
_LINE = struct("lines", text_reference("sku", "SKU"), number("quantity", 9), money("price", 90))
ORDERS: Final = (
    key("order_id"),
    reference("customer_id"),
    moment("ordered_at"),
    _STATUS,
    money("total"),
    choice("currency", "EUR", "GBP", "USD"),
    _ADDRESS,
)
PAYMENTS: Final = (
    code("payment_id", "PAY"),
    reference("order_id", 5_000),
    money("amount"),
    choice("method", "card", "paypal", "invoice", "voucher"),
    moment("paid_at"),
    maybe(choice("failure_reason", "declined", "expired", "fraud")),
)
CUSTOMERS: Final = (
    key("customer_id"),
    choice("first_name", "Ada", "Grace", "Alan", "Edsger", "Barbara", "Tim"),
    choice("last_name", "Lovelace", "Hopper", "Turing", "Dijkstra", "Liskov", "Lee"),
    choice("email", "ada@example.com", "grace@example.com", "alan@example.com"),
    maybe(choice("phone", "+49 30 1234", "+44 20 1234")),
    maybe(choice("fax", "+49 30 1235", "+44 20 1235")),
    day("signed_up_on"),
    flag("newsletter"),
)

SALES: Final = (
    Table(
        "sales/orders",
        "parquet",
        days("sales/orders/year=%Y/month=%m/day=%d/part-00000.snappy.parquet", 6),
        ORDERS,
        rows=120,
        partitioning="year={yyyy}/month={mm}/day={dd}",
        partition_columns=("year", "month", "day"),
    ),
    Table(
        "sales/order_items",
        "parquet",
        days("sales/order_items/dt=%Y-%m-%d/part-00000.parquet", 6),
        (
            reference("order_id", 5_000),
            text_reference("sku", "SKU"),
            number("quantity", 9),
            money("unit_price", 90),
            maybe(share("discount")),
        ),
        rows=240,
        partitioning="dt={yyyy-mm-dd}",
        partition_columns=("dt",),
    ),
    Table("sales/payments", "avro", ("sales/payments.avro",), PAYMENTS, rows=150),
    Table(
        "sales/refunds",
        "csv",
        days("sales/refunds_%Y-%m-%d.csv"),
        (
            code("refund_id", "REF"),
            reference("order_id", 5_000),
            money("amount"),
            day("refunded_on"),
            maybe(choice("reason", "damaged", "late", "wrong item, again")),
        ),
    ),
    Table(
        "sales/invoices",
        "json",
        days("sales/invoices/%Y/%m/%d/invoices.json.gz"),
        (
            code("invoice_id", "INV"),
            reference("order_id", 5_000),
            list_of(_LINE, name="lines"),
            struct("tax", choice("code", "DE19", "FR20"), share("rate")),
        ),
        partitioning="{yyyy}/{mm}/{dd}",
    ),
    Table(
        "sales/carts",
        "orc",
        tuple(f"sales/carts/region={region}/part-00000.orc" for region in ("eu", "us", "apac")),
        (
            code("cart_id", "CRT"),
            reference("customer_id"),
            list_of(text_reference("skus", "SKU")),
            moment("updated_at"),
            flag("abandoned"),
        ),
        partitioning="region={region}",
        partition_columns=("region",),
    ),
)

CRM: Final = (
    Table("crm/customers", "parquet", ("crm/customers.parquet",), CUSTOMERS, rows=200),
    Table(
        "crm/addresses",
        "csv",
        ("crm/addresses.csv.gz",),
        (
            key("address_id"),
            reference("customer_id"),
            choice("city", "Berlin", "São Paulo", "Łódź"),
            choice("country", "DE", "BR", "PL"),
            flag("is_default"),
        ),
    ),
    Table(
        "crm/loyalty_members",
        "avro",
        tuple(f"crm/loyalty_members-{n:05d}-of-00003.avro" for n in range(3)),
        (
            code("member_id", "LOY"),
            reference("customer_id"),
            number("points", 9_000),
            choice("tier", "bronze", "silver", "gold"),
            day("member_since"),
        ),
    ),
    Table(
        "crm/support_tickets",
        "json",
        ("crm/support_tickets.jsonl",),
        (
            code("ticket_id", "TCK"),
            reference("customer_id"),
            choice("subject", "Where is it?", "Hi"),
            list_of(struct("messages", choice("author", "agent", "customer"), moment("sent_at"))),
            maybe(number("satisfaction", 5)),
        ),
    ),
    Table(
        "crm/consents",
        "csv",
        ("crm/consents.tsv",),
        (
            reference("customer_id"),
            choice("purpose", "mail", "profiling"),
            flag("granted"),
            moment("changed_at"),
        ),
    ),
)

CATALOG: Final = (
    Table(
        "catalog/products",
        "parquet",
        ("catalog/products/products.parquet",),
        (
            code("sku", "SKU"),
            choice("title", "Teapot", "Kettle", "Mug", "Sieve"),
            money("price", 90),
            measure("weight_kg"),
            list_of(choice("tags", "new", "sale", "eco")),
            map_of(choice("attributes", "red", "blue", "steel"), "colour", "material"),
            struct("dimensions", measure("width"), measure("height"), measure("depth")),
        ),
        rows=150,
    ),
    Table(
        "catalog/categories",
        "json",
        ("catalog/categories.json",),
        (
            key("category_id"),
            choice("name", "Kitchen", "Garden", "Bath"),
            maybe(reference("parent_id", 9)),
        ),
        rows=12,
    ),
    Table(
        "catalog/price_history",
        "orc",
        tuple(f"catalog/price_history/year={year}/000000_0.orc" for year in (2022, 2023, 2024)),
        (text_reference("sku", "SKU"), money("price", 90), day("valid_from")),
        partitioning="year={yyyy}",
        partition_columns=("year",),
    ),
    Table(
        "catalog/reviews",
        "json",
        ("catalog/reviews.jsonl.gz",),
        (
            code("review_id", "REV"),
            text_reference("sku", "SKU"),
            number("stars", 5),
            maybe(choice("text", "Great!", "Broke at once.", "素晴らしい")),
        ),
        rows=100,
    ),
)
