"""Avro types in systematic pairs, with values that show every branch of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import product
from typing import Any
from uuid import UUID

Json = dict[str, Any]


@dataclass(frozen=True)
class AvroType:
    """A type by a name of its own, and values that it takes."""

    name: str
    schema: Any
    values: tuple[Any, ...]

    @property
    def record(self) -> Json:
        """A record with one field of this type."""
        return {"type": "record", "name": "R", "fields": [{"name": "f", "type": self.schema}]}


def _record(*fields: Json) -> Json:
    return {"type": "record", "name": "Inner", "fields": list(fields)}


def _field(name: str, kind: Any, **rest: Any) -> Json:
    return {"name": name, "type": kind, **rest}


def _logical(kind: str, name: str, **rest: Any) -> Json:
    return {"type": kind, "logicalType": name, **rest}


def _enum(*symbols: str) -> Json:
    return {"type": "enum", "name": "E", "symbols": list(symbols)}


def _decimal(precision: int, scale: int) -> Json:
    return _logical("bytes", "decimal", precision=precision, scale=scale)


MOMENT = datetime(2024, 1, 31, 12, 30, tzinfo=UTC)
PRIMITIVES = (
    AvroType("null", "null", (None,)),
    AvroType("boolean", "boolean", (True,)),
    AvroType("int", "int", (-1, 2**31 - 1)),
    AvroType("long", "long", (-1, 2**40)),
    AvroType("float", "float", (1.5,)),
    AvroType("double", "double", (1e300,)),
    AvroType("bytes", "bytes", (b"abc",)),
    AvroType("string", "string", ("abc",)),
)
NAMED = (
    AvroType("fixed(4)", {"type": "fixed", "name": "F", "size": 4}, (b"abcd",)),
    AvroType("fixed(8)", {"type": "fixed", "name": "F", "size": 8}, (b"abcdefgh",)),
    AvroType("enum(A,B)", _enum("A", "B"), ("A", "B")),
    AvroType("enum(B,A)", _enum("B", "A"), ("A", "B")),
    AvroType("enum(A,B,C)", _enum("A", "B", "C"), ("A", "B", "C")),
    AvroType("enum(A = A)", {**_enum("A"), "default": "A"}, ("A",)),
    AvroType("record(x int)", _record(_field("x", "int")), ({"x": 1},)),
    AvroType("record(x long)", _record(_field("x", "long")), ({"x": 2**40},)),
    AvroType("record(x string)", _record(_field("x", "string")), ({"x": "a"},)),
    AvroType(
        "record(x int, y string)",
        _record(_field("x", "int"), _field("y", "string")),
        ({"x": 1, "y": "a"},),
    ),
    AvroType(
        "record(y string, x int)",
        _record(_field("y", "string"), _field("x", "int")),
        ({"x": 1, "y": "a"},),
    ),
    AvroType(
        "record(x int, y string = a)",
        _record(_field("x", "int"), _field("y", "string", default="a")),
        ({"x": 1, "y": "b"},),
    ),
    AvroType(
        "record(x int, y string?)",
        _record(_field("x", "int"), _field("y", ["null", "string"])),
        ({"x": 1, "y": None}, {"x": 1, "y": "a"}),
    ),
    AvroType(
        "record(x int, y string? = null)",
        _record(_field("x", "int"), _field("y", ["null", "string"], default=None)),
        ({"x": 1, "y": None}, {"x": 1, "y": "a"}),
    ),
)
NESTED = (
    AvroType("array(int)", {"type": "array", "items": "int"}, ([1],)),
    AvroType("array(long)", {"type": "array", "items": "long"}, ([2**40],)),
    AvroType("array(int?)", {"type": "array", "items": ["null", "int"]}, ([None, 1],)),
    AvroType("array(string)", {"type": "array", "items": "string"}, (["a"],)),
    AvroType("map(int)", {"type": "map", "values": "int"}, ({"k": 1},)),
    AvroType("map(double)", {"type": "map", "values": "double"}, ({"k": 1.5},)),
    AvroType("map(int?)", {"type": "map", "values": ["int", "null"]}, ({"k": 1, "l": None},)),
    AvroType(
        "array(map(int))",
        {"type": "array", "items": {"type": "map", "values": "int"}},
        ([{"k": 1}],),
    ),
    AvroType(
        "array(map(long))",
        {"type": "array", "items": {"type": "map", "values": "long"}},
        ([{"k": 2**40}],),
    ),
)
UNIONS = (
    AvroType("[]", [], ()),
    AvroType("[null]", ["null"], (None,)),
    AvroType("array([])", {"type": "array", "items": []}, ([],)),
    AvroType("int?", ["null", "int"], (None, 1)),
    AvroType("int? other order", ["int", "null"], (None, 1)),
    AvroType("long?", ["null", "long"], (None, 2**40)),
    AvroType("string?", ["null", "string"], (None, "a")),
    AvroType("bytes?", ["null", "bytes"], (None, b"a")),
    AvroType("[int]", ["int"], (1,)),
    AvroType("[int, string]", ["int", "string"], (1, "a")),
    AvroType("[string, int]", ["string", "int"], (1, "a")),
    AvroType("[long, string]", ["long", "string"], (2**40, "a")),
    AvroType("[int, long]", ["int", "long"], (1, 2**40)),
    AvroType("[int, string, boolean]", ["int", "string", "boolean"], (1, "a", True)),
    AvroType("[null, int, string]", ["null", "int", "string"], (None, 1, "a")),
    AvroType("[array(int), string]", [{"type": "array", "items": "int"}, "string"], ([1], "a")),
    AvroType(
        "[array(long), string]", [{"type": "array", "items": "long"}, "string"], ([2**40], "a")
    ),
    AvroType("[record(x int), string]", [_record(_field("x", "int")), "string"], ({"x": 1}, "a")),
    AvroType(
        "[record(x int, y string), string]",
        [_record(_field("x", "int"), _field("y", "string")), "string"],
        ({"x": 1, "y": "a"}, "a"),
    ),
)
LOGICAL = (
    AvroType("date", _logical("int", "date"), (date(2024, 1, 31),)),
    AvroType("time-millis", _logical("int", "time-millis"), (time(12, 30),)),
    AvroType("time-micros", _logical("long", "time-micros"), (time(12, 30),)),
    AvroType("timestamp-millis", _logical("long", "timestamp-millis"), (MOMENT,)),
    AvroType("timestamp-micros", _logical("long", "timestamp-micros"), (MOMENT,)),
    AvroType(
        "local-timestamp-millis",
        _logical("long", "local-timestamp-millis"),
        (datetime(2024, 1, 31),),
    ),
    AvroType("uuid", _logical("string", "uuid"), (UUID(int=7),)),
    AvroType("decimal(10,2)", _decimal(10, 2), (Decimal("1.25"),)),
    AvroType("decimal(12,2)", _decimal(12, 2), (Decimal("1.25"),)),
    AvroType("decimal(12,4)", _decimal(12, 4), (Decimal("1.2525"),)),
)
TYPES = (*PRIMITIVES, *NAMED, *NESTED, *UNIONS, *LOGICAL)
PAIRS = tuple(product(TYPES, TYPES))

FIELDS: dict[str, Json | None] = {
    "none": None,
    "int": {"type": "int"},
    "int = 0": {"type": "int", "default": 0},
    "int?": {"type": ["null", "int"]},
    "int? = null": {"type": ["null", "int"], "default": None},
    "int? = 0": {"type": ["int", "null"], "default": 0},
}
"""What a record may say of a field."""


def records() -> dict[str, Json]:
    """Every record of two fields that each may be there or not, with or without a default."""
    return {
        f"a {first}, b {second}": {
            "type": "record",
            "name": "R",
            "fields": [
                {"name": name, **kind}
                for name, kind in (("a", FIELDS[first]), ("b", FIELDS[second]))
                if kind is not None
            ],
        }
        for first, second in product(FIELDS, FIELDS)
    }
