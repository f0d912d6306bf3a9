"""Hypothesis strategies for canonical models: anything that the models allow, nested and odd."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TypeVar

from hypothesis import strategies as st
from pydantic import JsonValue

from lumos.core.models import (
    Access,
    AssertionResult,
    AssertionStatus,
    Check,
    ColumnMapping,
    ColumnProfile,
    CostRecord,
    DatasetKind,
    DatasetLineage,
    DatasetProfile,
    DatasetQuality,
    Deprecation,
    Documentation,
    Domain,
    DQAssertion,
    Field,
    FieldType,
    ForeignKey,
    GlossaryTerm,
    Governance,
    Group,
    Job,
    LengthProfile,
    LineageEdge,
    LineageType,
    Link,
    Location,
    LumosDataset,
    OperationalMetadata,
    Owner,
    Ownership,
    Quantile,
    Schema,
    Severity,
    Snapshot,
    Stability,
    Tag,
    TimeUnit,
    TransformationType,
    TypeName,
    Urn,
    User,
)

T = TypeVar("T")

characters = st.characters(codec="utf-8")
texts = st.text(characters, max_size=12)
names = st.one_of(
    st.sampled_from(
        ["id", "user_id", "a.b", "a[]", "m{key}", "`", "'", " x", "é", "名前", "\x1b[31m"]
    ),
    st.text(characters, min_size=1, max_size=8),
)
name_sets = st.lists(names, max_size=3).map(tuple)
path_parts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=10)
moments = st.datetimes(
    min_value=datetime(1990, 1, 1),
    max_value=datetime(2100, 1, 1),
    timezones=st.just(UTC),
)
json_values: st.SearchStrategy[JsonValue] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        texts,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(texts, inner, max_size=2)),
    max_leaves=4,
)
properties = st.dictionaries(texts, json_values, max_size=2)


def maybe(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    return st.one_of(st.none(), strategy)


def urns() -> st.SearchStrategy[Urn]:
    platforms = st.sampled_from(["s3", "postgres", "kafka", "local-files", "x.y_z"])
    parts = st.lists(path_parts, min_size=1, max_size=3)
    return st.builds(lambda platform, path: Urn.of(platform, *path), platforms, parts)


deprecations = st.builds(
    Deprecation,
    note=maybe(texts),
    since=maybe(st.dates()),
    sunset=maybe(st.dates()),
    replacement=maybe(texts),
)

NODE: dict[str, st.SearchStrategy[object]] = {
    "nullable": st.booleans(),
    "description": maybe(texts),
    "native_type": maybe(texts),
}
FIELD: dict[str, st.SearchStrategy[object]] = {
    **NODE,
    "pii": st.booleans(),
    "tags": name_sets,
    "glossary_terms": name_sets,
    "default": maybe(texts),
    "properties": properties,
    "deprecation": maybe(deprecations),
}

Parameters = dict[str, object]

_UNITS = maybe(st.sampled_from(TimeUnit))
_SCALARS: dict[TypeName, dict[str, st.SearchStrategy[object]]] = {
    TypeName.DECIMAL: {
        "precision": maybe(st.integers(0, 38)),
        "scale": maybe(st.integers(-3, 20)),
    },
    TypeName.STRING: {"length": maybe(st.integers(0, 300))},
    TypeName.BINARY: {"length": maybe(st.integers(0, 300))},
    TypeName.TIME: {"unit": _UNITS},
    TypeName.TIMESTAMP: {"unit": _UNITS, "timezone": maybe(st.sampled_from(["UTC", "Asia/Tokyo"]))},
    TypeName.TIMESTAMP_NTZ: {"unit": _UNITS},
    TypeName.DURATION: {"unit": _UNITS},
    TypeName.ENUM: {"symbols": st.lists(texts, min_size=1, max_size=3, unique=True).map(tuple)},
}
_NESTED = frozenset({TypeName.ARRAY, TypeName.MAP, TypeName.STRUCT, TypeName.UNION})


def _scalar_parameters() -> st.SearchStrategy[Parameters]:
    kinds = st.sampled_from([kind for kind in TypeName if kind not in _NESTED])
    return kinds.flatmap(
        lambda kind: st.fixed_dictionaries({"type": st.just(kind), **_SCALARS.get(kind, {})})
    )


def _nested_parameters(inner: st.SearchStrategy[Parameters]) -> st.SearchStrategy[Parameters]:
    node = _nodes(inner)
    members = _members(inner, max_size=3)
    return st.one_of(
        st.fixed_dictionaries({"type": st.just(TypeName.STRUCT), "fields": members}),
        st.fixed_dictionaries({"type": st.just(TypeName.ARRAY), "items": node}),
        st.fixed_dictionaries({"type": st.just(TypeName.MAP), "key": node, "value": node}),
        st.fixed_dictionaries(
            {
                "type": st.just(TypeName.UNION),
                "branches": st.lists(node, min_size=1, max_size=3).map(tuple),
            }
        ),
    )


def _nodes(parameters: st.SearchStrategy[Parameters]) -> st.SearchStrategy[FieldType]:
    return st.builds(
        lambda typed, rest: FieldType.model_validate({**typed, **rest}),
        parameters,
        st.fixed_dictionaries({}, optional=NODE),
    )


def _members(
    parameters: st.SearchStrategy[Parameters], *, min_size: int = 0, max_size: int
) -> st.SearchStrategy[tuple[Field, ...]]:
    field = st.builds(
        lambda name, typed, rest: Field.model_validate({"name": name, **typed, **rest}),
        names,
        parameters,
        st.fixed_dictionaries({}, optional=FIELD),
    )
    members = st.lists(
        field, min_size=min_size, max_size=max_size, unique_by=lambda member: member.name
    )
    return members.map(tuple)


type_parameters = st.recursive(_scalar_parameters(), _nested_parameters, max_leaves=4)


def field_types() -> st.SearchStrategy[FieldType]:
    """Types with or without parameters, nested to some depth."""
    return _nodes(type_parameters)


def fields(*, min_size: int = 0, max_size: int = 4) -> st.SearchStrategy[tuple[Field, ...]]:
    """The columns of a dataset: no two of one name."""
    return _members(type_parameters, min_size=min_size, max_size=max_size)


def checks() -> st.SearchStrategy[Check]:
    return st.builds(
        Check,
        name=maybe(st.sampled_from(["positive", "format"])),
        column=maybe(names),
        minimum=maybe(st.one_of(st.integers(-5, 5), st.floats(-5, 5))),
        maximum=maybe(st.integers(-5, 5)),
        min_length=maybe(st.integers(0, 5)),
        max_length=maybe(st.integers(0, 5)),
        pattern=maybe(texts),
        expression=maybe(texts),
    )


def schemas() -> st.SearchStrategy[Schema]:
    keys = st.lists(names, max_size=2).map(tuple)
    foreign_key = st.builds(
        ForeignKey,
        columns=st.lists(names, min_size=1, max_size=2).map(tuple),
        references=texts,
        referenced_columns=keys,
    )
    return st.builds(
        Schema,
        fields=fields(),
        primary_key=keys,
        unique_keys=st.lists(keys, max_size=2).map(tuple),
        foreign_keys=st.lists(foreign_key, max_size=2).map(tuple),
        checks=st.lists(checks(), max_size=2).map(tuple),
        positional=st.booleans(),
    )


def owners() -> st.SearchStrategy[Owner]:
    roles = st.sampled_from(["TECHNICAL_OWNER", "DATA_STEWARD", "consumer"])
    return st.one_of(
        st.builds(Owner, user=names, type=roles), st.builds(Owner, group=names, type=roles)
    )


def assertions() -> st.SearchStrategy[DQAssertion]:
    return st.builds(
        DQAssertion,
        name=names,
        kind=maybe(texts),
        column=maybe(texts),
        expression=maybe(texts),
        parameters=properties,
        severity=st.sampled_from(Severity),
        validator=maybe(texts),
        description=maybe(texts),
    )


CONTRACT: dict[str, st.SearchStrategy[object]] = {
    "kind": maybe(st.sampled_from(DatasetKind)),
    "environment": maybe(texts),
    "database": maybe(texts),
    "namespace": maybe(texts),
    "format": maybe(st.sampled_from(["csv", "parquet"])),
    "location": maybe(
        st.builds(
            Location,
            bucket=maybe(texts),
            path=maybe(texts),
            prefix=maybe(texts),
            partitioning=maybe(texts),
            partition_keys=name_sets,
            sort_keys=name_sets,
        )
    ),
    "schema": schemas(),
    "lineage": st.builds(
        DatasetLineage,
        upstream=st.lists(urns(), max_size=2).map(tuple),
        downstream=st.lists(urns(), max_size=2).map(tuple),
    ),
    "ownership": st.builds(Ownership, owners=st.lists(owners(), max_size=3).map(tuple)),
    "tags": name_sets,
    "governance": st.builds(
        Governance,
        domains=name_sets,
        glossary_terms=name_sets,
        deprecation=maybe(deprecations),
        stability=maybe(st.sampled_from(Stability)),
        access=maybe(st.sampled_from(Access)),
        retention_days=maybe(st.integers(0, 5000)),
    ),
    "documentation": st.builds(
        Documentation,
        description=maybe(texts),
        business_context=maybe(texts),
        sla=maybe(texts),
        links=st.lists(st.builds(Link, url=names, description=maybe(texts)), max_size=2).map(tuple),
    ),
    "properties": properties,
    "assertions": st.lists(assertions(), max_size=3).map(tuple),
}
"""The parts of a dataset that make its contract, beside urn, name and platform."""

counts = maybe(st.integers(0, 2**62))
percents = maybe(st.floats(0, 100))
OBSERVATIONS: dict[str, st.SearchStrategy[object]] = {
    "statistics": maybe(
        st.builds(
            OperationalMetadata,
            file_count=counts,
            total_size_bytes=counts,
            row_count=counts,
            last_modified=maybe(moments),
            query_count=counts,
        )
    ),
    "profile": maybe(
        st.builds(
            DatasetProfile,
            profiled_at=moments,
            row_count=st.integers(0, 2**62),
            file_count=st.just(1),
            columns=st.lists(
                st.builds(
                    ColumnProfile,
                    path=names,
                    type=st.just("DOUBLE"),
                    value_count=st.just(3),
                    null_count=st.just(1),
                    null_share=st.just(0.25),
                    min=maybe(st.integers(-100, 100)),
                    max=maybe(st.floats(0, 1)),
                    quantiles=st.just((Quantile(share=0.5, value="1.50"),)),
                    length=maybe(st.just(LengthProfile(min=0, mean=0.5, max=1))),
                ),
                max_size=2,
            ).map(tuple),
        )
    ),
    "quality": maybe(
        st.builds(
            DatasetQuality,
            overall_score=percents,
            freshness=maybe(st.one_of(moments, st.timedeltas(timedelta(0), timedelta(days=1000)))),
            completeness=percents,
            checks=st.lists(
                st.builds(
                    AssertionResult,
                    name=names,
                    status=st.sampled_from(AssertionStatus),
                    timestamp=maybe(moments),
                ),
                max_size=2,
            ).map(tuple),
        )
    ),
    "cost": maybe(
        st.builds(
            CostRecord,
            dataset=urns(),
            period=st.sampled_from(["2024", "2024-01", "2024-Q3"]),
            kind=st.sampled_from(["storage", "compute"]),
            amount=st.decimals(0, 10**6, places=2),
        )
    ),
    "version": maybe(st.sampled_from(["1.0.0", "2.1.0"])),
    "extensions": properties,
}
"""The parts of a dataset that are recorded but never compared."""


def datasets(*, urn: st.SearchStrategy[Urn] | None = None) -> st.SearchStrategy[LumosDataset]:
    """Datasets with any of their parts, or none."""
    required = {
        "urn": urns() if urn is None else urn,
        "name": names,
        "platform": st.sampled_from(["s3", "postgres"]),
    }
    return st.fixed_dictionaries(required, optional={**CONTRACT, **OBSERVATIONS}).map(
        LumosDataset.model_validate
    )


def same_contract_listed_differently(dataset: LumosDataset, draw: st.DrawFn) -> LumosDataset:
    """Return the dataset with everything whose order means nothing in another order."""
    document = _shuffled(dataset.to_json(), draw, ordered=dataset.schema.positional)
    return LumosDataset.from_json(document)


_UNORDERED = frozenset(
    {
        "fields",
        "branches",
        "tags",
        "glossary_terms",
        "domains",
        "owners",
        "upstream",
        "downstream",
        "unique_keys",
        "foreign_keys",
        "checks",
        "assertions",
        "links",
    }
)
_OPAQUE = frozenset({"properties", "parameters", "extensions"})


def _shuffled(value: JsonValue, draw: st.DrawFn, *, ordered: bool, name: str = "") -> JsonValue:
    if isinstance(value, dict):
        keys = draw(st.permutations(sorted(value)))
        return {
            key: value[key]
            if key in _OPAQUE
            else _shuffled(value[key], draw, ordered=ordered and name in ("", "schema"), name=key)
            for key in keys
        }
    if isinstance(value, list):
        items = [_shuffled(item, draw, ordered=False, name="item") for item in value]
        if name in _UNORDERED and not (name == "fields" and ordered):
            return list(draw(st.permutations(items)))
        return items
    return value


def edges() -> st.SearchStrategy[LineageEdge]:
    mapping = st.builds(
        ColumnMapping,
        upstream_column=names,
        downstream_column=names,
        transformation=maybe(texts),
        transformation_type=maybe(st.sampled_from(TransformationType)),
    )
    ends = st.lists(urns(), min_size=2, max_size=2, unique=True)
    return ends.flatmap(
        lambda pair: st.builds(
            LineageEdge,
            upstream_urn=st.just(pair[0]),
            downstream_urn=st.just(pair[1]),
            lineage_type=st.sampled_from(LineageType),
            job_urn=maybe(urns()),
            confidence=st.floats(0, 1),
            created_at=maybe(moments),
            column_mappings=st.lists(mapping, max_size=2).map(tuple),
        )
    )


def snapshots() -> st.SearchStrategy[Snapshot]:
    """Snapshots with a few of everything."""
    return st.builds(
        Snapshot,
        snapshot_schema_version=st.just(1),
        lumos_version=st.just("0.1.0"),
        export_timestamp=moments,
        source_platform=st.sampled_from(["embedded", "datahub"]),
        complete=st.booleans(),
        datasets=st.lists(datasets(), max_size=2, unique_by=lambda one: one.urn).map(tuple),
        jobs=st.lists(
            st.builds(Job, urn=urns(), name=names, properties=properties),
            max_size=2,
            unique_by=lambda job: job.urn,
        ).map(tuple),
        lineage_edges=st.lists(edges(), max_size=2, unique_by=lambda edge: edge.key).map(tuple),
        glossary=st.lists(
            st.builds(GlossaryTerm, name=names), max_size=2, unique_by=lambda term: term.name
        ).map(tuple),
        tags=st.lists(st.builds(Tag, name=names), max_size=2, unique_by=lambda tag: tag.name).map(
            tuple
        ),
        domains=st.lists(
            st.builds(Domain, name=names), max_size=2, unique_by=lambda domain: domain.name
        ).map(tuple),
        users=st.lists(
            st.builds(User, username=names), max_size=2, unique_by=lambda user: user.username
        ).map(tuple),
        groups=st.lists(
            st.builds(Group, name=names), max_size=2, unique_by=lambda group: group.name
        ).map(tuple),
        identity_map=st.dictionaries(urns(), st.dictionaries(texts, texts, max_size=1), max_size=1),
        extensions=properties,
    )
