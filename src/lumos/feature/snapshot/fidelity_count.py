"""What a catalog would make of a snapshot, counted without holding it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lumos.core.models import LineageEdge
from lumos.core.platform.fidelity import FidelityCount, FidelityReport
from lumos.core.store.snapshots.part_format import dataset_of_line, item_of
from lumos.feature.snapshot.source import section_lines

if TYPE_CHECKING:
    from lumos.core.platform.fidelity import AdapterRef
    from lumos.feature.snapshot.source import SnapshotSource

SECTION_CONCEPTS: Final = {
    "datasets": "dataset",
    "lineage_edges": "lineage_edge",
    "jobs": "job",
    "users": "user",
    "groups": "group",
    "tags": "tag_definition",
    "glossary": "glossary_term",
    "domains": "domain_definition",
    "identity_map": "identity",
    "extensions": "catalog_extension",
}
"""What the items of a section are as a concept."""
_LOOKED_INTO: Final = ("datasets", "lineage_edges")


def counted_fidelity(source: SnapshotSource, target: AdapterRef) -> FidelityReport:
    """Count by concept how well a catalog would keep a snapshot."""
    count = FidelityCount()
    for line in section_lines(source, "datasets"):
        count.add_dataset(dataset_of_line(line))
    for line in section_lines(source, "lineage_edges"):
        count.add_edge(LineageEdge.from_json(item_of(line)))
    for section, concept in SECTION_CONCEPTS.items():
        if section not in _LOOKED_INTO:
            count.add(concept, source.section_count(section))
    return count.report(target)
