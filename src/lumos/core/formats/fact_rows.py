"""What a file says of itself as one short row, for lakes of many files with few schemas.

A process that reads thousands of files meets each schema many times. A row names the schema by its
fingerprint and carries its text only the first time; what is text in the end is text already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import orjson

from lumos.core.formats.reader import read_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lumos.core.formats.facts import FileFacts

_dialects: dict[tuple[tuple[str, str], ...], str] = {}
_sent: set[str] = set()
"""The schemas that this process has sent; a child that is forked later begins with none."""


class FactsRow(NamedTuple):
    """What is kept of each file."""

    format: str
    fingerprint: str
    schema: str | None
    """Its canonical JSON, where this process did not send it before."""
    rows: int | None
    rows_estimate: int | None
    columns: str | None
    """The statistics of each column as JSON."""
    warnings: str | None
    """The warnings as JSON."""
    dialect: str | None
    """How it is written, as JSON."""


def read_row(stream: BinaryIO, *, size: int, name: str, value_ranges: bool = False) -> bytes:
    """Return the row of a file as JSON; of a file with members, its whole document.

    Raises:
        UnreadableItemError: as `read_file` says.
    """
    facts = read_file(stream, size=size, name=name, value_ranges=value_ranges)
    return facts.to_document() if facts.members else orjson.dumps(tuple(_row(facts)))


def _row(facts: FileFacts) -> FactsRow:
    known = facts.known_schema()
    schema = None
    if known.fingerprint not in _sent:
        _sent.add(known.fingerprint)
        schema = known.json.decode()
    columns = orjson.dumps(facts.columns_json()).decode() if facts.columns else None
    warnings = orjson.dumps(facts.warnings).decode() if facts.warnings else None
    return FactsRow(
        facts.format,
        known.fingerprint,
        schema,
        facts.rows,
        facts.rows_estimate,
        columns,
        warnings,
        _dialect(facts.properties),
    )


def _dialect(properties: Mapping[str, str]) -> str | None:
    if not properties:
        return None
    key = tuple(properties.items())
    known = _dialects.get(key)
    if known is None:
        known = _dialects[key] = orjson.dumps(dict(sorted(key))).decode()
    return known
