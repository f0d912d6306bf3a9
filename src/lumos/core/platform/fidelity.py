"""How well a catalog keeps each concept, counted before anything is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from lumos.core.models.base import CanonicalModel, Count

if TYPE_CHECKING:
    from lumos.core.models import Field, FieldType, LineageEdge, LumosDataset, Snapshot
    from lumos.core.platform.interface import MetadataPlatformInterface

Keeper: TypeAlias = "MetadataPlatformInterface | type[MetadataPlatformInterface]"
"""An adapter, or its class where that alone tells all."""


class Fidelity(StrEnum):
    """What becomes of something when a catalog is told of it, the best first."""

    NATIVE = "native"
    """The catalog has the same concept."""
    TRANSFORMED = "transformed"
    """It is shown in another form, from which it is read back the same."""
    STASHED = "stashed"
    """The catalog does not show it; it travels with the dataset and is read back the same."""
    DROPPED = "dropped"
    """It is not written."""


class FidelityRow(CanonicalModel):
    """One concept: how often it occurs and what becomes of it."""

    concept: str
    fidelity: Fidelity
    count: Count


class FidelityReport(CanonicalModel):
    """What would become of everything that is to be written."""

    platform: str
    rows: tuple[FidelityRow, ...] = ()

    def total(self, fidelity: Fidelity) -> int:
        """Return how many things share a fate."""
        return sum(row.count for row in self.rows if row.fidelity is fidelity)

    @property
    def is_lossless(self) -> bool:
        return not self.total(Fidelity.DROPPED)


def _nested(node: FieldType) -> int:
    inner = [*node.fields, *node.branches]
    inner.extend(part for part in (node.items, node.key, node.value) if part is not None)
    return len(inner) + sum(map(_nested, inner))


def _present(*values: object) -> int:
    return sum(value not in (None, ()) for value in values)


_OF_FIELDS: Final = (
    "field",
    "nested_field",
    "field_description",
    "field_default",
    "field_pii",
    "field_tag",
    "field_term",
    "field_property",
    "field_deprecation",
)
_PLAIN: Final = frozenset({"name", "type", "nullable", "description", "native_type", "length"})
"""Parts of a field in which no further concept can be."""
_OF_DATASETS: Final[Mapping[str, Callable[[LumosDataset], int]]] = {
    "dataset": lambda one: 1,
    "kind": lambda one: _present(one.kind),
    "environment": lambda one: _present(one.environment),
    "format": lambda one: _present(one.format),
    "location": lambda one: _present(one.location),
    **dict.fromkeys(_OF_FIELDS, lambda one: 0),  # counted in one go over all fields
    "primary_key": lambda one: _present(one.schema.primary_key),
    "unique_key": lambda one: len(one.schema.unique_keys),
    "foreign_key": lambda one: len(one.schema.foreign_keys),
    "check": lambda one: len(one.schema.checks),
    "owner": lambda one: len(one.ownership.owners),
    "tag": lambda one: len(one.tags),
    "term": lambda one: len(one.governance.glossary_terms),
    "domain": lambda one: len(one.governance.domains),
    "deprecation": lambda one: _present(one.governance.deprecation),
    "governance": lambda one: _present(
        one.governance.stability, one.governance.access, one.governance.retention_days
    ),
    "description": lambda one: _present(one.documentation.description),
    "documentation": lambda one: _present(
        one.documentation.business_context, one.documentation.sla
    ),
    "link": lambda one: len(one.documentation.links),
    "property": lambda one: len(one.properties),
    "assertion": lambda one: len(one.assertions),
    "statistics": lambda one: _present(one.statistics),
    "profile": lambda one: _present(one.profile),
    "quality": lambda one: _present(one.quality),
    "cost": lambda one: _present(one.cost),
    "version": lambda one: _present(one.version),
    "extension": lambda one: len(one.extensions),
}
_OF_CATALOGS: Final[Mapping[str, str]] = {
    "lineage_edge": "LINEAGE",
    "column_lineage": "LINEAGE",
    "job": "ENTITIES",
    "user": "ENTITIES",
    "group": "ENTITIES",
    "tag_definition": "ENTITIES",
    "glossary_term": "ENTITIES",
    "domain_definition": "ENTITIES",
    "identity": "IDENTITY_MAP",
    "catalog_extension": "EXTENSIONS",
}
"""Concepts beside datasets, and the capability without which nothing is kept of them."""

CONCEPTS: Final = (*_OF_DATASETS, *_OF_CATALOGS)
"""Every concept that an adapter's table may name."""


class FidelityCount:
    """Counts concepts as they come by."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, concept: str, count: int = 1) -> None:
        """Count something of a concept beside datasets."""
        self._counts[concept] += count

    def add_dataset(self, dataset: LumosDataset) -> None:
        """Count a dataset and all that it holds."""
        for concept, counted in _OF_DATASETS.items():
            if count := counted(dataset):
                self._counts[concept] += count
        fields = dataset.schema.fields
        self._counts["field"] += len(fields)
        described = 0
        for field in fields:
            if field.description is not None:
                described += 1
            if not field.__pydantic_fields_set__ <= _PLAIN:
                self._add_field(field)
        self._counts["field_description"] += described

    def _add_field(self, field: Field) -> None:
        counts = self._counts
        if field.fields or field.branches or field.items or field.value:
            counts["nested_field"] += _nested(field)
        if field.default is not None:
            counts["field_default"] += 1
        if field.pii:
            counts["field_pii"] += 1
        if field.tags:
            counts["field_tag"] += len(field.tags)
        if field.glossary_terms:
            counts["field_term"] += len(field.glossary_terms)
        if field.properties:
            counts["field_property"] += len(field.properties)
        if field.deprecation is not None:
            counts["field_deprecation"] += 1

    def add_edge(self, edge: LineageEdge) -> None:
        """Count a lineage edge and its columns."""
        self._counts["lineage_edge"] += 1
        self._counts["column_lineage"] += len(edge.column_mappings)

    def report(self, adapter: Keeper) -> FidelityReport:
        """Tell what a catalog would make of all that was counted."""
        rows = [
            FidelityRow(concept=concept, fidelity=fidelity_of(adapter, concept), count=count)
            for concept in CONCEPTS
            if (count := self._counts[concept])
        ]
        return FidelityReport(platform=adapter.name, rows=tuple(rows))


def fidelity_of(adapter: Keeper, concept: str) -> Fidelity:
    """Tell what a catalog makes of a concept, by its table and its capabilities.

    An adapter without a table says that it keeps all that its capabilities name; one with a table
    promises nothing that the table does not.
    """
    needed = _OF_CATALOGS.get(concept)
    if needed is not None and needed not in adapter.capabilities:
        return Fidelity.DROPPED
    table = adapter.FIDELITY
    return table.get(concept, Fidelity.DROPPED) if table else Fidelity.NATIVE


def fidelity_report(adapter: Keeper, snapshot: Snapshot) -> FidelityReport:
    """Count by concept what would become of a snapshot in a catalog; nothing is written."""
    count = FidelityCount()
    for dataset in snapshot.datasets:
        count.add_dataset(dataset)
    for edge in snapshot.lineage_edges:
        count.add_edge(edge)
    count.add("job", len(snapshot.jobs))
    count.add("user", len(snapshot.users))
    count.add("group", len(snapshot.groups))
    count.add("tag_definition", len(snapshot.tags))
    count.add("glossary_term", len(snapshot.glossary))
    count.add("domain_definition", len(snapshot.domains))
    count.add("identity", sum(map(len, snapshot.identity_map.values())))
    count.add("catalog_extension", len(snapshot.extensions))
    return count.report(adapter)
