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
_COLUMNS: Final = ("columns", "dataModel.columns")
_NAMES: Final = (
    "name.keyword", "displayName.keyword", "fullyQualifiedName", "tableType", "fileFormats",
    "prefix", "tags.tagFQN", "serviceType", "service.displayName.keyword",
    "database.displayName.keyword", "databaseSchema.displayName.keyword",
    "domains.displayName.keyword",
    *(f"{columns}.{part}" for columns in _COLUMNS for part in ("name.keyword", "tags.tagFQN")),
)  # fmt: skip
"""Fields that hold names as keywords in lower case."""
_OWNERS: Final = ("owners.name", "owners.displayName.keyword")
_TEXTS: Final = ("description", *(f"{columns}.description" for columns in _COLUMNS))


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
    """Return a query of the index: each word in some field; none for no word."""
    return {"bool": {"must": [_of_word(word) for word in words]}} if words else None


def _of_word(word: str) -> Json:
    """Return a query for a word: a part of a name, or a word of a description or its beginning.

    Fields are named one by one: a word in all of them is hundreds of clauses, of which the server
    takes 1,024. Descriptions are stemmed, so that a word is looked for as the server stems it.
    """
    part = f"*{word}*"
    owners: Json = {"query_string": {"query": part, "fields": [*_OWNERS], "lenient": True}}
    found: list[JsonValue] = [
        {"query_string": {"query": part, "fields": [*_NAMES, *_OWNERS], "lenient": True}},
        {"multi_match": {"query": word, "type": "phrase_prefix", "fields": [*_TEXTS]}},
        {"nested": {"path": "owners", "query": owners, "ignore_unmapped": True}},
    ]
    return {"bool": {"should": found, "minimum_should_match": 1}}


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
