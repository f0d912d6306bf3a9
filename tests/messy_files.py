"""Writes text files as people and tools really write them, each with the names and types it holds.

All of it follows from one seed. What is written in a column is decided by a kind, whose type is
known; how the table is written (delimiter, quotes, encoding, titles, padding) is drawn apart.
"""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

Rng = random.Random
Kind = tuple[str, Callable[[Rng], str]]

WORDS: Final = (
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbour", "iris", "juniper",
    "kelp", "lumen", "maple", "north", "opal", "pine", "quartz", "river", "slate", "tundra",
)  # fmt: skip
ACCENTED: Final = ("Müller", "Žižek", "Ångström", "Peña", "Søren", "Łódź", "François")
NAMES: Final = (
    "id", "name", "amount", "city", "status", "created", "quantity", "price", "email", "notes",
    "region", "customer", "product", "weight", "height", "score", "code", "owner", "team", "total",
    "first name", "Last Name", "unit_price", "ship date", "e-mail", "% done", "Größe", "año",
    "2023", "2024", "Q1", "Q2 2024", "col1", "x", "y", "temp (°C)", "is_active", "zip", "phone",
)  # fmt: skip


def _date(rng: Rng) -> tuple[int, int, int]:
    return rng.randint(1995, 2029), rng.randint(1, 12), rng.randint(1, 28)


def _grouped(number: int, mark: str) -> str:
    return f"{number:,}".replace(",", mark)


def _text(rng: Rng) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(1, 3)))


def _iso(rng: Rng) -> str:
    return "{:04}-{:02}-{:02}".format(*_date(rng))


def _clock(rng: Rng) -> str:
    return f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"


def _numeric_date(mark: str, order: str) -> Callable[[Rng], str]:
    def made(rng: Rng) -> str:
        year, month, day = _date(rng)
        parts = {"d": f"{day:02}", "m": f"{month:02}", "y": f"{year:04}"}
        return mark.join(parts[part] for part in order)

    return made


_slashed = _numeric_date("/", "mdy")
MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _named_date(mark: str) -> Callable[[Rng], str]:
    def made(rng: Rng) -> str:
        year, month, day = _date(rng)
        return mark.join((f"{day:02}", MONTHS[month - 1], str(year)))

    return made


KINDS: Final[dict[str, Kind]] = {
    "integer": ("INT64", lambda r: str(r.randint(-5000, 90000))),
    "counter": ("INT64", lambda r: str(r.randint(1, 9))),
    "decimal": ("DOUBLE", lambda r: f"{r.uniform(-1000, 90000):.2f}"),
    "scientific": ("DOUBLE", lambda r: f"{r.uniform(1, 9):.3f}e{r.randint(-9, 9)}"),
    "boolean": ("BOOLEAN", lambda r: r.choice(("true", "false"))),
    "text": ("STRING", _text),
    "accented": ("STRING", lambda r: r.choice(ACCENTED)),
    "code": ("STRING", lambda r: f"{r.randint(0, 9999):05}"),
    "email": ("STRING", lambda r: f"{r.choice(WORDS)}@{r.choice(WORDS)}.example"),
    "url": ("STRING", lambda r: f"https://{r.choice(WORDS)}.example/{r.randint(1, 99)}"),
    "phone": ("STRING", lambda r: f"+{r.randint(1, 99)}{r.randint(10**8, 10**9)}"),
    "phone spaced": ("STRING", lambda r: f"+49 {r.randint(100, 999)} {r.randint(10000, 99999)}"),
    "version": ("STRING", lambda r: f"{r.randint(0, 9)}.{r.randint(0, 20)}.{r.randint(0, 9)}"),
    "address": ("STRING", lambda r: f"10.{r.randint(0, 255)}.{r.randint(0, 255)}.7"),
    "huge": ("DECIMAL", lambda r: str(r.randint(2 * 10**19, 9 * 10**24))),
    "date": ("DATE", _iso),
    "date dotted": ("DATE", _numeric_date(".", "dmy")),
    "date slashed, day first": ("DATE", _numeric_date("/", "dmy")),
    "date slashed, month first": ("DATE", _numeric_date("/", "mdy")),
    "date slashed, year first": ("DATE", _numeric_date("/", "ymd")),
    "date dashed, day first": ("DATE", _numeric_date("-", "dmy")),
    "date with a month's name": ("DATE", _named_date("-")),
    "date with a spaced name": ("DATE", _named_date(" ")),
    "time": ("TIME", _clock),
    "time short": ("TIME", lambda r: _clock(r)[:5]),
    "moment": ("TIMESTAMP_NTZ", lambda r: f"{_iso(r)} {_clock(r)}"),
    "moment with zone": ("TIMESTAMP", lambda r: f"{_iso(r)}T{_clock(r)}Z"),
    "moment dotted": ("TIMESTAMP_NTZ", lambda r: f"{_numeric_date('.', 'dmy')(r)} {_clock(r)}"),
    "moment slashed": ("TIMESTAMP_NTZ", lambda r: f"{_slashed(r)} {_clock(r)[:5]}"),
    "nothing": ("UNKNOWN", lambda _: ""),
}  # fmt: skip
THOUSANDS: Final[dict[str, Kind]] = {
    "thousands": ("INT64", lambda r: _grouped(r.randint(0, 90_000_000), ",")),
    "thousands and cents": (
        "DOUBLE",
        lambda r: f"{_grouped(r.randint(0, 9_000_000), ',')}.{r.randint(0, 99):02}",
    ),
}
COMMAS: Final[dict[str, Kind]] = {
    "decimal comma": ("DOUBLE", lambda r: f"{r.uniform(-99, 9999):.2f}".replace(".", ",")),
    "decimal comma and points": (
        "DOUBLE",
        lambda r: f"{_grouped(r.randint(0, 9_000_000), '.')},{r.randint(0, 99):02}",
    ),
}


