"""Differences in what a dataset is made from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lumos.core.changes.detectors.sets import name_findings

if TYPE_CHECKING:
    from lumos.core.changes.finding import Finding
    from lumos.core.models import LumosDataset


def lineage_findings(old: LumosDataset, new: LumosDataset) -> Iterator[Finding]:
    """Yield upstream datasets that came or went; a new consumer is no change of its source."""
    upstream = ((str(urn) for urn in dataset.lineage.upstream) for dataset in (old, new))
    yield from name_findings(*upstream, rule="lineage.edge")
