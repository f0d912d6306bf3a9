"""The table of facets covers the models, and each use of the table agrees with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from lumos.core.changes import diff_datasets
from lumos.core.models import Documentation, Field, Governance, LumosDataset, Ownership, Schema
from lumos.core.models.facets import (
    BY_PATH,
    COLUMN_FACETS,
    DERIVED,
    FACETS,
    FIELDS,
    TYPE_PARTS,
    Facet,
    FacetClass,
    MergeRule,
)
from lumos.core.platform.concept_parts import dataset_outcomes
from lumos.core.platform.fidelity import CONCEPTS, FidelityCount
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.feature.enrichment.enrichment import Enrichment
from lumos.feature.sync.settings import TruthSettings

DIVIDED: dict[str, type[BaseModel]] = {
    "schema": Schema,
    "ownership": Ownership,
    "governance": Governance,
    "documentation": Documentation,
}
URN = "lumos://s3/lake/orders"
ID = {"name": "id", "type": "INT64"}
SAMPLES: dict[str, Any] = {
    "urn": "lumos://s3/lake/other",
    "name": "other",
    "platform": "gcs",
    "database": "shop",
    "namespace": "public",
    "schema.positional": True,
    "kind": "VIEW",
    "environment": "staging",
    "format": "parquet",
    "location": {"path": "raw/orders"},
    "schema.fields": [ID, {"name": "total", "type": "INT64"}],
    "schema.fields.description": "what it holds",
    "schema.fields.default": "0",
    "schema.fields.pii": True,
    "schema.fields.tags": ["internal"],
    "schema.fields.glossary_terms": ["Order"],
    "schema.fields.properties": {"unit": "euro"},
    "schema.fields.deprecation": {"note": "gone soon"},
    "schema.primary_key": ["id"],
    "schema.unique_keys": [["id"]],
    "schema.foreign_keys": [{"columns": ["id"], "references": "lumos://s3/lake/x"}],
    "schema.checks": [{"name": "positive", "column": "id", "minimum": 1}],
    "ownership.owners": [{"user": "ada"}],
    "tags": ["gold"],
    "governance.glossary_terms": ["Order"],
    "governance.domains": ["sales"],
    "governance.deprecation": {"note": "gone soon"},
    "governance.stability": "BETA",
    "governance.access": "PRIVATE",
    "governance.retention_days": 90,
    "documentation.description": "All orders",
    "documentation.business_context": "Billing",
    "documentation.sla": "daily by 6",
    "documentation.links": [{"url": "https://example.org/x"}],
    "properties": {"retention": "7y"},
    "assertions": [{"name": "id is set", "kind": "not_null", "column": "id"}],
    "statistics": {"row_count": 3},
    "profile": {"profiled_at": "2024-01-31T00:00:00Z", "row_count": 3, "file_count": 1},
    "quality": {"score": 99.0},
    "cost": {"dataset": URN, "period": "2024-01", "kind": "storage", "amount": "12.50"},
    "version": "1.4.2",
    "extensions": {"other": {"raw": 1}},
}


def dataset(facet: Facet | None = None) -> LumosDataset:
    """Return a dataset that says one facet and little else."""
    document: dict[str, Any] = {
        "urn": URN, "name": "orders", "platform": "s3", "schema": {"fields": [dict(ID)]},
    }  # fmt: skip
    if facet is not None:
        *above, name = facet.path.split(".")
        here = document
        for part in above:
            here = here["fields"][0] if part == "fields" else here.setdefault(part, {})
        here[name] = SAMPLES[facet.path]
    return LumosDataset.from_json(document)


def paths_of_models() -> Iterator[str]:
    for name in LumosDataset.model_fields:
        if name in DIVIDED:
            yield from (f"{name}.{inner}" for inner in DIVIDED[name].model_fields)
        elif name != DERIVED:
            yield name
    yield from (f"{FIELDS}.{name}" for name in Field.model_fields if name not in TYPE_PARTS)


def test_every_field_of_the_models_has_a_row_and_every_row_a_field() -> None:
    assert sorted(BY_PATH) == sorted(paths_of_models())
    assert len(BY_PATH) == len(FACETS)
    assert sorted(SAMPLES) == sorted(BY_PATH)


@pytest.mark.parametrize("facet", FACETS, ids=lambda facet: facet.path)
def test_the_contract_and_its_changes_are_what_the_table_says(facet: Facet) -> None:
    plain, changed = dataset(), dataset(facet)

    in_contract = facet.kind is FacetClass.CONTRACT
    assert (plain.contract_hash != changed.contract_hash) == in_contract
    assert bool(diff_datasets(plain, changed)) == in_contract


@pytest.mark.parametrize("facet", FACETS, ids=lambda facet: facet.path)
def test_fidelity_and_proof_name_each_facet_by_its_concept(facet: Facet) -> None:
    count, before = FidelityCount(), FidelityCount()
    count.add_dataset(dataset(facet))
    before.add_dataset(dataset())
    reported = {row.concept: row.count for row in count.report(EmbeddedHandler).rows}
    usual = {row.concept: row.count for row in before.report(EmbeddedHandler).rows}

    assert facet.concept in CONCEPTS
    if facet.concept != "dataset":
        assert reported[facet.concept] == usual.get(facet.concept, 0) + 1
    if facet.path != "urn":
        differing = dataset_outcomes(dataset(facet).document, dataset().document)
        assert [*differing] == [facet.concept]


def test_what_people_edit_is_decided_by_a_setting_of_sync() -> None:
    assert {facet.truth for facet in FACETS if facet.truth} == {*TruthSettings.model_fields}
    assert not any(facet.edited_by_people for facet in FACETS if facet.kind is FacetClass.OBSERVED)


def test_facets_of_columns_that_people_edit_have_a_name_in_the_state_of_a_sync() -> None:
    named = {name for name, facet in COLUMN_FACETS.items() if facet.sync_name}
    assert named == {name for name, facet in COLUMN_FACETS.items() if facet.edited_by_people}


def test_a_facet_with_members_is_a_list_or_an_object() -> None:
    for facet in FACETS:
        assert isinstance(SAMPLES[facet.path], list | dict) or not facet.has_members
        if facet.merge is MergeRule.SET:
            assert isinstance(SAMPLES[facet.path], list)


@pytest.mark.parametrize("facet", FACETS, ids=lambda facet: facet.path)
def test_enriching_a_dataset_loses_no_facet(facet: Facet) -> None:
    enrichment = Enrichment.from_json({"dataset": URN, "tags": ["new"], "domains": ["new"]})

    enriched = enrichment.applied_to(dataset(facet))

    lost = dataset_outcomes(dataset(facet).document, enriched.document)
    assert all(outcome == "more" for outcome in lost.values()), lost
