"""Writes what a discovery found as a settings file that people review and then ingest with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models import LumosDataset


def sources_document(
    address: str,
    source: Mapping[str, JsonValue],
    *,
    datasets: Iterable[LumosDataset],
    unreadable: Iterable[str],
    at: datetime,
) -> str:
    """Return the YAML of one source, with all that was found in it as comments.

    Args:
        address: what was discovered, as the user wrote it.
        source: its settings, without secrets.
        datasets: what was found.
        unreadable: the files that could not be read.
        at: now.
    """
    lines = [
        f"# Found by: lumos discover {_plain(address)}, {at:%Y-%m-%d %H:%M} UTC.",
        "# Look through it, leave out with `exclude` what is not wanted, then run:",
        "#   lumos ingest --config FILE",
        "sources:",
        *_entry(source),
        *_comments("datasets found here", map(_dataset, datasets)),
        *_comments("files that could not be read", map(_plain, unreadable)),
    ]
    return "\n".join(lines) + "\n"


def _entry(source: Mapping[str, JsonValue]) -> Iterator[str]:
    """Yield the keys of the source; JSON is YAML, whatever a name holds."""
    for number, (key, value) in enumerate(source.items()):
        text = json.dumps(value).replace("${", "$${")  # that would be a variable
        yield f"{'  - ' if number == 0 else '    '}{key}: {text}"


def _comments(title: str, lines: Iterable[str]) -> Iterator[str]:
    every = list(lines)
    if every:
        yield f"    # {len(every):,} {title}:"
        yield from (f"    #   {line}" for line in every)


def _dataset(dataset: LumosDataset) -> str:
    statistics, location = dataset.statistics, dataset.location
    parts = [dataset.format or "unknown", f"{len(dataset.schema.fields)} columns"]
    if statistics is not None and statistics.file_count is not None:
        parts.append(f"{statistics.file_count:,} files")
    if location is not None and location.partitioning:
        parts.append(f"by {location.partitioning}")
    return _plain(f"{dataset.urn}  ({', '.join(parts)})")


def _plain(text: str) -> str:
    """Return text that cannot leave its comment."""
    return "".join(
        character if character.isprintable() else json.dumps(character)[1:-1] for character in text
    )
