"""One small thing for each concept, and the contract that it comes back from a catalog unchanged.

The table of catalogs in the documentation says on what each concept was proven by this test.
"""
# ruff: noqa: S101 - these are tests

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from lumos.core.models import ColumnMapping, with_parts
from lumos.core.platform.abilities import (
    EntityAbility,
    ExtensionAbility,
    IdentityAbility,
    LineageAbility,
)
from lumos.core.platform.batch import Batch, Identity
from lumos.core.platform.fidelity import CONCEPTS, Fidelity, fidelity_of
from lumos.testing.platform_samples import AT, ENTITY_MAKERS, dataset, edge

if TYPE_CHECKING:
    from lumos.core.models import LumosDataset
    from lumos.core.platform.interface import EntityKind, MetadataPlatformInterface

_FIELDS: Final[Mapping[str, Mapping[str, object]]] = {
    "field": {},
    "nested_field": {
        "type": "STRUCT",
        "fields": [{"name": "total", "type": "DECIMAL", "precision": 10, "scale": 2}],
    },
    "field_description": {"description": "what it holds"},
    "field_default": {"default": "0"},
    "field_pii": {"pii": True},
    "field_tag": {"tags": ["internal"]},
    "field_term": {"glossary_terms": ["Customer"]},
    "field_property": {"properties": {"unit": "euro"}},
    "field_deprecation": {"deprecation": {"note": "gone soon", "sunset": "2026-01-31"}},
}
_ID: Final[Mapping[str, object]] = {"name": "id", "type": "INT64", "nullable": False}
_SCHEMAS: Final[Mapping[str, Mapping[str, object]]] = {
    "primary_key": {"primary_key": ["id"]},
    "unique_key": {"unique_keys": [["id"]]},
    "foreign_key": {
        "foreign_keys": [
            {"columns": ["id"], "references": "lumos://s3/lake/orders", "referenced_columns": ["x"]}
        ]
    },
    "check": {"checks": [{"name": "positive", "column": "id", "minimum": 1}]},
}
_PARTS: Final[Mapping[str, Mapping[str, object]]] = {
    "dataset": {},
    "kind": {"kind": "VIEW"},
    "environment": {"environment": "staging"},
    "format": {"format": "parquet"},
    "location": {"location": {"bucket": "lake", "path": "raw/x", "partition_keys": ["day"]}},
    "owner": {"ownership": [{"group": "sales"}, {"user": "ada", "type": "DATA_STEWARD"}]},
    "tag": {"tags": ["gold"]},
    "term": {"governance": {"glossary_terms": ["Customer"]}},
    "domain": {"governance": {"domains": ["sales"]}},
    "deprecation": {"governance": {"deprecation": {"note": "gone soon", "replacement": "y"}}},
    "governance": {"governance": {"stability": "BETA", "access": "PRIVATE", "retention_days": 90}},
    "description": {"documentation": {"description": "All who ever bought"}},
    "documentation": {"documentation": {"business_context": "Billing", "sla": "daily by 6"}},
    "link": {"documentation": {"links": [{"url": "https://example.org/x", "description": "x"}]}},
    "property": {"properties": {"retention": "7y", "partitions": 12, "nested": {"a": [1, None]}}},
    "assertion": {"assertions": [{"name": "id is set", "kind": "not_null", "column": "id"}]},
    "statistics": {"statistics": {"row_count": 45_000_000, "last_modified": AT}},
    "profile": {"profile": {"profiled_at": AT, "row_count": 3, "file_count": 1}},
    "quality": {"quality": {"overall_score": 99.2, "freshness": "30min"}},
    "cost": {
        "cost": {
            "dataset": "lumos://s3/lake/with_cost",
            "period": "2024-01",
            "kind": "storage",
            "amount": "12.50",
        }
    },
    "version": {"version": "1.4.2"},
    "extension": {"extensions": {"other": {"raw": ["kept", None]}}},
}
_ENTITIES: Final[Mapping[str, EntityKind]] = {
    "job": "job",
    "user": "user",
    "group": "group",
    "tag_definition": "tag",
    "glossary_term": "glossary_term",
    "domain_definition": "domain",
}


def concept_dataset(concept: str) -> LumosDataset | None:
    """Return a dataset with one concept and little else; nothing for what no dataset holds."""
    name = f"with_{concept}"
    if concept in _FIELDS:
        field = {"name": "amount", "type": "STRING", **_FIELDS[concept]}
        return dataset(name, schema={"fields": [field]})
    if concept in _SCHEMAS:
        return dataset(name, schema={"fields": [_ID], **_SCHEMAS[concept]})
    return with_parts(dataset(name), **_PARTS[concept]) if concept in _PARTS else None


class ConceptContract:
    """Every concept that an adapter does not drop comes back as it went in."""

    def test_every_concept_that_is_not_dropped_comes_back_equal(
        self, platform: MetadataPlatformInterface
    ) -> None:
        changed = [
            concept
            for concept in CONCEPTS
            if fidelity_of(platform, concept) is not Fidelity.DROPPED
            and not _comes_back(platform, concept)
        ]
        assert changed == []


def _comes_back(platform: MetadataPlatformInterface, concept: str) -> bool:
    emitted = concept_dataset(concept)
    if emitted is not None:
        platform.emit_dataset(emitted)
        return platform.get_dataset(emitted.urn) == emitted
    if concept in _ENTITIES:
        kind = _ENTITIES[concept]
        entity = ENTITY_MAKERS[kind](f"one_{concept}")
        platform.apply(Batch(entities=[entity]))
        return entity in [*EntityAbility.of(platform).list_entities(kind)]
    return _OTHERS[concept](platform)


def _edge(platform: MetadataPlatformInterface, *columns: ColumnMapping) -> bool:
    fields = {"fields": [{"name": "total", "type": "INT64"}]}
    ends = dataset("upstream", schema=fields), dataset("downstream", schema=fields)
    for end in ends:
        platform.emit_dataset(end)
    emitted = edge(*ends, column_mappings=columns, confidence=0.5, provenance="sql")
    platform.apply(Batch(edges=[emitted]))
    return emitted in [*LineageAbility.of(platform).list_edges()]


def _columns(platform: MetadataPlatformInterface) -> bool:
    return _edge(
        platform,
        ColumnMapping(
            upstream_column="total", downstream_column="total", transformation="sum(total)"
        ),
    )


def _identity(platform: MetadataPlatformInterface) -> bool:
    one = dataset("named_elsewhere")
    platform.emit_dataset(one)
    platform.apply(Batch(identities=[Identity(one.urn, "other", "urn:x:1")]))
    return IdentityAbility.of(platform).identity_map().get(one.urn, {}).get("other") == "urn:x:1"


def _extension(platform: MetadataPlatformInterface) -> bool:
    platform.apply(Batch(extensions={"other": {"nested": ["x", None]}}))
    return ExtensionAbility.of(platform).extensions().get("other") == {"nested": ["x", None]}


_OTHERS: Final[Mapping[str, Callable[[MetadataPlatformInterface], bool]]] = {
    "lineage_edge": _edge,
    "column_lineage": _columns,
    "identity": _identity,
    "catalog_extension": _extension,
}
