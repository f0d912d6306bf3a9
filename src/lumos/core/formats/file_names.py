"""What the name of a file promises about its content."""

from __future__ import annotations

from typing import Final, NamedTuple

from lumos.core.formats import packed

AVRO, CSV, JSON, ORC, PARQUET = "avro", "csv", "json", "orc", "parquet"
ARROW, EXCEL = "arrow", "excel"

FORMATS: Final = {
    ARROW: "Arrow",
    AVRO: "Avro",
    CSV: "CSV",
    EXCEL: "Excel",
    JSON: "JSON",
    ORC: "ORC",
    PARQUET: "Parquet",
}
"""The formats that can be read, and how people spell them."""

SUFFIXES: Final = {
    "arrow": ARROW,
    "arrows": ARROW,
    "feather": ARROW,
    "ftr": ARROW,
    "ipc": ARROW,
    "avro": AVRO,
    "csv": CSV,
    "tsv": CSV,
    "tab": CSV,
    "psv": CSV,
    "xlsx": EXCEL,
    "xlsm": EXCEL,
    "json": JSON,
    "jsonl": JSON,
    "jsonlines": JSON,
    "ndjson": JSON,
    "geojson": JSON,
    "orc": ORC,
    "parquet": PARQUET,
    "parq": PARQUET,
    "pq": PARQUET,
}
"""What the end of a name says about a file's format."""

SUFFIXES_OF_ANYTHING: Final = ("txt", "dat", "data", "log")
"""Ends of names under which a table is as likely as anything else."""

ENCRYPTED: Final = ".encrypted"
"""What encrypting writers add to a name; the inner ending says what is encrypted."""

_OFTEN_PACKED: Final = (AVRO, CSV, JSON)

PATTERNS: Final = (
    *(
        f"*.{suffix}{codec}"
        for suffix in sorted([*SUFFIXES, *SUFFIXES_OF_ANYTHING])
        for codec in ("", *(f".{end}" for end in packed.SUFFIXES))
        if not codec or SUFFIXES.get(suffix, CSV) in _OFTEN_PACKED
    ),
    f"*.parquet{ENCRYPTED}",
)
"""The names of files that are looked into unless somebody says otherwise."""


class Promise(NamedTuple):
    """What a name promises."""

    format: str | None
    """The format inside; None where the name does not show it."""
    codec: str | None
    """How it is packed; None where the name does not show it."""
    suffix: str
    """The part of the name that promises it, with its points, in small letters."""


def promise_of(name: str) -> Promise:
    """Return what a file's name or path promises."""
    lowered = name.rpartition("/")[2].lower().removesuffix(ENCRYPTED)
    stem, point, suffix = lowered.rpartition(".")
    codec = packed.SUFFIXES.get(suffix) if point else None
    if codec is None:
        return Promise(SUFFIXES.get(suffix) if point else None, None, f".{suffix}")
    inner = stem.rpartition(".")[2]
    return Promise(SUFFIXES.get(inner), codec, f".{inner}.{suffix}")
