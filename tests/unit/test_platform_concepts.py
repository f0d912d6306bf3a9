"""The samples of the contract hold the concepts that they are named after."""

from __future__ import annotations

import pytest

from lumos.core.platform.fidelity import CONCEPTS, FidelityCount
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.testing.platform_concepts import concept_dataset

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
