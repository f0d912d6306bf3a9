"""Types of PostgreSQL as canonical types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from lumos.core.errors import UnreadableItemError
from lumos.core.models.types import DEEPEST_TYPE

ColumnParts: TypeAlias = dict[str, Any]
"""A type as the JSON of a field has it, without name."""

MOST_PARTS: Final = 10_000
"""How many types one column may have inside it; composites of composites double with each level."""
_HEADER: Final = 4
"""What a modifier counts before its own number: the header of a stored value."""
_NO_PRECISION: Final = 0xFFFF

_PLAIN: Final[Mapping[str, str]] = {
    "bool": "BOOLEAN",
    "int2": "INT16",
    "int4": "INT32",
    "int8": "INT64",
    "oid": "UINT32",
    "xid": "UINT32",
    "cid": "UINT32",
    "xid8": "UINT64",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "bytea": "BINARY",
    "date": "DATE",
    "uuid": "UUID",
    "json": "JSON",
    "jsonb": "JSON",
    **dict.fromkeys(("point", "line", "lseg", "box", "path", "polygon", "circle"), "GEOMETRY"),
    **dict.fromkeys(("geometry", "geography"), "GEOMETRY"),
    # Values that every client sends and gets as text.
    **dict.fromkeys(("text", "name", "char", "citext", "xml", "ltree", "lquery"), "STRING"),
    **dict.fromkeys(("inet", "cidr", "macaddr", "macaddr8"), "STRING"),
    **dict.fromkeys(("tsvector", "tsquery", "jsonpath", "pg_lsn", "regclass"), "STRING"),
}
_WITH_LENGTH: Final = frozenset({"varchar", "bpchar"})
_BITS: Final = frozenset({"bit", "varbit"})
_TIMES: Final[Mapping[str, ColumnParts]] = {
    "time": {"type": "TIME"},
    "timetz": {"type": "TIME"},
    "timestamp": {"type": "TIMESTAMP_NTZ"},
    "timestamptz": {"type": "TIMESTAMP", "timezone": "UTC"},
    "interval": {"type": "DURATION"},
}
_VECTORS: Final = frozenset({"vector", "halfvec"})


@dataclass(frozen=True)
class Resolved:
    """A type of a column, with what a domain adds to it."""

    parts: ColumnParts
    not_null: bool = False
    checks: tuple[tuple[str, str], ...] = ()
    size: int = 1
    """How many types it consists of."""
    depth: int = 1


class TypeCatalog:
    """The types of one database by their number, each resolved once."""

    def __init__(self) -> None:
        self._known: dict[int, Mapping[str, Any]] = {}
        self._resolved: dict[tuple[int, int, str], Resolved] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Take a row of the query of types."""
        self._known[row["oid"]] = row

    def resolve(self, number: int, modifier: int, native: str | None = None) -> Resolved:
        """Return the canonical type; one that is not known to Lumos is UNKNOWN.

        Args:
            number: the type's row in `pg_type`.
            modifier: length, precision or scale, as the server packs them into a number.
            native: the type as the server spells it.

        Raises:
            UnreadableItemError: the type has more types inside it than a dataset can hold.
        """
        row = self._known.get(number)
        native = native or (row["native"] if row else "unknown")
        key = (number, modifier, native)
        if key not in self._resolved:
            found = (
                Resolved({"type": "UNKNOWN"}) if row is None else self._of(row, modifier, native)
            )
            if found.size > MOST_PARTS or found.depth > DEEPEST_TYPE:
                raise UnreadableItemError(
                    f"a column has a type with more than {MOST_PARTS} types inside it, "
                    f"or nested more than {DEEPEST_TYPE} levels deep",
                    hint="leave the table out with: exclude",
                )
            self._resolved[key] = _named(found, native)
        return self._resolved[key]

    def _of(self, row: Mapping[str, Any], modifier: int, native: str) -> Resolved:
        match row["kind"]:
            case "d":
                return self._domain(row, modifier)
            case "e":
                return Resolved(_enum(row["labels"] or []))
            case "c":
                return self._struct(row)
            case "r":
                return self._range(row)
            case "m":
                return _array_of(self._range(row))
        if row["is_array"]:
            inner = native.removesuffix("[]") if native.endswith("[]") else None
            return _array_of(self.resolve(row["element"], modifier, inner))
        return Resolved(_base_type(row["name"], modifier))

    def _domain(self, row: Mapping[str, Any], modifier: int) -> Resolved:
        base = self.resolve(row["base"], row["modifier"] if modifier < 0 else modifier)
        own = tuple((name, expression) for name, expression in row["checks"] or ())
        not_null = base.not_null or row["not_null"]
        return Resolved(base.parts, not_null, (*base.checks, *own), base.size, base.depth)

    def _struct(self, row: Mapping[str, Any]) -> Resolved:
        members = {
            each["name"]: self.resolve(each["type"], each["modifier"], each["native"])
            for each in row["attributes"] or ()
        }
        return _struct_of(members)

    def _range(self, row: Mapping[str, Any]) -> Resolved:
        bound = self.resolve(row["bounds"], -1)
        flag = Resolved({"type": "BOOLEAN"})
        return _struct_of({"lower": bound, "upper": bound, "lower_inc": flag, "upper_inc": flag})