@dataclass(frozen=True)
class MessyTable:
    """A table and its truth, before it is written."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class MessyFile:
    """A file as it is stored, with the truth about it."""

    name: str
    content: bytes
    columns: tuple[tuple[str, str], ...]
    """Name and type of each column; names of a file without a header are `column_1` …"""
    traits: tuple[str, ...] = field(default=())
    """What is unusual about it, for the count of what was read wrong."""


def messy_table(rng: Rng, *, rows: int, kinds: dict[str, Kind]) -> MessyTable:
    """Return a table of some kinds of columns, each with a value in most rows."""
    chosen = rng.sample(sorted(kinds), k=rng.randint(2, min(8, len(kinds))))
    if all(kinds[kind][0] in ("STRING", "UNKNOWN") for kind in chosen):
        chosen.append("integer")
    names = rng.sample(NAMES, k=len(chosen))
    empty_share = rng.choice((0.0, 0.0, 0.1))
    lines = [
        tuple("" if rng.random() < empty_share else kinds[k][1](rng) for k in chosen)
        for _ in range(rows)
    ]
    # A column of mixed signs shows what it is in at least one row.
    lines.append(tuple(kinds[k][1](rng) for k in chosen))
    sure = {"thousands": "1,234,567", "thousands and cents": "1,234.50"}
    sure |= {"decimal comma": "12,5", "decimal comma and points": "1.234,56"}
    lines.append(tuple(sure.get(k) or kinds[k][1](rng) for k in chosen))
    return MessyTable(tuple(names), tuple(kinds[k][0] for k in chosen), tuple(lines))


def messy_csv(rng: Rng, *, number: int = 0) -> MessyFile:
    """Return one delimited file."""
    delimiter = rng.choice((",", ",", ";", "\t", "|"))
    quoting = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    quote = '"' if rng.random() < 0.9 else "'"
    kinds = dict(KINDS)
    commas = delimiter != "," and rng.random() < 0.4
    if commas:
        kinds = {**kinds, **COMMAS}
        del kinds["decimal"], kinds["scientific"]
    else:
        kinds |= THOUSANDS
    table = messy_table(rng, rows=rng.choice((3, 12, 40, 150, 600)), kinds=kinds)
    traits = [delimiter, "quoted" if quoting == csv.QUOTE_ALL else "plain"]
    lines = [list(row) for row in table.rows]
    head = list(table.names)
    columns = list(zip(head, table.types, strict=True))
    if rng.random() < 0.15:
        traits.append("padded header")
        head = [f" {name}  " for name in head]
    if rng.random() < 0.15:
        traits.append("trailing delimiter")
        lines = [[*row, ""] for row in lines]
        if rng.random() < 0.4:
            head.append("")
            columns.append(("", "UNKNOWN"))
    before: list[list[str]] = []
    if rng.random() < 0.2:
        padded = rng.random() < 0.6
        traits.append("padded title" if padded else "title")
        for _ in range(rng.randint(1, 3)):
            title = [rng.choice(("Report 2024", "Sales by region", "Exported by: amber", ""))]
            before.append(title + [""] * (len(head) - 1) if padded else title or ["Report"])
        before[0][0] = "Quarterly report"
    after: list[list[str]] = []
    if rng.random() < 0.12:
        traits.append("footer")
        after = [["Total: all rows"], ["generated by hand"]]
    text = _written([*before, head, *lines, *after], delimiter, quote=quote, quoting=quoting)
    if rng.random() < 0.2:
        traits.append("CRLF")
        text = text.replace("\n", "\r\n")
    if rng.random() < 0.06:
        traits.append("control bytes")
        text = text.replace(WORDS[0], f"{WORDS[0]}\x0b\x02", 3) + ""
        text = text.replace(WORDS[1], f"{WORDS[1]}\x00", 2)
    content, encoding = _encoded(rng, text)
    traits.append(encoding)
    name = f"{rng.choice(WORDS)}_{number:04}.{'tsv' if delimiter == chr(9) else 'csv'}"
    return MessyFile(name, content, _as_read(columns), tuple(traits))


def _as_read(columns: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """A column without name and value is what a trailing delimiter leaves: no column at all."""
    while columns and columns[-1] == ("", "UNKNOWN"):
        columns.pop()
    return tuple(columns)


def _written(rows: list[list[str]], delimiter: str, *, quote: str, quoting: int) -> str:
    stream = io.StringIO()
    csv.writer(
        stream,
        delimiter=delimiter,
        quotechar=quote,
        quoting=quoting,  # type: ignore[arg-type]
        lineterminator="\n",
    ).writerows(rows)
    return stream.getvalue()


def _encoded(rng: Rng, text: str) -> tuple[bytes, str]:
    encoding = rng.choice(("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"))
    try:
        return text.encode(encoding), encoding
    except UnicodeEncodeError:
        return text.encode(), "utf-8"
