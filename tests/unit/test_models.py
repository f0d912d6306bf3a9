from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, ValidationError
from ruamel.yaml import YAML

from lumos.core.errors import InvalidModelError
from lumos.core.models import (
    AlertState,
    CostReport,
    DatasetQuality,
    DatasetVersion,
    Documentation,
    DQAssertion,
    Field,
    FieldType,
    ImpactReport,
    LineageEdge,
    Link,
    Location,
    LumosDataset,
    Owner,
    Ownership,
    Schema,
    SchemaHistory,
    SemanticVersion,
    TypeName,
    Urn,
    with_parts,
)
from lumos.core.models.base import CanonicalModel, canonical_json
from lumos.core.models.facets import NOT_COMPARED
from strategies import OBSERVATIONS, datasets, same_contract_listed_differently

OUTPUTS = Path(__file__).parents[1] / "golden" / "product_documents" / "outputs"
Json = dict[str, JsonValue]


def _dataset(**parts: object) -> LumosDataset:
    required: dict[str, object] = {
        "urn": "lumos://pg/shop/orders",
        "name": "orders",
        "platform": "pg",
    }
    return LumosDataset.model_validate({**required, **parts})


@given(datasets())
def test_any_dataset_round_trips_through_json(dataset: LumosDataset) -> None:
    again = LumosDataset.from_json(orjson.loads(canonical_json(dataset.to_json())))
    assert again == dataset
    assert again.to_json() == dataset.to_json()
    assert again.contract_hash == dataset.contract_hash


@given(datasets(), st.data())
def test_the_hash_depends_on_no_order_that_means_nothing(
    dataset: LumosDataset, data: st.DataObject
) -> None:
    again = data.draw(st.composite(lambda draw: same_contract_listed_differently(dataset, draw))())
    assert again.contract_hash == dataset.contract_hash


@given(datasets(), st.fixed_dictionaries({}, optional=OBSERVATIONS))
def test_the_hash_ignores_everything_observed(
    dataset: LumosDataset, observed: dict[str, object]
) -> None:
    assert set(OBSERVATIONS) == NOT_COMPARED
    assert with_parts(dataset, **observed).contract_hash == dataset.contract_hash


def test_the_hash_ignores_consumers_but_not_sources() -> None:
    neighbour = [str(Urn.of("pg", "other"))]
    plain = _dataset().contract_hash
    assert _dataset(lineage={"downstream": neighbour}).contract_hash == plain
    assert _dataset(lineage={"upstream": neighbour}).contract_hash != plain


def test_the_hash_ignores_the_native_spelling_of_a_known_type_at_any_depth() -> None:
    def dataset(native: str, kind: TypeName) -> LumosDataset:
        inner = FieldType(type=kind, native_type=native)
        outer = Field(name="a", type=TypeName.ARRAY, items=inner, native_type=native)
        return _dataset(schema=Schema(fields=(outer,)))

    known = {dataset(native, TypeName.INT32).contract_hash for native in ("int4", "integer")}
    unknown = {dataset(native, TypeName.UNKNOWN).contract_hash for native in ("xml", "point")}
    assert (len(known), len(unknown)) == (1, 2)


def test_the_hash_ignores_an_empty_location_and_the_order_of_links() -> None:
    assert _dataset(location=Location()).contract_hash == _dataset().contract_hash
    links = (Link(url="https://a.example"), Link(url="https://b.example"))
    one, other = (
        _dataset(documentation=Documentation(links=order)) for order in (links, links[::-1])
    )
    assert one.contract_hash == other.contract_hash


def test_position_is_part_of_the_contract_only_where_columns_are_found_by_it() -> None:
    columns = tuple(Field(name=name, type=TypeName.STRING) for name in "ab")

    def hashes(*, positional: bool) -> set[str]:
        orders = (columns, columns[::-1])
        schemas = (Schema(fields=order, positional=positional) for order in orders)
        return {_dataset(schema=schema).contract_hash for schema in schemas}

    assert len(hashes(positional=False)) == 1
    assert len(hashes(positional=True)) == 2


def test_models_are_frozen_and_copies_are_hashed_anew() -> None:
    dataset = _dataset()
    before = dataset.contract_hash
    with pytest.raises(ValidationError, match="frozen"):
        dataset.name = "x"  # type: ignore[misc]
    assert with_parts(dataset, tags=("pii",)).contract_hash != before
    assert dataset.contract_hash == before


@pytest.mark.parametrize(
    "document",
    [
        {"surprise": "hunter2"},
        {"schema": {"fields": [{"name": "a", "type": "STRING", "pasword": "hunter2"}]}},
        {"schema": {"fields": [{"name": "a", "type": "hunter2"}]}},
        {"urn": "hunter2"},
        {"properties": {"a": float("nan")}},
        {"statistics": {"row_count": "hunter2"}},
    ],
)
def test_what_does_not_fit_is_refused_without_echoing_values(document: Json) -> None:
    with pytest.raises(InvalidModelError) as caught:
        LumosDataset.from_json({**_dataset().to_json(), **document})
    assert "hunter2" not in str(caught.value)
    assert "LumosDataset" in str(caught.value)


@pytest.mark.parametrize("value", [2**64, "\ud800", {"\udcff": 1}, ["\udcff"]])
def test_a_property_that_json_cannot_carry_is_refused_when_it_comes_in(value: JsonValue) -> None:
    with pytest.raises(InvalidModelError, match="properties"):
        LumosDataset.from_json({**_dataset().to_json(), "properties": {"a": value}})


