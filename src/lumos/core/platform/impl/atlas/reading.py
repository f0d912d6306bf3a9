"""Datasets read from entities, with what lies around them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from lumos.core.models import DatasetLineage, LineageEdge, LumosDataset, with_parts
from lumos.core.platform.impl.atlas.columns import field_of
from lumos.core.platform.impl.atlas.datasets import DatasetParts, dataset_of
from lumos.core.platform.impl.atlas.foreign import (
    end_guids,
    foreign_dataset,
    foreign_edges,
    foreign_field,
    foreign_keys_of,
    urn_of,
)
from lumos.core.platform.impl.atlas.things import edge_of
from lumos.core.platform.impl.atlas.typedefs import DATASET, EDGE, JOB
from lumos.core.platform.impl.atlas.wire import Json, mapping, objects, text

if TYPE_CHECKING:
    from lumos.core.platform.impl.atlas.client import AtlasClient
    from lumos.core.platform.impl.atlas.vocabulary import Vocabulary


class DatasetReader:
    """Makes datasets from entities."""

    def __init__(
        self, client: AtlasClient, vocabulary: Vocabulary, *, table_types: tuple[str, ...]
    ) -> None:
        self._client = client
        self._vocabulary = vocabulary
        self._table_types = table_types

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
        columns = sorted(live_columns(entity, referred), key=_position)
        if entity.get("typeName") != DATASET:
            theirs = [
                foreign_field(column, self._tags(column), terms=self._terms(column))
                for column in columns
            ]
            parts = DatasetParts(theirs, self._tags(entity), self._terms(entity))
            return foreign_dataset(entity, parts, keys=foreign_keys_of(columns))
        fields = [
            field_of(column, self._tags(column), terms=self._terms(column)) for column in columns
        ]
        return dataset_of(entity, DatasetParts(fields, self._tags(entity), self._terms(entity)))

    def edges(self, entities: Iterable[Json]) -> list[LineageEdge]:
        """Return the edges that lead to and from datasets."""
        guids = {
            str(process.get("guid"))
            for entity in entities
            for name in ("inputToProcesses", "outputFromProcesses")
            for process in objects(mapping(entity.get("relationshipAttributes")).get(name))
            if is_live(process) and process.get("typeName") not in (JOB, None)
        }
        return self.edges_of(sorted(guids))

    def edges_of(self, guids: Iterable[str]) -> list[LineageEdge]:
        """Return the edges that processes stand for, those of Lumos and those of others."""
        processes, _ = self._client.entities(guids)
        own = [edge_of(each) for each in processes if each.get("typeName") == EDGE]
        others = [each for each in processes if each.get("typeName") not in (EDGE, JOB)]
        ends = {guid for each in others for guid in (*end_guids(each, "inputs"),
                                                     *end_guids(each, "outputs"))}  # fmt: skip
        found, _ = self._client.entities(sorted(ends))
        urns = {
            str(each.get("guid")): urn
            for each in found
            if (urn := urn_of(each, self._table_types)) is not None
        }
        return [*own, *(edge for each in others for edge in foreign_edges(each, urns))]

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


def is_live(related: Json) -> bool:
    """Tell whether neither a related entity nor the relation to it is deleted."""
    states = (text(related.get("entityStatus")), text(related.get("relationshipStatus")))
    return "DELETED" not in states


def _position(column: Json) -> int:
    position = mapping(column.get("attributes")).get("position")
    return position if isinstance(position, int) else 0
