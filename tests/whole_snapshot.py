"""A catalog's worth of metadata with something of every concept in it."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from lumos.core.models import Snapshot, load_snapshot
from lumos.core.platform.fidelity import CONCEPTS
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.feature.snapshot.fidelity_count import counted_fidelity
from lumos.feature.snapshot.source import LoadedSource

Json = dict[str, JsonValue]
ORDERS = "lumos://postgres/shop/public/orders"
CUSTOMERS = "lumos://s3/lake/raw/customers"
REVENUE = "lumos://snowflake/FINANCE/REVENUE"
CLICKS = "lumos://kafka/events.clicks"
ODD = "lumos://s3/lake/odd/%D8%B7%D9%84%D8%A8%20%F0%9F%94%A5%2Fx"
BARE = "lumos://hive/default/bare"
JOB = "lumos://airflow/daily/load_revenue"

_FIELDS: list[JsonValue] = [
    {
        "name": "order_id",
        "type": "INT64",
        "nullable": False,
        "description": "What tells one from another",
        "native_type": "bigint",
        "glossary_terms": ["Order"],
    },
    {
        "name": "customer_id",
        "type": "STRING",
        "length": 36,
        "tags": ["pii", "key"],
        "pii": True,
        "properties": {"masking": "hash", "rank": 2},
    },
    {
        "name": "price",
        "type": "DECIMAL",
        "precision": 18,
        "scale": 4,
        "default": "0",
        "deprecation": {"note": "use amount", "since": "2024-01-01", "sunset": "2025-01-01"},
    },
    {"name": "state", "type": "ENUM", "symbols": ["open", "paid"]},
    {
        "name": "lines",
        "type": "ARRAY",
        "items": {
            "type": "STRUCT",
            "fields": [
                {"name": "sku", "type": "STRING", "description": "The article"},
                {"name": "notes", "type": "MAP", "key": {"type": "STRING"},
                 "value": {"type": "UNION", "branches": [{"type": "STRING"}, {"type": "INT32"}]}},
            ],
        },
    },
    {"name": "at", "type": "TIMESTAMP", "unit": "us", "timezone": "UTC"},
]  # fmt: skip

_ORDERS: Json = {
    "urn": ORDERS,
    "name": "orders",
    "platform": "postgres",
    "kind": "TABLE",
    "environment": "production",
    "database": "shop",
    "namespace": "public",
    "format": "parquet",
    "location": {"bucket": "lake", "path": "raw/orders", "partitioning": "day={yyyy-mm-dd}",
                 "partition_keys": ["at"]},
    "schema": {
        "fields": _FIELDS,
        "primary_key": ["order_id"],
        "unique_keys": [["customer_id", "at"]],
        "foreign_keys": [{"columns": ["customer_id"], "references": CUSTOMERS,
                          "referenced_columns": ["id"]}],
        "checks": [{"name": "positive", "expression": "price >= 0"}],
    },
    "ownership": [
        {"user": "ada", "type": "DATA_STEWARD"},
        {"group": "shop"},
        {"user": "grace", "type": "ON_CALL"},
    ],
    "tags": ["gold", "pii"],
    "governance": {
        "domains": ["sales"],
        "glossary_terms": ["Order", "Revenue"],
        "deprecation": {"note": "moves to v2", "sunset": "2027-01-01", "replacement": REVENUE},
        "stability": "STABLE",
        "access": "PROTECTED",
        "retention_days": 730,
    },
    "documentation": {
        "description": "All.\n\nWith *markdown*, <b>HTML</b> & \u201cquotes\u201d \U0001f525",
        "business_context": "Billing reads it",
        "sla": "99.9 % by 06:00",
        "links": [{"url": "https://wiki.example.org/orders", "description": "The page"},
                  {"url": "https://git.example.org/orders"}],
    },
    "properties": {"team": "shop", "partitions": 12, "nested": {"a": [1, None, True, 1.5]}},
    "assertions": [
        {"name": "id is set", "kind": "not_null", "column": "order_id", "severity": "WARNING"},
        {"name": "few are open", "kind": "sql", "expression": "count(*) < 10",
         "parameters": {"most": 10}, "validator": "soda", "description": "Most are paid"},
    ],
    "statistics": {"row_count": 45_000_000, "file_count": 12, "total_size_bytes": 1 << 40,
                   "last_modified": "2024-01-15T10:30:00Z", "query_count": 7},
    "profile": {
        "row_count": 45_000_000,
        "file_count": 12,
        "profiled_at": "2024-01-15T10:30:00Z",
        "columns": [{"path": "price", "type": "DECIMAL", "value_count": 44, "null_count": 1}],
    },
    "quality": {
        "overall_score": 99.2,
        "freshness": "30min",
        "checks": [{"name": "id is set", "status": "PASSED", "timestamp": "2024-01-15T10:30:00Z"}],
    },
    "cost": {"dataset": ORDERS, "period": "2024-01", "kind": "storage", "amount": "12.50"},
    "version": "2.3.1",
    "extensions": {"dbt": {"node": "model.orders", "raw": [1, {"x": None}]}},
}  # fmt: skip

_OTHERS: list[JsonValue] = [
    {
        "urn": CUSTOMERS, "name": "customers", "platform": "s3", "kind": "FILES", "format": "csv",
        "schema": {"fields": [{"name": "id", "type": "STRING", "nullable": False},
                              {"name": "email", "type": "STRING", "pii": True}]},
        "ownership": [{"group": "shop"}],
        "documentation": {"description": "Who bought"},
        "version": "1.0.0",
    },
    {
        "urn": REVENUE, "name": "REVENUE", "platform": "snowflake", "kind": "VIEW",
        "schema": {"fields": [{"name": "DAY", "type": "DATE"},
                              {"name": "AMOUNT", "type": "DOUBLE"}]},
        "governance": {"domains": ["finance"]}, "tags": ["gold"], "version": "1.1.0",
    },
    {"urn": CLICKS, "name": "events.clicks", "platform": "kafka", "kind": "STREAM",
     "schema": {"fields": [{"name": "url", "type": "STRING"}]}, "version": "1.0.0"},
    {"urn": ODD, "name": "\u0637\u0644\u0628 \U0001f525/x", "platform": "s3", "version": "1.0.0",
     "tags": ["a::b > \"c\"", "e\u0301"], "documentation": {"description": "  spaced\t\n"},
     "properties": {"\u00e9 .$x": "\u0000 kept"}},
    {"urn": BARE, "name": "bare", "platform": "hive"},
]  # fmt: skip

_SNAPSHOT: Json = {
    "snapshot_schema_version": 1,
    "lumos_version": "0.1.0",
    "export_timestamp": "2024-01-15T10:30:00Z",
    "source_platform": "embedded",
    "datasets": [_ORDERS, *_OTHERS],
    "jobs": [
        {"urn": JOB, "name": "load_revenue", "orchestrator": "airflow", "flow_id": "daily",
         "job_id": "load_revenue", "type": "SQL", "description": "Sums orders up",
         "inputs": [ORDERS], "outputs": [REVENUE], "properties": {"retries": 2}},
    ],
    "lineage_edges": [
        {"upstream_urn": ORDERS, "downstream_urn": REVENUE, "job_urn": JOB, "confidence": 0.75,
         "provenance": "sql", "created_at": "2024-01-15T10:30:00Z", "created_by": "ada",
         "column_mappings": [
             {"upstream_column": "price", "downstream_column": "AMOUNT",
              "transformation": "sum(price)", "transformation_type": "DIRECT",
              "transformation_subtype": "AGGREGATION"},
             {"upstream_column": "at", "downstream_column": "DAY"},
         ]},
        {"upstream_urn": CUSTOMERS, "downstream_urn": ORDERS, "lineage_type": "COPIED"},
        {"upstream_urn": CLICKS, "downstream_urn": REVENUE},
    ],
    "glossary": [{"name": "Order", "definition": "What is bought", "parent": "Commerce",
                  "synonyms": ["Purchase"]}, {"name": "Commerce"},
                 {"name": "Revenue", "definition": 'What "comes in"\nper day'}],
    "tags": [{"name": "gold", "description": "Of the best"}, {"name": "pii", "sensitive": True}],
    "domains": [{"name": "company"}, {"name": "sales", "parent": "company"},
                {"name": "finance", "description": "L\u00e4nder \u2014 all"}],
    "users": [{"username": "ada", "display_name": "Ada", "email": "ada@example.org",
               "title": "Engineer", "teams": ["shop"], "custom_properties": {"desk": 4}},
              {"username": "grace", "system": True}],
    "groups": [{"name": "shop", "display_name": "The shop", "members": ["ada", "grace"],
                "admins": ["ada"], "slack": "#shop"}],
    "identity_map": {ORDERS: {"elsewhere": "urn:x:orders", "other": "42"}},
    "extensions": {"elsewhere": {"dashboards": [{"id": 1, "name": "kept"}]}},
}  # fmt: skip


def whole_snapshot() -> Snapshot:
    """Return the snapshot; one that lacks a concept is an error."""
    snapshot = load_snapshot(_SNAPSHOT)
    counted: Mapping[str, int] = {
        row.concept: row.count
        for row in counted_fidelity(LoadedSource(snapshot, "whole"), EmbeddedHandler).rows
    }
    missing = [concept for concept in CONCEPTS if concept not in counted]
    assert not missing, missing
    return snapshot
