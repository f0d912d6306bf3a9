"""How well a catalog keeps each concept, counted before anything is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from pydantic import JsonValue

from lumos.core.json_reading import as_list, find_object, find_objects
from lumos.core.models.base import CanonicalModel, Count
from lumos.core.models.facets import COLUMN_FACETS, DATASET_FACETS, FACETS, FIELDS

if TYPE_CHECKING:
    from lumos.core.json_reading import Json
    from lumos.core.models import LineageEdge, LumosDataset
    from lumos.core.platform.interface import MetadataPlatformInterface

AdapterRef: TypeAlias = "MetadataPlatformInterface | type[MetadataPlatformInterface]"
"""An adapter, or its class where that is enough."""


class Fidelity(StrEnum):
    """How well a catalog keeps something that is written to it, the best first."""

    NATIVE = "native"
    """The catalog has the same concept."""
    TRANSFORMED = "transformed"
    """It is shown in another form, from which it is read back the same."""
    STASHED = "stashed"
    """The catalog does not show it; it travels with the dataset and is read back the same."""
    DROPPED = "dropped"
    """It is not written."""


class FidelityRow(CanonicalModel):
    """One concept: how often it occurs and how well the catalog keeps it."""

    concept: str
    fidelity: Fidelity
    count: Count


class FidelityReport(CanonicalModel):
    """How well a catalog would keep everything that is to be written."""

    platform: str
    rows: tuple[FidelityRow, ...] = ()

    def total(self, fidelity: Fidelity) -> int:
        """Return how many things share a fate."""
        return sum(row.count for row in self.rows if row.fidelity is fidelity)


def _length(value: JsonValue) -> int:
    return len(value) if isinstance(value, list | dict) else 0


def _nested(node: Json) -> int:
    inner = [*find_objects(node, "fields"), *find_objects(node, "branches")]
    inner.extend(part for name in INNER_TYPES if (part := find_object(node, name)))
    return len(inner) + sum(map(_nested, inner))


INNER_TYPES: Final = ("items", "key", "value")
NESTED_FIELD: Final = "nested_field"
_PLAIN: Final = frozenset({"name", "type", "nullable", "description", "native_type", "length"})
"""Parts of a field in which no further concept can be."""
_COUNTED: Final = tuple(
    (facet.part, facet.name if facet.name != facet.part else None, facet.concept, facet.has_members)
    for facet in DATASET_FACETS
    if facet.concept not in ("dataset", "field")
)
"""Part, name within it, concept, and whether its members are counted."""
_OF_DATASETS: Final = tuple(
    dict.fromkeys(
        concept
        for facet in FACETS
        for concept in ((facet.concept, NESTED_FIELD) if facet.path == FIELDS else (facet.concept,))
    )
)
"""All concepts of datasets in the order of reports."""
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


def _owners_beyond(owners: list[JsonValue]) -> int:
    """Return how many owners are left out where owners are users or one team."""
    teams = sum(isinstance(owner, dict) and "group" in owner for owner in owners)
    return teams if teams < len(owners) else teams - 1


_LIMITS: Final[Mapping[str, Callable[[list[JsonValue]], int]]] = {
    "owner": _owners_beyond,
    "domain": lambda domains: len(domains) - 1,
}
"""How many of several are left out where a catalog shows a part of a concept."""


class FidelityCount:
    """Counts concepts as they come by."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._beyond: Counter[str] = Counter()
        """How much of a concept a catalog stashes that shows a part of it."""

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
        for part, name, concept, has_members in _COUNTED:
            if part not in document:
                continue
            value = document[part]
            if name is not None:
                if not isinstance(value, dict) or name not in value:
                    continue
                value = value[name]
            counts[concept] += _length(value) if has_members else 1
            if concept in _LIMITS and _length(value) > 1:
                self._beyond[concept] += _LIMITS[concept](as_list(value, concept))
        fields = find_objects(document, "schema", "fields")
        counts["field"] += len(fields)
        described = 0
        for field in fields:
            described += "description" in field
            if not field.keys() <= _PLAIN:
                self._add_field(field)
        counts["field_description"] += described

    def _add_field(self, field: Json) -> None:
        counts = self._counts
        counts[NESTED_FIELD] += _nested(field)
        for name, facet in COLUMN_FACETS.items():
            if name in field and name != "description":  # counted for all columns at once
                value = field[name]
                counts[facet.concept] += _length(value) if facet.has_members else value is not False

    def add_edge(self, edge: LineageEdge) -> None:
        """Count a lineage edge and its columns."""
        self._counts["lineage_edge"] += 1
        self._counts["column_lineage"] += len(edge.column_mappings)

    def report(self, adapter: AdapterRef) -> FidelityReport:
        """Return how well a catalog would keep all that was counted."""
        rows: list[FidelityRow] = []
        for concept in CONCEPTS:
            beyond = self._beyond[concept] if concept in adapter.LIMITED else 0
            fates = {fidelity_of(adapter, concept): self._counts[concept] - beyond}
            fates[Fidelity.STASHED] = fates.get(Fidelity.STASHED, 0) + beyond
            rows += [
                FidelityRow(concept=concept, fidelity=fate, count=count)
                for fate, count in fates.items()
                if count
            ]
        return FidelityReport(platform=adapter.name, rows=tuple(rows))


def fidelity_of(adapter: AdapterRef, concept: str) -> Fidelity:
    """Return how well a catalog keeps a concept, by its table and its capabilities.

    An adapter without a table says that it keeps all that its capabilities name; one with a table
    promises nothing that the table does not.
    """
    needed = _OF_CATALOGS.get(concept)
    if needed is not None and needed not in adapter.capabilities:
        return Fidelity.DROPPED
    table = adapter.FIDELITY
    return table.get(concept, Fidelity.DROPPED) if table else Fidelity.NATIVE
