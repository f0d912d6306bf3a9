"""Datasets written as entities, in as few requests as Atlas allows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.json_reading import find_object, find_texts, object_or_empty, texts_among
from lumos.core.platform.impl.atlas.mapping.own_values import own_values
from lumos.core.platform.impl.atlas.reader.datasets import live_columns, own_classifications

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.atlas.client import AtlasClient
    from lumos.core.platform.impl.atlas.mapping.columns import Labelled
    from lumos.core.platform.impl.atlas.mapping.datasets import DatasetEntity
    from lumos.core.platform.impl.atlas.writer.vocabulary import Vocabulary

MOST_ENTITIES = 1_000
"""How many entities, columns included, go into one request."""


class DatasetWriter:
    """Brings the entities of a dataset to what they should be."""

    def __init__(self, client: AtlasClient, vocabulary: Vocabulary) -> None:
        self._client = client
        self._vocabulary = vocabulary

    def write(self, datasets: Sequence[tuple[DatasetEntity, tuple[Json, Json] | None]]) -> None:
        """Create the entities of datasets, or update those that are held, many by one request."""
        some: list[tuple[DatasetEntity, tuple[Json, Json] | None]] = []
        size = 0
        for each in datasets:
            needed = 1 + len(each[0].columns)
            if some and size + needed > MOST_ENTITIES:
                self._write(some)
                some, size = [], 0
            some.append(each)
            size += needed
        if some:
            self._write(some)

    def _write(self, datasets: Sequence[tuple[DatasetEntity, tuple[Json, Json] | None]]) -> None:
        """Write what fits into one request.

        Classifications, labels and business metadata count in a bulk request only for what it
        creates, so for what it updates they are sent apart.
        """
        parts = [part for wanted, _ in datasets for part in (wanted.head, *wanted.columns)]
        words = _Words(
            self._vocabulary.define_tags({tag for part in parts for tag in part.tags}),
            self._vocabulary.define_terms({term for part in parts for term in part.terms}),
        )
        numbers = count(1)
        written = [(_entities(wanted, words, numbers), held) for wanted, held in datasets]
        self._client.put([entity for entities, _ in written for entity in entities])
        for entities, held in written:
            known = _by_key(held)
            for entity in entities:
                if (before := known.pop(_key(entity), None)) is not None:
                    self._update_labels(entity, before, guid=str(before["guid"]))
            self._client.remove([str(column["guid"]) for column in known.values()])

    def _update_labels(self, wanted: Json, before: Json, *, guid: str) -> None:
        has = {*own_classifications(before)}
        should = {*own_classifications(wanted)}
        self._client.declassify(guid, has - should)
        self._client.classify(guid, should - has)
        self._set_own(wanted, before, guid=guid)

    def _set_own(self, wanted: Json, before: Json, *, guid: str) -> None:
        """Set what the bulk request leaves alone, where it is to differ."""
        if "labels" not in wanted:
            return
        has = own_values(before)
        if texts_among(wanted["labels"]) != find_texts(has, "labels"):
            self._client.set_labels(guid, texts_among(wanted["labels"]))
        business, held = (find_object(each, "businessAttributes") for each in (wanted, has))
        if business != held:  # a kind that is to go must be named, as it is without values
            gone: Json = {name: {} for name in held}
            self._client.set_business_metadata(guid, {**gone, **business})


class _Words(NamedTuple):
    """The classifications and the GUIDs of terms, by the names of tags and terms."""

    tags: Mapping[str, str]
    terms: Mapping[str, str]


def _entities(wanted: DatasetEntity, words: _Words, numbers: Iterator[int]) -> list[Json]:
    """Return a dataset and its columns, which name each other by numbers of this request."""
    head = _with_labels(wanted.head, words, guid=f"-{next(numbers)}")
    columns = [_with_labels(column, words, guid=f"-{next(numbers)}") for column in wanted.columns]
    owner: Json = {"guid": head["guid"], "typeName": head["typeName"]}
    for column in columns:  # what belongs to another must say to which
        object_or_empty(column["relationshipAttributes"])["dataset"] = owner
    object_or_empty(head["relationshipAttributes"])["columns"] = [
        {"guid": column["guid"], "typeName": column["typeName"]} for column in columns
    ]
    return [head, *columns]


def _with_labels(part: Labelled, words: _Words, *, guid: str) -> Json:
    return {
        **part.entity,
        "guid": guid,
        "classifications": [{"typeName": words.tags[tag], "propagate": False} for tag in part.tags],
        "relationshipAttributes": {
            "meanings": [
                {"guid": words.terms[term], "typeName": "AtlasGlossaryTerm"} for term in part.terms
            ]
        },
    }


def _by_key(held: tuple[Json, Json] | None) -> dict[str, Json]:
    """Return the entities that are held, a dataset and its columns, by qualified name."""
    if held is None:
        return {}
    entities: Iterable[Json] = (held[0], *live_columns(*held))
    return {_key(entity): entity for entity in entities}


def _key(entity: Json) -> str:
    return str(find_object(entity, "attributes").get("qualifiedName"))
