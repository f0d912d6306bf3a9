"""How snapshots of older schema versions become snapshots of this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from pydantic import JsonValue

from lumos.core.errors import InvalidModelError, UnsupportedSnapshotVersionError
from lumos.core.models.base import canonical_json
from lumos.core.models.snapshot import SNAPSHOT_SCHEMA_VERSION, Snapshot

Json = dict[str, JsonValue]

# What is empty is left out, so a snapshot without datasets is known by its version alone.
_MARKS = frozenset({"datasets", "snapshot_schema_version"})


def load_snapshot(document: object) -> Snapshot:
    """Read a snapshot document of any known schema version; counts and lineage are derived.

    Raises:
        InvalidModelError: the document is no snapshot.
        UnsupportedSnapshotVersionError: a newer Lumos wrote it.
    """
    return Snapshot.from_json(migrated(document)).with_derived_parts()


def migrated(document: object) -> Json:
    """Return the document brought to the current schema version, step by step."""
    if not isinstance(document, dict) or not _MARKS.intersection(document):
        raise InvalidModelError(
            "not a Lumos snapshot: there is no 'datasets' list",
            hint="a snapshot is what lumos export --output FILE writes",
        )
    version = document.get("snapshot_schema_version", 0)
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        raise InvalidModelError("snapshot_schema_version is not a whole number")
    if version > SNAPSHOT_SCHEMA_VERSION:
        raise UnsupportedSnapshotVersionError(
            f"the snapshot has schema version {version}; this Lumos reads up to "
            f"{SNAPSHOT_SCHEMA_VERSION}",
            hint="upgrade Lumos: pip install --upgrade lumos",
        )
    for step in range(version, SNAPSHOT_SCHEMA_VERSION):
        document = MIGRATIONS[step](document)
    return document


def _from_0(document: Json) -> Json:
    """Version 0 named no version and kept lineage only as lists on the datasets."""
    known = {
        canonical_json([edge.get("upstream_urn"), edge.get("downstream_urn")])
        for edge in _objects(document.get("lineage_edges"))
    }
    lifted: list[JsonValue] = []
    for dataset in _objects(document.get("datasets")):
        for upstream, downstream in _listed_edges(dataset):
            key = canonical_json([upstream, downstream])
            if key not in known:
                known.add(key)
                lifted.append({"upstream_urn": upstream, "downstream_urn": downstream})
    edges = [*cast("list[JsonValue]", document.get("lineage_edges") or []), *lifted]
    return {**document, "snapshot_schema_version": 1, "lineage_edges": edges}


def _listed_edges(dataset: Json) -> list[tuple[JsonValue, JsonValue]]:
    lineage = dataset.get("lineage")
    if not isinstance(lineage, dict):
        return []
    urn = dataset.get("urn")
    upstream = cast("list[JsonValue]", lineage.get("upstream") or [])
    downstream = cast("list[JsonValue]", lineage.get("downstream") or [])
    return [(source, urn) for source in upstream] + [(urn, target) for target in downstream]


def _objects(value: JsonValue) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


MIGRATIONS: dict[int, Callable[[Json], Json]] = {0: _from_0}
"""The step that leads from each older version to the next."""
