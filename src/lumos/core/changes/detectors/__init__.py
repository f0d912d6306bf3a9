"""The detectors: small pure functions, one module for each part of a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumos.core.changes.detectors.dataset import dataset_findings
from lumos.core.changes.detectors.documentation import documentation_findings
from lumos.core.changes.detectors.governance import governance_findings
from lumos.core.changes.detectors.keys import key_findings
from lumos.core.changes.detectors.lineage import lineage_findings
from lumos.core.changes.detectors.ownership import ownership_findings
from lumos.core.changes.detectors.properties import dataset_property_findings
from lumos.core.changes.detectors.quality import quality_findings
from lumos.core.changes.detectors.structure import schema_findings

if TYPE_CHECKING:
    from lumos.core.changes.finding import Detector

DETECTORS: tuple[Detector, ...] = (
    dataset_findings,
    schema_findings,
    key_findings,
    lineage_findings,
    ownership_findings,
    governance_findings,
    documentation_findings,
    dataset_property_findings,
    quality_findings,
)

__all__ = ["DETECTORS"]