def _named(found: Resolved, native: str) -> Resolved:
    parts = {**found.parts, "native_type": native}
    return Resolved(parts, found.not_null, found.checks, found.size, found.depth)


def _array_of(items: Resolved) -> Resolved:
    parts = {"type": "ARRAY", "items": {**items.parts, "nullable": not items.not_null}}
    return Resolved(parts, size=items.size + 1, depth=items.depth + 1)


def _struct_of(members: Mapping[str, Resolved]) -> Resolved:
    fields = [
        {**member.parts, "name": name, "nullable": not member.not_null}
        for name, member in members.items()
    ]
    return Resolved(
        {"type": "STRUCT", "fields": fields},
        size=1 + sum(member.size for member in members.values()),
        depth=1 + max((member.depth for member in members.values()), default=0),
    )


def _enum(labels: list[str]) -> ColumnParts:
    return {"type": "ENUM", "symbols": labels} if labels else {"type": "STRING"}


def _base_type(name: str, modifier: int) -> ColumnParts:
    if plain := _PLAIN.get(name):
        return {"type": plain}
    if name in _TIMES:
        return {**_TIMES[name], "unit": _unit(modifier)}
    if name in _WITH_LENGTH:
        return _with_length("STRING", modifier - _HEADER)
    if name in _BITS:
        return _with_length("STRING", modifier)
    if name == "numeric":
        return _decimal(modifier)
    if name == "money":
        return {"type": "DECIMAL", "precision": 19, "scale": 2}
    if name == "hstore":
        key, value = {"type": "STRING", "nullable": False}, {"type": "STRING", "nullable": True}
        return {"type": "MAP", "key": key, "value": value}
    if name in _VECTORS:
        return {"type": "ARRAY", "items": {"type": "FLOAT", "nullable": False}}
    return {"type": "UNKNOWN"}


def _with_length(kind: str, length: int) -> ColumnParts:
    return {"type": kind, "length": length} if length > 0 else {"type": kind}


def _decimal(modifier: int) -> ColumnParts:
    if modifier < _HEADER:
        return {"type": "DECIMAL"}
    packed = modifier - _HEADER
    scale = ((packed & 0x7FF) ^ 1024) - 1024  # 11 bits with a sign
    return {"type": "DECIMAL", "precision": (packed >> 16) & 0xFFFF, "scale": scale}


def _unit(modifier: int) -> str:
    """Return the unit that holds so many digits of a second; without a modifier, microseconds.

    An interval packs its fields, such as DAY TO SECOND, above the digits.
    """
    digits = modifier & _NO_PRECISION
    if modifier < 0 or digits == _NO_PRECISION:
        return "us"
    return "s" if digits == 0 else "ms" if digits <= 3 else "us"  # noqa: PLR2004
