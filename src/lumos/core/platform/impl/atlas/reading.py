"""Datasets read from entities, with what lies around them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from lumos.core.models import DatasetLineage, LineageEdge, LumosDataset, with_parts
from lumos.core.platform.impl.atlas.columns import field_of, key_columns
from lumos.core.platform.impl.atlas.datasets import DatasetParts, dataset_of
from lumos.core.platform.impl.atlas.foreign import (
    Column,
    foreign_columns,
    foreign_dataset,
    referenced_tables,
)
from lumos.core.platform.impl.atlas.foreign_lineage import ForeignLineage
from lumos.core.platform.impl.atlas.things import edge_of
from lumos.core.platform.impl.atlas.typedefs import COLUMN_EDGE, DATASET, EDGE, JOB
from lumos.core.platform.impl.atlas.wire import Json, is_live, mapping, objects

if TYPE_CHECKING:
    from lumos.core.platform.impl.atlas.client import AtlasClient
    from lumos.core.platform.impl.atlas.vocabulary import Vocabulary


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

    def datasets(self, entities: Sequence[Json], referred: Json) -> Iterator[LumosDataset]:
        """Yield the datasets of entities, with the lineage that their edges tell."""
        upstream: dict[str, set[str]] = defaultdict(set)
        downstream: dict[str, set[str]] = defaultdict(set)
        for edge in self.edges(entities):
            upstream[edge.downstream_urn].add(edge.upstream_urn)
            downstream[edge.upstream_urn].add(edge.downstream_urn)
        for entity in entities:
            dataset = self.dataset(entity, referred)
            lineage = DatasetLineage.from_json(
                {
                    "upstream": tuple(upstream[dataset.urn]),
                    "downstream": tuple(downstream[dataset.urn]),
                }
            )
            yield with_parts(dataset, lineage=lineage)

    def dataset(self, entity: Json, referred: Json) -> LumosDataset:
        """Return the dataset of an entity, without lineage."""
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
        guids = {
            str(process.get("guid"))
            for entity in entities
            for name in ("inputToProcesses", "outputFromProcesses")
            for process in objects(mapping(entity.get("relationshipAttributes")).get(name))
            if is_live(process) and process.get("typeName") not in _NO_EDGES
        }
        return self.edges_of(sorted(guids))

    def edges_of(self, guids: Iterable[str]) -> list[LineageEdge]:
        """Return the edges that processes stand for, those of Lumos and those of others."""
        processes, _ = self._client.entities(guids)
        own = [edge_of(each) for each in processes if each.get("typeName") == EDGE]
        others = [each for each in processes if each.get("typeName") not in (EDGE, *_NO_EDGES)]
        return [*own, *self._others.edges(others)]

    def _tags(self, entity: Json) -> list[str]:
        return [self._vocabulary.tag_of(name) for name in own_classifications(entity)]

    def _terms(self, entity: Json) -> list[str]:
        meanings = objects(mapping(entity.get("relationshipAttributes")).get("meanings"))
        names = (
            self._vocabulary.term_of(str(term.get("guid"))) for term in meanings if is_live(term)
        )
        return [name for name in names if name is not None]


def own_classifications(entity: Json) -> list[str]:
    """Return the classifications of an entity itself, not those that lineage brought to it."""
    guid = entity.get("guid")
    return [
        str(each.get("typeName"))
        for each in objects(entity.get("classifications"))
        if each.get("entityGuid") in (None, guid)
    ]


def live_columns(entity: Json, referred: Json) -> Iterator[Json]:
    """Yield the column entities of a dataset that are not deleted."""
    for column in objects(mapping(entity.get("relationshipAttributes")).get("columns")):
        full = mapping(referred.get(str(column.get("guid"))))
        if is_live(column) and full and full.get("status") != "DELETED":
            yield full


def _position(column: Json) -> int:
    position = mapping(column.get("attributes")).get("position")
    return position if isinstance(position, int) else 0
