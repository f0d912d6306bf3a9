"""The samples of the contract hold the concepts that they are named after."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import JsonValue
from typing_extensions import override

from lumos.core.models import LineageEdge, LumosDataset, Urn
from lumos.core.platform.fidelity import CONCEPTS, FidelityCount
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.platform.interface import Entity, EntityKind, name_of
from lumos.core.store.database import StateDatabase
from lumos.testing.platform_concepts import ConceptContract, concept_dataset
from lumos.testing.platform_samples import dataset

OF_DATASETS = [concept for concept in CONCEPTS if concept_dataset(concept) is not None]


@pytest.mark.parametrize("concept", OF_DATASETS)
def test_a_sample_holds_its_concept(concept: str) -> None:
    sample = concept_dataset(concept)
    assert sample is not None
    count = FidelityCount()
    count.add_dataset(sample)

    assert concept in {row.concept for row in count.report(EmbeddedHandler).rows}


def test_every_concept_of_datasets_has_a_sample() -> None:
    assert CONCEPTS[: len(OF_DATASETS)] == tuple(OF_DATASETS)


class Losing(EmbeddedHandler):
    """A catalog that keeps everything but one concept."""

    lost = ""

    @override
    def get_dataset(self, urn: str) -> LumosDataset:
        found = super().get_dataset(urn)
        if found != concept_dataset(self.lost):
            return found
        return dataset(f"{found.name}s" if self.lost == "dataset" else found.name)

    @override
    def list_edges(self) -> Iterator[LineageEdge]:
        if self.lost == "lineage_edge":
            return
        for each in super().list_edges():
            kept = () if self.lost == "column_lineage" else each.column_mappings
            yield each.model_copy(update={"column_mappings": kept})

    @override
    def list_entities(self, kind: EntityKind) -> Iterator[Entity]:
        others = (each for each in super().list_entities(kind))
        return (each for each in others if not name_of(each).endswith(f"one_{self.lost}"))

    @override
    def identity_map(self) -> dict[Urn, dict[str, str]]:
        return {} if self.lost == "identity" else super().identity_map()

    @override
    def extensions(self) -> dict[str, JsonValue]:
        return {} if self.lost == "catalog_extension" else super().extensions()


def test_the_contract_fails_where_a_single_concept_is_lost(tmp_path: Path) -> None:
    contract = ConceptContract()
    with Losing(StateDatabase.open(tmp_path / "lumos.db")) as platform:
        contract.test_every_concept_that_is_not_dropped_comes_back_equal(platform)
        for concept in CONCEPTS:
            platform.lost = concept
            with pytest.raises(AssertionError):
                contract.test_every_concept_that_is_not_dropped_comes_back_equal(platform)
