"""Datasets read from entities, with what lies around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from lumos.core.json_reading import find_object, find_objects, find_text, object_at, objects_at
from lumos.core.models import LineageEdge, LumosDataset, NeighboursBuilder, with_parts
from lumos.core.platform.fitting import fitting
from lumos.core.platform.impl.atlas.mapping.columns import field_of, key_columns
from lumos.core.platform.impl.atlas.mapping.datasets import DatasetParts, dataset_of
from lumos.core.platform.impl.atlas.mapping.foreign import (
    Column,
    foreign_columns,
    foreign_dataset,
    referenced_tables,
)
from lumos.core.platform.impl.atlas.mapping.own_values import OWN
from lumos.core.platform.impl.atlas.mapping.things import edge_of
from lumos.core.platform.impl.atlas.mapping.typedefs import COLUMN_EDGE, DATASET, EDGE, JOB
from lumos.core.platform.impl.atlas.mapping.wire import is_live
from lumos.core.platform.impl.atlas.reader.foreign_lineage import ForeignLineage
from lumos.core.platform.unreadable import UNFIT, UnreadableItems

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.atlas.client import AtlasClient
    from lumos.core.platform.impl.atlas.writer.vocabulary import Vocabulary


_NAMED = ("qualifiedName", "name", "platform")
"""What a dataset cannot be read without."""
_ODD = "odd"
_ITSELF = "itself"
"""Where the extension keeps what fits no dataset, and processes from a dataset to itself."""
_NO_EDGES = (JOB, COLUMN_EDGE, None)
"""Processes that are no edges between datasets."""


class DatasetReader:
    """Makes datasets from entities."""

    def __init__(
        self, client: AtlasClient, vocabulary: Vocabulary, *, table_types: tuple[str, ...]
    ) -> None:
        self._client = client
        self._vocabulary = vocabulary
        self._others = ForeignLineage(client, table_types=table_types)

    def datasets(
        self, entities: Sequence[Json], referred: Json, *, unread: UnreadableItems
    ) -> Iterator[LumosDataset]:
        """Yield the datasets of entities, with the lineage of their edges.

        One that cannot be read is noted.
        """
        around = self._processes(entities)
        # What cannot be read is reported where the edges are listed.
        neighbours = NeighboursBuilder(self._edges_of(around, UnreadableItems()))
        itself = self._others.to_themselves(around)
        read = partial(self.dataset, referred=referred)
        for dataset in unread.each("dataset", entities, read, name=name_in):
            parts: dict[str, object] = {"lineage": neighbours.of(dataset.urn)}
            if dataset.urn in itself:
                parts["extensions"] = _extended(dataset, _ITSELF, itself[dataset.urn])
            yield with_parts(dataset, **parts)

    def dataset(self, entity: Json, referred: Json) -> LumosDataset:
        """Return the dataset of an entity, without lineage.

        A value that fits no dataset is kept in its extension.
        """
        try:
            return self._dataset(entity, referred)
        except UNFIT:
            return self._fitted(entity, referred)

    def _fitted(self, entity: Json, referred: Json) -> LumosDataset:
        """Return a dataset of what fits of an entity, and the rest in its extension."""
        certain: Json = {name: entity[name] for name in ("typeName", "guid") if name in entity}
        attributes = find_object(entity, "attributes")
        named: Json = {name: attributes[name] for name in _NAMED if name in attributes}

        def whole(part: Json) -> Json:
            return {**part, **certain, "attributes": {**find_object(part, "attributes"), **named}}

        def fits(part: Json) -> bool:
            try:
                self._dataset(whole(part), referred)
            except UNFIT:
                return False
            return True

        rest: Json = {name: value for name, value in entity.items() if name not in certain}
        part = fitting(rest, fits)
        odd: Json = {name: value for name, value in rest.items() if part.get(name) != value}
        dataset = self._dataset(whole(part), referred)
        return with_parts(dataset, extensions=_extended(dataset, _ODD, odd))

    def _dataset(self, entity: Json, referred: Json) -> LumosDataset:
        if entity.get("typeName") != DATASET:
            theirs = [
                Column(column, self._tags(column), self._terms(column))
                for column in foreign_columns(entity, referred)
            ]
            if others := referenced_tables(entity, referred):
                tables, _ = self._client.entities(others)
                referred = {**referred, **{str(each.get("guid")): each for each in tables}}
            parts = DatasetParts((), self._tags(entity), self._terms(entity))
            return foreign_dataset(entity, parts, columns=theirs, referred=referred)
        columns = sorted(live_columns(entity, referred), key=_position)
        fields = [
            field_of(column, self._tags(column), terms=self._terms(column)) for column in columns
        ]
        keys = key_columns(columns)
        return dataset_of(
            entity, DatasetParts(fields, self._tags(entity), self._terms(entity), keys)
        )

    def edges(self, entities: Iterable[Json]) -> list[LineageEdge]:
        """Return the edges that lead to and from datasets."""
        return self._edges_of(self._processes(entities), UnreadableItems())

    def edges_of(self, guids: Iterable[str], unread: UnreadableItems) -> list[LineageEdge]:
        """Return the edges that processes stand for, those of Lumos and those of others.

        One that cannot be read is noted.
        """
        processes, _ = self._client.entities(
            guids, forbidden=lambda guid, error: unread.add("lineage_edge", guid, error=error)
        )
        return self._edges_of(processes, unread)

    def _processes(self, entities: Iterable[Json]) -> list[Json]:
        """Return the processes that begin or end at datasets."""
        guids = {
            str(process.get("guid"))
            for entity in entities
            for name in ("inputToProcesses", "outputFromProcesses")
            for process in find_objects(entity, "relationshipAttributes", name)
            if is_live(process)
            and find_text(process, "guid")
            and process.get("typeName") not in _NO_EDGES
        }
        return self._client.entities(sorted(guids))[0]  # a listing of edges names what is hidden

    def _edges_of(self, processes: Sequence[Json], unread: UnreadableItems) -> list[LineageEdge]:
        mine = [each for each in processes if each.get("typeName") == EDGE]
        own = unread.each("lineage_edge", mine, edge_of, name=name_in)
        others = [each for each in processes if each.get("typeName") not in (EDGE, *_NO_EDGES)]
        return [*own, *self._others.edges(others, unread)]

    def _tags(self, entity: Json) -> list[str]:
        return [self._vocabulary.tag_of(name) for name in own_classifications(entity)]

    def _terms(self, entity: Json) -> list[str]:
        meanings = objects_at(object_at(entity, "relationshipAttributes"), "meanings")
        names = (
            self._vocabulary.term_of(str(term.get("guid"))) for term in meanings if is_live(term)
        )
        return [name for name in names if name is not None]


def name_in(entity: Json) -> str:
    """Return the name under which people find an entity, where it has one."""
    name = find_text(entity, "attributes", "qualifiedName")
    return name or f"{entity.get('typeName')} {entity.get('guid')}"


def _extended(dataset: LumosDataset, name: str, value: JsonValue) -> dict[str, JsonValue]:
    """Return the extensions of a dataset with one thing more of Atlas."""
    given = find_object(dataset.document, "extensions")
    return {**given, OWN: {**find_object(given, OWN), name: value}}


def own_classifications(entity: Json) -> list[str]:
    """Return the classifications of an entity itself, not those that lineage brought to it."""
    guid = entity.get("guid")
    return [
        str(each.get("typeName"))
        for each in objects_at(entity, "classifications")
        if each.get("entityGuid") in (None, guid)
    ]


def live_columns(entity: Json, referred: Json) -> Iterator[Json]:
    """Yield the column entities of a dataset that are not deleted."""
    for column in objects_at(object_at(entity, "relationshipAttributes"), "columns"):
        full = find_object(referred, str(column.get("guid")))
        if is_live(column) and full and full.get("status") != "DELETED":
            yield full


def _position(column: Json) -> int:
    position = find_object(column, "attributes").get("position")
    return position if isinstance(position, int) else 0
