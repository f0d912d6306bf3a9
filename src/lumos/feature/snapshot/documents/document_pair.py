"""Two small documents loaded side by side: what both hold alike is built once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import orjson
from pydantic import JsonValue

from lumos.core.errors import LumosError
from lumos.core.json_reading import objects_at
from lumos.core.models import LumosDataset, Snapshot
from lumos.core.models.migrations import migrated
from lumos.core.models.sharing import Known, built_beside
from lumos.core.models.snapshot import CHECKSUMS
from lumos.core.strict_json import parsed_unique
from lumos.feature.snapshot.documents.document import has_matching_seal, opened_file
from lumos.feature.snapshot.source import LoadedSource

if TYPE_CHECKING:
    from lumos.core.json_reading import Json

_LARGEST_BYTES = 8 * 1024 * 1024
"""Up to which size a document is held in memory; a dataset of 5 KB takes about 40 KB there."""


def loaded_pair(old: Path, new: Path) -> tuple[LoadedSource, LoadedSource] | None:
    """Load two documents without checksums, or return None for all others.

    None also stands for documents that are large, unreadable or no snapshots: opening them one by
    one raises the reason.
    """
    try:
        documents = [_document(path) for path in (old, new)]
        if any(document is None for document in documents):
            return None
        before, after = (migrated(document) for document in documents)
        earlier = Snapshot.from_json(before)
        later = Snapshot.from_json({**after, "datasets": _beside(after, before, earlier)})
    except (LumosError, ValueError):
        return None
    return (
        LoadedSource(earlier.with_derived_parts(), str(old)),
        LoadedSource(later.with_derived_parts(), str(new)),
    )


def _document(path: Path) -> Json | None:
    with opened_file(path) as stream:
        content = stream.read(_LARGEST_BYTES + 1)
        if not content or len(content) > _LARGEST_BYTES or has_matching_seal(stream):
            return None
        document = parsed_unique(content)
        if not isinstance(document, dict) or any(name in document for name in CHECKSUMS):
            return None
        return document


def _beside(document: Json, before: Json, earlier: Snapshot) -> object:
    """Return the datasets of a document; those whose URN an earlier one has as models."""
    datasets, known = document.get("datasets", []), _known(before, earlier)
    if not isinstance(datasets, list):
        return datasets
    return [_built(each, known) for each in datasets]


def _known(document: Json, snapshot: Snapshot) -> dict[JsonValue, Known]:
    built: dict[JsonValue, LumosDataset] = {str(each.urn): each for each in snapshot.datasets}
    datasets = objects_at(document, "datasets")
    return {
        urn: Known(each, built[urn])
        for each in datasets
        if isinstance(urn := each.get("urn"), str) and urn in built
    }


def _built(document: JsonValue, known: dict[JsonValue, Known]) -> object:
    urn = document.get("urn") if isinstance(document, dict) else None
    earlier = known.get(urn) if isinstance(urn, str) else None
    if not isinstance(document, dict) or earlier is None:
        return document
    if orjson.dumps(document) == orjson.dumps(earlier.document):
        return earlier.dataset
    return built_beside(document, earlier)
