"""Differences in free key-value properties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lumos.core.changes.detectors.sets import same_json
from lumos.core.changes.finding import Finding
from lumos.core.changes.text import quoted

if TYPE_CHECKING:
    from lumos.core.models import LumosDataset
    from lumos.core.models.base import Properties


def dataset_property_findings(old: LumosDataset, new: LumosDataset) -> Iterator[Finding]:
    """Yield changes of the dataset's own properties."""
    yield from property_findings(old.properties, new.properties)


def property_findings(old: Properties, new: Properties, *, path: str = "") -> Iterator[Finding]:
    """Yield properties that came, went or have another value."""
    for key in old.keys() - new.keys():
        yield Finding("props.removed", path, old={key: old[key]}, subject=quoted(key))
    for key in new.keys() - old.keys():
        yield Finding("props.added", path, new={key: new[key]}, subject=quoted(key))
    for key in old.keys() & new.keys():
        if not same_json(old[key], new[key]):
            yield Finding(
                "props.changed",
                path,
                old={key: old[key]},
                new={key: new[key]},
                subject=quoted(key),
            )