def test_what_json_cannot_carry_gives_a_lumos_error_and_not_a_foreign_one() -> None:
    for value in ("\udcff", 2**64, object()):
        with pytest.raises(InvalidModelError, match="JSON"):
            canonical_json([value])


def test_many_problems_are_told_as_three_and_a_count() -> None:
    with pytest.raises(InvalidModelError, match=r"and 2 more"):
        LumosDataset.from_json({**_dataset().to_json(), **dict.fromkeys("abcde", 1)})


def test_numbers_are_read_as_people_write_them() -> None:
    dataset = _dataset(statistics={"file_count": "1,247", "total_size_bytes": "45_000"})
    assert dataset.statistics is not None
    assert dataset.statistics.file_count == 1247
    assert dataset.statistics.total_size_bytes == 45_000


def test_owners_are_a_sorted_set_of_users_or_groups() -> None:
    owners = [{"user": "zoe"}, {"group": "team", "type": "steward"}, {"user": "zoe"}]
    ownership = Ownership.model_validate(owners)
    assert [owner.name for owner in ownership.owners] == ["team", "zoe"]
    assert ownership.owners[0].to_json() == {"group": "team", "type": "STEWARD"}
    for wrong in ({}, {"user": "a", "group": "b"}):
        with pytest.raises(InvalidModelError, match="either a user or a group"):
            Owner.from_json(wrong)


def test_an_edge_has_two_ends_and_a_key() -> None:
    edge = LineageEdge(upstream_urn=Urn.of("s3", "a"), downstream_urn=Urn.of("s3", "b"))
    assert edge.key == ("lumos://s3/a", "lumos://s3/b", "")
    assert edge.to_json()["lineage_type"] == "TRANSFORMED"
    with pytest.raises(InvalidModelError, match="to itself"):
        LineageEdge.from_json({**edge.to_json(), "downstream_urn": edge.upstream_urn})


def test_a_check_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidModelError, match="name"):
        DQAssertion.from_json({"name": ""})


@pytest.mark.parametrize(
    "text", ["1", "1.0", "v1.0.0", "1.0.0-rc1", "1.0.0\n", "", "\u0661.\u0660.\u0660"]
)
def test_what_is_no_semantic_version_is_refused(text: str) -> None:
    with pytest.raises(InvalidModelError, match=r"1\.2\.3"):
        SemanticVersion.parse(text)


def test_versions_order_by_number_and_not_by_text() -> None:
    assert SemanticVersion.parse("1.10.0") > SemanticVersion.parse("1.9.9")
    assert str(SemanticVersion.parse("2.0.1")) == "2.0.1"


def _example(name: str) -> Json:
    document = YAML(typ="safe", pure=True).load(OUTPUTS / f"{name}.yaml")
    return cast("Json", document)


def _loads_and_round_trips(model: type[CanonicalModel], document: object) -> CanonicalModel:
    loaded = model.from_json(document)
    assert model.from_json(json.loads(json.dumps(loaded.to_json()))) == loaded
    return loaded


def test_every_output_that_the_product_documents_show_has_a_test() -> None:
    shown = {path.stem for path in OUTPUTS.glob("*.yaml")}
    assert shown == {
        "cost_report",
        "dataset_quality",
        "discovered_dataset",
        "impact_analysis",
        "schema_history",
    }


def test_the_discovered_dataset_of_the_product_documents_loads() -> None:
    dataset = _loads_and_round_trips(LumosDataset, _example("discovered_dataset")["dataset"])
    assert isinstance(dataset, LumosDataset)
    assert dataset.urn == "lumos://s3/data-lake-prod/raw/events/user_clicks"
    assert [field.signature() for field in dataset.schema.fields][-1] == (
        "STRUCT<page_url: STRING, referrer: STRING>"
    )
    assert dataset.statistics is not None
    assert dataset.statistics.row_count_estimate == 500_000_000


def test_the_schema_history_of_the_product_documents_loads() -> None:
    history = _loads_and_round_trips(SchemaHistory, _example("schema_history"))
    assert isinstance(history, SchemaHistory)
    first, second, third = history.schema_history
    assert first.fields == ("event_id", "user_id", "timestamp", "event_type")
    assert second.change_details == {"column": "session_id", "type": "STRING"}
    assert (third.backward_compatible, third.breaking_change_alert) == (False, AlertState.SENT)


def test_the_impact_analysis_of_the_product_documents_loads() -> None:
    report = _loads_and_round_trips(ImpactReport, _example("impact_analysis"))
    assert isinstance(report, ImpactReport)
    assert [impact.compatibility for impact in report.impact_analysis.downstream_datasets] == [
        "BREAKING",
        "BREAKING",
        "COMPATIBLE",
    ]


def test_the_cost_report_of_the_product_documents_loads() -> None:
    report = _loads_and_round_trips(CostReport, _example("cost_report")["cost_report"])
    assert isinstance(report, CostReport)
    assert report.summary.total_cost == 5800
    assert report.breakdown.by_type["compute"] == 4700


def test_the_quality_of_the_product_documents_loads() -> None:
    quality = _loads_and_round_trips(DatasetQuality, _example("dataset_quality")["quality"])
    assert isinstance(quality, DatasetQuality)
    assert quality.score == 97.8
    assert len(quality.checks) == 4
    assert _dataset(quality=quality).quality == quality


def test_a_version_is_read_under_both_of_its_names() -> None:
    moment = "2024-01-01T00:00:00Z"
    version = DatasetVersion.from_json({"schema_version": "2.1.0", "timestamp": moment})
    assert version.version == version.schema_version == "2.1.0"
    assert version.to_json()["version"] == "2.1.0"
