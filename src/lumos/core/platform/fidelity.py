"""How well a catalog keeps each concept, counted before anything is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from pydantic import JsonValue

from lumos.core.models.base import CanonicalModel, Count

if TYPE_CHECKING:
    from lumos.core.models import LineageEdge, LumosDataset, Snapshot
    from lumos.core.platform.interface import MetadataPlatformInterface

Json: TypeAlias = dict[str, JsonValue]
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


def _object(value: JsonValue) -> Json:
    return value if isinstance(value, dict) else {}


def _length(value: JsonValue) -> int:
    return len(value) if isinstance(value, list | dict) else 0


def _nested(node: Json) -> int:
    inner = [*_objects(node.get("fields")), *_objects(node.get("branches"))]
    inner.extend(part for name in INNER_TYPES if (part := _object(node.get(name))))
    return len(inner) + sum(map(_nested, inner))


def _objects(value: JsonValue) -> list[Json]:
    return cast("list[Json]", value) if isinstance(value, list) else []


INNER_TYPES: Final = ("items", "key", "value")
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
ONE_EACH: Final = (
    "kind", "environment", "format", "location", "statistics", "profile", "quality", "cost",
    "version",
)  # fmt: skip
"""Parts of a dataset that are concepts."""
INNER_PARTS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "primary_key": ("schema", ("primary_key",)),
    "deprecation": ("governance", ("deprecation",)),
    "governance": ("governance", ("stability", "access", "retention_days")),
    "description": ("documentation", ("description",)),
    "documentation": ("documentation", ("business_context", "sla")),
}
"""Concepts that are parts of a part: one for each of these that is there."""
INNER_LISTS: Final[Mapping[str, tuple[str, str]]] = {
    "unique_key": ("schema", "unique_keys"),
    "foreign_key": ("schema", "foreign_keys"),
    "check": ("schema", "checks"),
    "owner": ("ownership", "owners"),
    "term": ("governance", "glossary_terms"),
    "domain": ("governance", "domains"),
    "link": ("documentation", "links"),
}
OWN_LISTS: Final[Mapping[str, str]] = {
    "tag": "tags",
    "property": "properties",
    "assertion": "assertions",
    "extension": "extensions",
}
_OF_DATASETS: Final = (
    "dataset", "kind", "environment", "format", "location", *_OF_FIELDS, "primary_key",
    "unique_key", "foreign_key", "check", "owner", "tag", "term", "domain", "deprecation",
    "governance", "description", "documentation", "link", "property", "assertion", "statistics",
    "profile", "quality", "cost", "version", "extension",
)  # fmt: skip
"""All of them in the order of reports."""
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
        self.add_document(dataset.document)

    def add_document(self, document: Json) -> None:
        """Count a dataset, given as `to_json` writes it, and all that it holds."""
        counts = self._counts
        counts["dataset"] += 1
        for concept in ONE_EACH:
            if concept in document:
                counts[concept] += 1
        for concept, (part, names) in INNER_PARTS.items():
            if inside := _object(document.get(part)):
                counts[concept] += sum(name in inside for name in names)
        for concept, (part, name) in INNER_LISTS.items():
            if inside := _object(document.get(part)):
                counts[concept] += _length(inside.get(name))
        for concept, name in OWN_LISTS.items():
            counts[concept] += _length(document.get(name))
        fields = _objects(_object(document.get("schema")).get("fields"))
        counts["field"] += len(fields)
        described = 0
        for field in fields:
            described += "description" in field
            if not field.keys() <= _PLAIN:
                self._add_field(field)
        counts["field_description"] += described

    def _add_field(self, field: Json) -> None:
        counts = self._counts
        counts["nested_field"] += _nested(field)
        counts["field_default"] += "default" in field
        counts["field_pii"] += bool(field.get("pii"))
        counts["field_tag"] += _length(field.get("tags"))
        counts["field_term"] += _length(field.get("glossary_terms"))
        counts["field_property"] += _length(field.get("properties"))
        counts["field_deprecation"] += "deprecation" in field

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
