"""Every type of PostgreSQL as a canonical type, on the real server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
import pytest

from lumos.core.models.types import Field
from postgres_source import scanned_after

MICROS = {"unit": "us"}
TEXT = {"type": "STRING"}


def bounds(kind: str, native: str, **parts: Any) -> list[dict[str, Any]]:
    """Return the fields of a range."""
    ends = {"type": kind, "nullable": True, "native_type": native, **parts}
    flag = {"type": "BOOLEAN", "nullable": True}
    return [
        {"name": "lower", **ends},
        {"name": "upper", **ends},
        {"name": "lower_inc", **flag},
        {"name": "upper_inc", **flag},
    ]


def items(kind: str, native: str, **parts: Any) -> dict[str, Any]:
    item = {"type": kind, "nullable": True, "native_type": native, **parts}
    return {"type": "ARRAY", "items": item}


BUILT_IN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "smallint": ("smallint", {"type": "INT16"}),
    "integer": ("integer", {"type": "INT32"}),
    "bigint": ("bigint", {"type": "INT64"}),
    "oid": ("oid", {"type": "UINT32"}),
    "xid8": ("xid8", {"type": "UINT64"}),
    "real": ("real", {"type": "FLOAT"}),
    "double precision": ("double precision", {"type": "DOUBLE"}),
    "boolean": ("boolean", {"type": "BOOLEAN"}),
    "numeric": ("numeric", {"type": "DECIMAL"}),
    "numeric(10,2)": ("numeric(10,2)", {"type": "DECIMAL", "precision": 10, "scale": 2}),
    "numeric(5)": ("numeric(5,0)", {"type": "DECIMAL", "precision": 5, "scale": 0}),
    "numeric(3,-2)": ("numeric(3,-2)", {"type": "DECIMAL", "precision": 3, "scale": -2}),
    "numeric(2,5)": ("numeric(2,5)", {"type": "DECIMAL", "precision": 2, "scale": 5}),
    "numeric(1000,1000)": (
        "numeric(1000,1000)",
        {"type": "DECIMAL", "precision": 1000, "scale": 1000},
    ),
    "money": ("money", {"type": "DECIMAL", "precision": 19, "scale": 2}),
    "text": ("text", TEXT),
    "varchar": ("character varying", TEXT),
    "varchar(20)": ("character varying(20)", {"type": "STRING", "length": 20}),
    "char(3)": ("character(3)", {"type": "STRING", "length": 3}),
    "bpchar": ("bpchar", TEXT),
    '"char"': ('"char"', TEXT),
    "name": ("name", TEXT),
    "bytea": ("bytea", {"type": "BINARY"}),
    "date": ("date", {"type": "DATE"}),
    "time": ("time without time zone", {"type": "TIME", **MICROS}),
    "time(0)": ("time(0) without time zone", {"type": "TIME", "unit": "s"}),
    "timetz(3)": ("time(3) with time zone", {"type": "TIME", "unit": "ms"}),
    "timestamp": ("timestamp without time zone", {"type": "TIMESTAMP_NTZ", **MICROS}),
    "timestamp(0)": ("timestamp(0) without time zone", {"type": "TIMESTAMP_NTZ", "unit": "s"}),
    "timestamptz": (
        "timestamp with time zone",
        {"type": "TIMESTAMP", "timezone": "UTC", **MICROS},
    ),
    "timestamptz(2)": (
        "timestamp(2) with time zone",
        {"type": "TIMESTAMP", "timezone": "UTC", "unit": "ms"},
    ),
    "timestamptz(4)": (
        "timestamp(4) with time zone",
        {"type": "TIMESTAMP", "timezone": "UTC", **MICROS},
    ),
    "interval": ("interval", {"type": "DURATION", **MICROS}),
    "interval(0)": ("interval(0)", {"type": "DURATION", "unit": "s"}),
    "interval day to minute": ("interval day to minute", {"type": "DURATION", **MICROS}),
    "interval second(3)": ("interval second(3)", {"type": "DURATION", "unit": "ms"}),
    "uuid": ("uuid", {"type": "UUID"}),
    "json": ("json", {"type": "JSON"}),
    "jsonb": ("jsonb", {"type": "JSON"}),
    "jsonpath": ("jsonpath", TEXT),
    "xml": ("xml", TEXT),
    "inet": ("inet", TEXT),
    "cidr": ("cidr", TEXT),
    "macaddr": ("macaddr", TEXT),
    "macaddr8": ("macaddr8", TEXT),
    "bit(8)": ("bit(8)", {"type": "STRING", "length": 8}),
    "bit": ("bit(1)", {"type": "STRING", "length": 1}),
    "varbit": ("bit varying", TEXT),
    "varbit(5)": ("bit varying(5)", {"type": "STRING", "length": 5}),
    "tsvector": ("tsvector", TEXT),
    "tsquery": ("tsquery", TEXT),
    "pg_lsn": ("pg_lsn", TEXT),
    "regclass": ("regclass", TEXT),
    "point": ("point", {"type": "GEOMETRY"}),
    "polygon": ("polygon", {"type": "GEOMETRY"}),
    "pg_snapshot": ("pg_snapshot", {"type": "UNKNOWN"}),
    "tid": ("tid", {"type": "UNKNOWN"}),
    "integer[]": ("integer[]", items("INT32", "integer")),
    "integer[][]": ("integer[]", items("INT32", "integer")),
    "varchar(5)[]": (
        "character varying(5)[]",
        items("STRING", "character varying(5)", length=5),
    ),
    "numeric(4,1)[]": ("numeric(4,1)[]", items("DECIMAL", "numeric(4,1)", precision=4, scale=1)),
    "int2vector": ("int2vector", items("INT16", "smallint")),
    "int4range": ("int4range", {"type": "STRUCT", "fields": bounds("INT32", "integer")}),
    "numrange": ("numrange", {"type": "STRUCT", "fields": bounds("DECIMAL", "numeric")}),
    "daterange[]": (
        "daterange[]",
        items("STRUCT", "daterange", fields=bounds("DATE", "date")),
    ),
    "datemultirange": (
        "datemultirange",
        {
            "type": "ARRAY",
            "items": {"type": "STRUCT", "nullable": True, "fields": bounds("DATE", "date")},
        },
    ),
}


def test_every_built_in_type_is_mapped_and_keeps_its_own_name(postgres_database_url: str) -> None:
    columns = ", ".join(f"c{place} {name}" for place, name in enumerate(BUILT_IN))
    found = scanned_after(postgres_database_url, f"CREATE TABLE everything ({columns})")
    assert found.unreadable == []
    fields = found.datasets["public.everything"].schema.fields
    told = {name: field.to_json() for name, field in zip(BUILT_IN, fields, strict=True)}
    assert told == {
        name: {"name": f"c{place}", "nullable": True, "native_type": native, **parts}
        for place, (name, (native, parts)) in enumerate(BUILT_IN.items())
    }


def column(url: str, statements: str, native: str) -> Field:
    """Return a column of a type that the statements make."""
    found = scanned_after(url, statements, f"CREATE TABLE one (c {native})")
    assert found.unreadable == []
    (field,) = found.datasets["public.one"].schema.fields
    return field


# The server of the wheel has few extensions. Where one is missing, a base type of the same name
# stands in, made of functions of text: it has the row in pg_type that the extension would make.
STAND_IN = """
CREATE TYPE {name};
CREATE FUNCTION {name}_in(cstring) RETURNS {name} LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION {name}_out({name}) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
CREATE TYPE {name} (INPUT = {name}_in, OUTPUT = {name}_out);
"""


@pytest.mark.parametrize(
    ("extension", "name", "parts"),
    [
        ("citext", "citext", TEXT),
        ("ltree", "ltree", TEXT),
        (
            "hstore",
            "hstore",
            {
                "type": "MAP",
                "key": {"type": "STRING", "nullable": False},
                "value": {"type": "STRING", "nullable": True},
            },
        ),
        ("postgis", "geometry", {"type": "GEOMETRY"}),
        ("postgis", "geography", {"type": "GEOMETRY"}),
        ("vector", "vector", {"type": "ARRAY", "items": {"type": "FLOAT", "nullable": False}}),
        ("none", "raster", {"type": "UNKNOWN"}),
    ],
)
def test_a_type_of_an_extension_is_mapped_by_its_name(
    postgres_database_url: str, extension: str, name: str, parts: Mapping[str, Any]
) -> None:
    with psycopg.connect(postgres_database_url) as connection:
        found = connection.execute(
            "SELECT FROM pg_available_extensions WHERE name = %s", [extension]
        ).fetchone()
    made = STAND_IN.format(name=name) if found is None else f"CREATE EXTENSION {extension}"
    field = column(postgres_database_url, made, name)
    assert field.to_json() == {
        "name": "c",
        "nullable": True,
        "native_type": f"public.{name}",
        **parts,
    }


def test_the_length_of_a_vector_stays_in_its_own_name(postgres_database_url: str) -> None:
    field = column(postgres_database_url, "CREATE EXTENSION vector", "vector(3)")
    assert field.native_type == "public.vector(3)"


def test_an_enum_has_its_symbols_in_their_order(postgres_database_url: str) -> None:
    made = """
    CREATE TYPE mood AS ENUM ('sad', 'happy');
    ALTER TYPE mood ADD VALUE 'so so' BEFORE 'happy';
    """
    field = column(postgres_database_url, made, "mood[]")
    assert field.signature() == "ARRAY<ENUM(sad, so so, happy)>"
    assert field.native_type == "public.mood[]"


def test_an_enum_without_symbols_is_text(postgres_database_url: str) -> None:
    field = column(postgres_database_url, "CREATE TYPE nothing AS ENUM ()", "nothing")
    assert field.signature() == "STRING"


def test_a_domain_is_its_base_type_with_its_checks(postgres_database_url: str) -> None:
    found = scanned_after(
        postgres_database_url,
        "CREATE DOMAIN short AS varchar(8) CHECK (VALUE <> '')",
        "CREATE DOMAIN code AS short NOT NULL CONSTRAINT upper_case CHECK (VALUE = upper(VALUE))",
        "CREATE DOMAIN words AS text[]",
        "CREATE TABLE one (a code, b short, c words)",
    )
    schema = found.datasets["public.one"].schema
    a, b, c = schema.fields
    assert [field.signature() for field in schema.fields] == [
        "STRING(8)",
        "STRING(8)",
        "ARRAY<STRING>",
    ]
    assert [field.native_type for field in schema.fields] == [
        "public.code",
        "public.short",
        "public.words",
    ]
    assert (a.nullable, b.nullable, c.nullable) == (False, True, True)
    assert [(check.name, check.column) for check in schema.checks] == [
        ("a.short_check", "a"),
        ("a.upper_case", "a"),
        ("b.short_check", "b"),
    ]
    assert schema.checks[1].expression == "((VALUE)::text = upper((VALUE)::text))"


def test_a_composite_is_a_struct_at_any_depth(postgres_database_url: str) -> None:
    made = """
    CREATE TYPE place AS (city text, zip char(5));
    CREATE TYPE person AS (name text, homes place[], born date);
    """
    field = column(postgres_database_url, made, "person")
    assert field.signature() == (
        "STRUCT<name: STRING, homes: ARRAY<STRUCT<city: STRING, zip: STRING(5)>>, born: DATE>"
    )


def test_a_column_can_have_the_row_type_of_a_table(postgres_database_url: str) -> None:
    found = scanned_after(
        postgres_database_url,
        "CREATE TABLE place (city text NOT NULL)",
        "CREATE DOMAIN home AS place; CREATE DOMAIN homes AS place[]",
        "CREATE TABLE visit (at place, more place[], h home, i homes)",
    )
    assert [field.signature() for field in found.datasets["public.visit"].schema.fields] == [
        "STRUCT<city: STRING>",
        "ARRAY<STRUCT<city: STRING>>",
        "STRUCT<city: STRING>",
        "ARRAY<STRUCT<city: STRING>>",
    ]


def test_a_range_of_a_users_own_type_is_a_struct(postgres_database_url: str) -> None:
    made = "CREATE TYPE span AS RANGE (subtype = float8)"
    field = column(postgres_database_url, made, "span")
    assert field.signature() == (
        "STRUCT<lower: DOUBLE, upper: DOUBLE, lower_inc: BOOLEAN, upper_inc: BOOLEAN>"
    )


def test_types_that_double_with_each_level_cost_their_table_alone(
    postgres_database_url: str,
) -> None:
    made = ["CREATE TYPE t0 AS (a int, b int)"]
    made += [f"CREATE TYPE t{n} AS (a t{n - 1}, b t{n - 1})" for n in range(1, 14)]
    found = scanned_after(
        postgres_database_url, *made, "CREATE TABLE huge (c t13)", "CREATE TABLE small (c t1)"
    )
    assert list(found.datasets) == ["public.small"]
    (item,) = found.unreadable
    assert item.item.endswith("public.huge")
    assert "types inside it" in item.error.message
