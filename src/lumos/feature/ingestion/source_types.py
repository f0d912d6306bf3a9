"""Which types a source may have; checked when settings are loaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from lumos.core.settings.problems import nearest
from lumos.feature.ingestion.handlers.factory import BUILT_IN, HandlerFactory

if TYPE_CHECKING:
    from lumos.core.settings import SourceEntry
    from lumos.core.settings.problems import KeyPath

_FORMATS: Final = frozenset(
    {"arrow", "avro", "csv", "delta", "excel", "hudi", "iceberg", "json", "jsonl", "ndjson", "orc"}
    | {"parquet", "tsv", "xlsx"}
)
"""Formats of files that somebody may take for a source."""
PLANNED: Final = frozenset({"bigquery", "databricks", "kafka", "snowflake"})
"""Types of the product's documents that no handler of this version reads."""


def type_problems(entries: Sequence[SourceEntry]) -> Iterator[tuple[KeyPath, str]]:
    """Yield the key of each unknown type, and what may be meant."""
    for number, entry in enumerate(entries):
        # Asking for the types of other packages takes a while.
        if entry.type not in BUILT_IN and not is_planned(entry.type):
            names = HandlerFactory.names()
            if entry.type not in names:
                yield ("sources", number, "type"), _unknown(entry.type, names)


def _unknown(source_type: str, names: Sequence[str]) -> str:
    if source_type.lower() in _FORMATS:
        return (
            "names a file format; give the storage that holds the files, such as local or s3, and"
            " Lumos finds the format of each file by itself"
        )
    near = nearest(source_type, {*names, *PLANNED})
    suggestion = f"did you mean '{near}'?" if near else f"known: {', '.join(names)}"
    return f"names no source type of Lumos; {suggestion}"


def is_planned(source_type: str) -> bool:
    """Return whether a type may be set already, although nothing reads it yet."""
    return source_type in PLANNED and source_type not in HandlerFactory.names()


def planned_types(entries: Sequence[SourceEntry]) -> tuple[str, ...]:
    """Return the types that are set and that nothing reads yet."""
    return tuple(sorted({entry.type for entry in entries if is_planned(entry.type)}))
