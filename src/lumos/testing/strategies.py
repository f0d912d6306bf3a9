"""Hypothesis strategies for the datasets that contracts put into catalogs."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import strategies as st

from lumos.core.models import Field, FieldType, LumosDataset, Owner, TypeName, Urn

texts = st.text(st.characters(codec="utf-8"), max_size=20)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
_name_sets = st.lists(names, max_size=3)
_Parameters = dict[str, object]
_scalars: st.SearchStrategy[_Parameters] = st.sampled_from(
    [
        {"type": TypeName.BOOLEAN},
        {"type": TypeName.INT64},
        {"type": TypeName.STRING, "length": 40},
        {"type": TypeName.DECIMAL, "precision": 10, "scale": 2},
        {"type": TypeName.TIMESTAMP, "unit": "us", "timezone": "UTC"},
        {"type": TypeName.ENUM, "symbols": ("a", "b'c")},
        {"type": TypeName.UNKNOWN, "native_type": "geography(point)"},
    ]
)
_moments = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


def _nested(inner: st.SearchStrategy[_Parameters]) -> st.SearchStrategy[_Parameters]:
    node = inner.map(FieldType.model_validate)
    members = st.lists(_field(inner), max_size=3, unique_by=lambda field: field.name)
    return st.one_of(
        st.fixed_dictionaries({"type": st.just(TypeName.STRUCT), "fields": members}),
        st.fixed_dictionaries({"type": st.just(TypeName.ARRAY), "items": node}),
        st.fixed_dictionaries({"type": st.just(TypeName.MAP), "key": node, "value": node}),
        st.fixed_dictionaries(
            {"type": st.just(TypeName.UNION), "branches": st.lists(node, min_size=1, max_size=2)}
        ),
    )


def _field(parameters: st.SearchStrategy[_Parameters]) -> st.SearchStrategy[Field]:
    rest: dict[str, st.SearchStrategy[object]] = {
        "nullable": st.booleans(),
        "description": texts,
        "pii": st.booleans(),
        "tags": _name_sets,
    }
    return st.builds(
        lambda name, typed, more: Field.model_validate({"name": name, **typed, **more}),
        names,
        parameters,
        st.fixed_dictionaries({}, optional=rest),
    )


def fields() -> st.SearchStrategy[list[Field]]:
    """The columns of a dataset: scalar and nested types, no two of one name."""
    parameters: st.SearchStrategy[_Parameters] = st.recursive(_scalars, _nested, max_leaves=4)
    return st.lists(_field(parameters), max_size=4, unique_by=lambda field: field.name)


def urns() -> st.SearchStrategy[Urn]:
    """URNs of any Unicode names."""
    parts = st.lists(names, min_size=1, max_size=3)
    return st.builds(lambda path: Urn.of("s3", *path), parts)


def datasets() -> st.SearchStrategy[LumosDataset]:
    """Datasets with any of the parts that every catalog keeps, and without lineage."""
    owner = st.one_of(st.builds(Owner, user=names), st.builds(Owner, group=names))
    optional: dict[str, st.SearchStrategy[object]] = {
        "format": st.sampled_from(["csv", "parquet"]),
        "schema": st.fixed_dictionaries({"fields": fields()}),
        "ownership": st.lists(owner, max_size=3),
        "tags": _name_sets,
        "documentation": st.fixed_dictionaries({}, optional={"description": texts}),
        "properties": st.dictionaries(texts, st.one_of(texts, st.integers(0, 2**40)), max_size=3),
        "statistics": st.fixed_dictionaries(
            {}, optional={"row_count": st.integers(0, 2**62), "last_modified": _moments}
        ),
        "quality": st.fixed_dictionaries({"overall_score": st.floats(0, 100)}),
    }
    required = {"urn": urns(), "name": names, "platform": st.just("s3")}
    return st.fixed_dictionaries(required, optional=optional).map(LumosDataset.model_validate)
