"""How snapshots of older schema versions become snapshots of this one."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import JsonValue

from lumos.core.errors import InvalidModelError, InvalidUrnError, UnsupportedSnapshotVersionError
from lumos.core.json_reading import Json, find_value, list_or_empty, object_or_empty, objects_among
from lumos.core.models.base import canonical_json
from lumos.core.models.lineage import EdgeBasis
from lumos.core.models.snapshot import CHECKSUMS, SNAPSHOT_SCHEMA_VERSION, Snapshot
from lumos.core.models.urn import Urn

# What is empty is left out, so a snapshot without datasets is known by its version alone.
_MARKS = frozenset({"datasets", "snapshot_schema_version"})
_LARGEST_TOLD = 1_000_000


def load_snapshot(document: object) -> Snapshot:
    """Read a snapshot document of any known schema version; counts and lineage are derived.

    Raises:
        InvalidModelError: the document is no snapshot.
        UnsupportedSnapshotVersionError: a newer Lumos wrote it.
    """
    return Snapshot.from_json(migrated(document)).with_derived_parts()


def migrated(document: object) -> Json:
    """Return the document brought to the current schema version, step by step."""
    version = require_readable(document)
    given = object_or_empty(document)
    # Checksums are compared where the document is read.
    current: Json = {name: value for name, value in given.items() if name not in CHECKSUMS}
    for step in range(version, SNAPSHOT_SCHEMA_VERSION):
        current = MIGRATIONS[step](current)
    # Edges are the truth, but where a document written by hand lists none at all, nothing
    # contradicts the neighbours that its datasets name.
    return current if "lineage_edges" in current else _with_listed_lineage(current)


def require_readable(document: object) -> int:
    """Return the schema version of a document, of which the head is enough.

    Raises:
        InvalidModelError: the document is no snapshot.
        UnsupportedSnapshotVersionError: a newer Lumos wrote it.
    """
    if not isinstance(document, dict) or not _MARKS.intersection(document):
        raise InvalidModelError(
            "not a Lumos snapshot: there is no 'datasets' list",
            hint="a snapshot is what lumos export --output FILE writes",
        )
    version = document.get("snapshot_schema_version", 0)
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        raise InvalidModelError("snapshot_schema_version is not a whole number")
    if version > SNAPSHOT_SCHEMA_VERSION:
        told = version if version <= _LARGEST_TOLD else f"over {_LARGEST_TOLD}"
        raise UnsupportedSnapshotVersionError(
            f"the snapshot has schema version {told}; this Lumos reads up to "
            f"{SNAPSHOT_SCHEMA_VERSION}",
            hint="upgrade Lumos: pip install --upgrade lumos",
        )
    return version


def _from_0(document: Json) -> Json:
    """Version 0 named no version and kept lineage only as lists on the datasets."""
    return {**_with_listed_lineage(document), "snapshot_schema_version": 1}


def _with_listed_lineage(document: Json) -> Json:
    """Add an edge for each neighbour that a dataset lists, unless that edge is there."""
    given = document.get("lineage_edges", [])
    if not isinstance(given, list):
        return document  # refused by the model
    known = {
        edge_key(edge.get("upstream_urn"), edge.get("downstream_urn"))
        for edge in objects_among(given)
    }
    lifted: list[JsonValue] = []
    for dataset in objects_among(document.get("datasets")):
        for upstream, downstream in listed_edges(dataset):
            key = edge_key(upstream, downstream)
            if key not in known:
                known.add(key)
                edge: Json = {"upstream_urn": upstream, "downstream_urn": downstream}
                if upstream in _inferred(dataset):
                    edge["basis"] = EdgeBasis.INFERRED.value
                lifted.append(edge)
    return {**document, "lineage_edges": [*given, *lifted]}


def edge_key(upstream: JsonValue, downstream: JsonValue) -> bytes:
    """Return what is equal for all spellings of one edge, and for none of two."""
    return canonical_json([_canonical(upstream), _canonical(downstream)])


def _canonical(urn: JsonValue) -> JsonValue:
    try:
        return Urn(urn) if isinstance(urn, str) else urn
    except InvalidUrnError:
        return urn


def listed_edges(dataset: Json) -> list[tuple[JsonValue, JsonValue]]:
    """Return upstream and downstream of each edge that a dataset of an older version names."""
    lineage = dataset.get("lineage")
    if not isinstance(lineage, dict):
        return []
    urn = dataset.get("urn")
    upstream, downstream = lineage.get("upstream"), lineage.get("downstream")
    return [
        *((source, urn) for source in (upstream if isinstance(upstream, list) else ())),
        *((urn, target) for target in (downstream if isinstance(downstream, list) else ())),
    ]


def _inferred(dataset: Json) -> list[JsonValue]:
    return list_or_empty(find_value(dataset, "lineage", "inferred"))


MIGRATIONS: dict[int, Callable[[Json], Json]] = {0: _from_0}
"""The step that leads from each older version to the next."""
