"""The columns of the demo's tables: a type each, and a way to make up values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Literal, TypeAlias

Scalar = Literal["bool", "int32", "int64", "float", "double", "money", "string", "date", "time"]
Value: TypeAlias = (
    "bool | float | str | Decimal | date | Sequence[Value] | Mapping[str, Value] | None"
)
Maker: TypeAlias = Callable[[Random, int], Value]

FIRST_DAY = date(2024, 1, 15)
_NOON = datetime(2024, 1, 15, 12, tzinfo=UTC)
_CENT = Decimal("0.01")


@dataclass(frozen=True)
class Column:
    """A column, or a member of a struct."""

    name: str
    type: ColumnType
    make: Maker
    nullable: bool = False


@dataclass(frozen=True)
class Struct:
    """A value with named members."""

    members: tuple[Column, ...]


@dataclass(frozen=True)
class ListOf:
    """A list of values of one type."""

    item: ColumnType


@dataclass(frozen=True)
class MapOf:
    """Values of one type under text keys."""

    value: ColumnType


ColumnType: TypeAlias = Scalar | Struct | ListOf | MapOf


def rows_of(columns: Sequence[Column], count: int, *, seed: str) -> list[dict[str, Value]]:
    """Make up rows; the same seed always gives the same ones."""
    chance = Random(seed)  # noqa: S311 - made-up shop data, no secret
    return [{column.name: column.make(chance, row) for column in columns} for row in range(count)]


def key(name: str, *, start: int = 1) -> Column:
    """A number that counts up."""
    return Column(name, "int64", lambda _, row: start + row)


def code(name: str, prefix: str) -> Column:
    """A text key such as `C-00017`."""
    return Column(name, "string", lambda _, row: f"{prefix}-{row:05d}")


def reference(name: str, most: int = 500) -> Column:
    return Column(name, "int64", lambda chance, _: chance.randint(1, most))


def text_reference(name: str, prefix: str, most: int = 500) -> Column:
    return Column(name, "string", lambda chance, _: f"{prefix}-{chance.randint(1, most):05d}")


def number(name: str, most: int = 100) -> Column:
    return Column(name, "int32", lambda chance, _: chance.randint(0, most))


def share(name: str) -> Column:
    return Column(name, "double", lambda chance, _: round(chance.random(), 4))


def measure(name: str, most: float = 40.0) -> Column:
    return Column(name, "double", lambda chance, _: round(chance.uniform(0.1, most), 3))


def money(name: str, most: int = 500) -> Column:
    def make(chance: Random, _: int) -> Value:
        return Decimal(chance.randint(99, most * 100)) * _CENT

    return Column(name, "money", make)


def flag(name: str) -> Column:
    return Column(name, "bool", lambda chance, _: chance.random() < 0.5)  # noqa: PLR2004


def choice(name: str, *options: str) -> Column:
    return Column(name, "string", lambda chance, _: chance.choice(options))


def day(name: str) -> Column:
    def make(chance: Random, _: int) -> Value:
        return FIRST_DAY - timedelta(days=chance.randint(0, 700))

    return Column(name, "date", make)


def moment(name: str) -> Column:
    def make(chance: Random, _: int) -> Value:
        return _NOON + timedelta(seconds=chance.randint(-40_000, 40_000))

    return Column(name, "time", make)


def struct(name: str, *members: Column) -> Column:
    def make(chance: Random, row: int) -> Value:
        return {member.name: member.make(chance, row) for member in members}

    return Column(name, Struct(members), make)


def list_of(item: Column, *, length: int = 3, name: str | None = None) -> Column:
    """A list of one to `length` items; a length below zero means exactly so many."""

    def make(chance: Random, row: int) -> Value:
        count = -length if length < 0 else chance.randint(1, length)
        return [item.make(chance, row) for _ in range(count)]

    return Column(name or item.name, ListOf(item.type), make)


def map_of(value: Column, *keys: str) -> Column:
    def make(chance: Random, row: int) -> Value:
        return {each: value.make(chance, row) for each in keys}

    return Column(value.name, MapOf(value.type), make)


def maybe(column: Column) -> Column:
    """The column with a value missing here and there."""

    def make(chance: Random, row: int) -> Value:
        value = column.make(chance, row)
        return None if chance.random() < 0.2 else value  # noqa: PLR2004

    return Column(column.name, column.type, make, nullable=True)
