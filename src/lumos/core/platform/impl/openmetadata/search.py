"""Datasets found by OpenMetadata's own index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from lumos.core.platform.impl.openmetadata.mapping.figures import moment_of
from lumos.core.platform.impl.openmetadata.mapping.names import OWN, path_of
from lumos.core.platform.search_match import WINDOW, Candidate, Narrowed
from lumos.core.platform.threads import mapped
from lumos.core.platform.unreadable import UNFIT

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.openmetadata.client import OpenMetadataApi
    from lumos.core.platform.impl.openmetadata.mapping.stashed import Node
    from lumos.core.platform.impl.openmetadata.writer.datasets import DatasetWires

_TYPES: Final = ("table", "container")


def narrowed(
    api: OpenMetadataApi, datasets: DatasetWires, *, words: tuple[str, ...], workers: int
) -> Narrowed:
    """Return the datasets that hold all of the words in a field that OpenMetadata searches.

    The index names them; what they are is read from the database, which is never behind.
    """
    places: list[tuple[str, str]] = []
    beyond = 0
    for type_ in _TYPES:
        names, total = _names(api.search(type_, _query(words), most=WINDOW))
        beyond += max(0, total - len(names))
        places += [(type_, name) for name in names if path_of(name)[0] != OWN]
    room = places[:WINDOW]
    beyond += len(places) - len(room)
    nodes = mapped(lambda place: datasets.at(*place), room, workers=min(workers, len(room) or 1))
    candidates = [found for node in nodes if node and (found := _candidate(datasets, node))]
    return Narrowed(candidates, len(candidates) + beyond)


def _query(words: tuple[str, ...]) -> Json | None:
    """Return a query of the index: each word within a word of any field; none for no word."""
    clauses: list[JsonValue] = [
        {"query_string": {"query": f"*{word}*", "fields": ["*"], "lenient": True}} for word in words
    ]
    return {"bool": {"must": clauses}} if clauses else None


def _names(answer: Json) -> tuple[list[str], int]:
    hits = answer.get("hits")
    found = hits if isinstance(hits, dict) else {}
    rows, told = found.get("hits"), found.get("total")
    names = [*_named(rows if isinstance(rows, list) else [])]
    total = told.get("value") if isinstance(told, dict) else told
    return names, total if isinstance(total, int) else len(names)


def _named(rows: list[JsonValue]) -> Iterator[str]:
    for row in rows:
        source = row.get("_source") if isinstance(row, dict) else None
        name = source.get("fullyQualifiedName") if isinstance(source, dict) else None
        if isinstance(name, str) and name:
            yield name


def _candidate(datasets: DatasetWires, node: Node) -> Candidate | None:
    try:
        dataset = datasets.read(node, with_profile=False)
        name = str(node.entity["fullyQualifiedName"])
    except UNFIT:  # a listing names it
        return None
    if dataset is None:
        return None
    moment = node.entity.get("updatedAt")
    updated = moment_of(moment) if isinstance(moment, int) else None
    return Candidate(dataset, updated, name)
