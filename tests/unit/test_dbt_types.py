"""Types as dbt's adapters spell them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.core.models import FieldType
from lumos.feature.ingestion.handlers.dbt.types import dbt_type


@pytest.mark.parametrize(
    ("native", "platform", "expected"),
    [
        ("character varying(256)", "postgres", "STRING(256)"),
        ("timestamp without time zone", "postgres", "TIMESTAMP_NTZ(us)"),
        ("timestamp(3) with time zone", "postgres", "TIMESTAMP(ms,UTC)"),
        ("integer[]", "postgres", "ARRAY<INT32>"),
        ("integer[][]", "postgres", "ARRAY<ARRAY<INT32>>"),
        ("mood[]", "postgres", "ARRAY<UNKNOWN>"),
        ("timestamptz", "postgres", "TIMESTAMP(us,UTC)"),
        ("time(0)", "postgres", "TIME(s)"),
        ("interval", "postgres", "DURATION(us)"),
        ("double precision", "postgres", "DOUBLE"),
        ("jsonb", "postgres", "JSON"),
        ("tsvector", "postgres", "STRING"),
        ("mood", "postgres", "UNKNOWN"),
        ("NUMBER(38,0)", "snowflake", "DECIMAL(38,0)"),
        ("FLOAT", "snowflake", "DOUBLE"),
        ("TIMESTAMP_NTZ(9)", "snowflake", "TIMESTAMP_NTZ"),
        ("TIMESTAMP_TZ", "snowflake", "TIMESTAMP"),
        ("VARIANT", "snowflake", "JSON"),
        ("ARRAY", "snowflake", "ARRAY<UNKNOWN>"),
        ("INT64", "bigquery", "INT64"),
        ("TIMESTAMP", "bigquery", "TIMESTAMP"),
        ("DATETIME", "bigquery", "TIMESTAMP_NTZ"),
        ("ARRAY<STRUCT<a INT64, b STRING>>", "bigquery", "ARRAY<STRUCT<a: INT64, b: STRING>>"),
        ("timestamp", "databricks", "TIMESTAMP"),
        ("timestamp", "duckdb", "TIMESTAMP_NTZ"),
        ("UBIGINT", "duckdb", "UINT64"),
        ("map<string,int>", "spark", "MAP<STRING, INT32>"),
        ("row(a integer, b varchar)", "trino", "STRUCT<a: INT32, b: STRING>"),
        ("", "postgres", "UNKNOWN"),
    ],
)
def test_types_are_read_as_each_platform_means_them(
    native: str, platform: str, expected: str
) -> None:
    found = FieldType.from_json(dbt_type(native, platform=platform))
    assert found.signature() == expected
    assert found.native_type == native


@given(native=st.text(max_size=40), platform=st.sampled_from(("postgres", "snowflake", "x")))
def test_every_spelling_of_a_type_is_some_type(native: str, platform: str) -> None:
    FieldType.from_json(dbt_type(native, platform=platform))
