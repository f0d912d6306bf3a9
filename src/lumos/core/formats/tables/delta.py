"""Reads a Delta table from its log: the newest checkpoint and the commits after it.

The log is replayed from its newest action back to the oldest, so the first that is seen of a file
is what holds. Only the files named since the last checkpoint are kept in memory, mostly a few
thousand; those of the checkpoint, which may be millions, are counted as they pass by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import orjson
from pydantic import JsonValue

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.tables.delta_log import (
    LOG_FOLDER,
    SIDECAR_FOLDER,
    ActionBatch,
    LogFiles,
    log_files,
    read_checkpoint,
    read_commit,
    sidecar_name,
)
from lumos.core.formats.tables.delta_types import DeltaSchema
from lumos.core.formats.tables.facts import IDENTITY, PartitionField, TableFacts
from lumos.core.formats.tables.marks import DELTA
from lumos.core.formats.tables.parts import (
    Totals,
    count_of,
    parsed_object,
    short_text_at,
    shown_properties,
)
from lumos.core.formats.tables.ranges import joined
from lumos.core.json_reading import (
    Json,
    as_texts,
    list_at,
    object_at,
    object_or_empty,
    text_at,
    texts_at,
)

if TYPE_CHECKING:
    from lumos.core.formats.tables.access import TableAccess

_NEWEST_READER: Final = 3
_KNOWN_FEATURES: Final = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
        "variantType-preview",
        "variantShredding",
        "variantShredding-preview",
    }
)
_CATALOG_MANAGED: Final = frozenset({"catalogManaged", "catalogOwned-preview"})
_NO_SETTINGS: Final = frozenset({"delta.columnMapping.maxColumnId"})
_CLUSTERING = "delta.clustering"
_LARGEST_MILLIS: Final = 253_402_300_799_999


def read_delta(root: str, access: TableAccess) -> TableFacts:
    """Return the facts of the table at a root, from its present log.

    Raises:
        UnreadableItemError: the log is damaged, incomplete or cannot be read.
    """
    files = log_files(list(access.list(joined(root, LOG_FOLDER))))
    replay = _Replay(root, access)
    for entry in reversed(files.commits):
        for batch in read_commit(access, root, entry):
            replay.commit(batch)
        replay.end_of_commit()
    for entry in files.checkpoint:
        for batch in read_checkpoint(access, root, entry):
            replay.checkpoint(batch)
    replay.sidecars()
    return _facts_of(replay, files)


class _Replay:
    """The state of a table, folded from its newest action back to its oldest."""

    def __init__(self, root: str, access: TableAccess) -> None:
        self.totals = Totals()
        self.latest: dict[str, Json] = {}
        """The newest `protocol`, `metaData` and `commitInfo`."""
        self.domains: dict[str, Json] = {}
        self._root, self._access = root, access
        self._seen: set[str] = set()
        self._seen_in_commit: set[str] = set()
        self._sidecars: set[str] = set()

    def commit(self, batch: ActionBatch) -> None:
        for file in batch.files:
            if file.key not in self._seen:
                self._seen_in_commit.add(file.key)
                if file.added:
                    self._count(file.size, file.rows, file.deleted_rows)
        self._others(batch)

    def end_of_commit(self) -> None:
        """Let what this commit said of a file hold against all older ones.

        Within one commit the order of actions says nothing.
        """
        self._seen |= self._seen_in_commit
        self._seen_in_commit = set()
        self.latest.setdefault("commitInfo", {})  # an older commit says nothing on the newest

    def checkpoint(self, batch: ActionBatch) -> None:
        for file in batch.files:
            if file.added and file.key not in self._seen:
                self._count(file.size, file.rows, file.deleted_rows)
        self._others(batch)

    def sidecars(self) -> None:
        """Read the files to which a checkpoint of the second version hands its share."""
        if not self._sidecars:
            return
        folder = joined(LOG_FOLDER, SIDECAR_FOLDER)
        listed = {entry.name: entry for entry in self._access.list(joined(self._root, folder))}
        for name in sorted(self._sidecars):
            if name not in listed:
                raise UnreadableItemError(f"its log is incomplete: sidecar {name} is missing")
            for batch in read_checkpoint(self._access, self._root, listed[name], folder=folder):
                self.checkpoint(batch)

    def _count(self, size: object, rows: int | None, deleted: int) -> None:
        self.totals.add(count_of(size), None if rows is None else max(0, rows - deleted))

    def _others(self, batch: ActionBatch) -> None:
        for kind, action in batch.others:
            if kind == "domainMetadata":
                self.domains.setdefault(text_at(action, "domain") or "", action)
            elif kind == "sidecar":
                if name := sidecar_name(action):
                    self._sidecars.add(name)
            elif kind in ("protocol", "metaData", "commitInfo"):
                self.latest.setdefault(kind, action)


def _facts_of(replay: _Replay, files: LogFiles) -> TableFacts:
    metadata = replay.latest.get("metaData")
    if metadata is None:
        raise UnreadableItemError("its log is incomplete: no file of it holds the schema")
    text = text_at(metadata, "schemaString")
    delta = DeltaSchema(parsed_object((text or "").encode(), what="the schema in its log"))
    protocol = replay.latest.get("protocol", {})
    totals = replay.totals
    return TableFacts(
        format=DELTA,
        schema=delta.schema,
        name=short_text_at(metadata, "name"),
        description=short_text_at(metadata, "description"),
        partitioning=tuple(
            PartitionField(column, IDENTITY, column)
            for column in texts_at(metadata, "partitionColumns")
        ),
        properties=_properties(metadata, replay.domains, delta.logical_names),
        version=str(files.version),
        rows=totals.row_count,
        rows_exact=totals.exact,
        files=totals.files,
        size_bytes=totals.total_bytes,
        last_modified_us=_last_modified(replay.latest.get("commitInfo", {}), files),
        observations=_observations(metadata, protocol),
        warnings=(*delta.warnings, *_protocol_warnings(protocol)),
    )


def _properties(
    metadata: Json, domains: Mapping[str, Json], logical_names: Mapping[str, str]
) -> dict[str, str]:
    properties = shown_properties(object_at(metadata, "configuration"), without=_NO_SETTINGS)
    clustering = domains.get(_CLUSTERING, {})
    if clustering and not clustering.get("removed"):
        columns = _clustering_columns(text_at(clustering, "configuration"), logical_names)
        if columns:
            properties["clustering_columns"] = ", ".join(columns)
    return properties


def _clustering_columns(text: str | None, logical_names: Mapping[str, str]) -> list[str]:
    try:
        domain = object_or_empty(orjson.loads(text or "{}"))
    except ValueError:
        return []
    name = "clusteringColumns"
    paths = [as_texts(column, name) for column in list_at(domain, name)]
    return [".".join((logical_names.get(path[0], path[0]), *path[1:])) for path in paths if path]


def _last_modified(commit_info: Json, files: LogFiles) -> int | None:
    """Return when the newest commit was made, by the writer's clock where it is given."""
    for name in ("inCommitTimestamp", "timestamp"):
        millis = count_of(commit_info.get(name))
        if millis is not None and millis <= _LARGEST_MILLIS:
            return millis * 1_000
    return files.newest_mtime_us


def _observations(metadata: Json, protocol: Json) -> dict[str, JsonValue]:
    observed: dict[str, JsonValue] = {}
    if table_id := short_text_at(metadata, "id"):
        observed["table_id"] = table_id
    for name, shown in (
        ("minReaderVersion", "reader_version"),
        ("minWriterVersion", "writer_version"),
    ):
        if (version := count_of(protocol.get(name))) is not None:
            observed[shown] = version
    for name, shown in (
        ("readerFeatures", "reader_features"),
        ("writerFeatures", "writer_features"),
    ):
        if features := texts_at(protocol, name):
            observed[shown] = [*sorted(features)]
    return observed


def _protocol_warnings(protocol: Json) -> list[str]:
    warnings = []
    version = count_of(protocol.get("minReaderVersion"))
    if version is None:
        warnings.append("its log names no protocol version")
    elif version > _NEWEST_READER:
        warnings.append(f"it needs reader version {version}; rows and files may be wrong")
    features = set(texts_at(protocol, "readerFeatures"))
    if features & _CATALOG_MANAGED:
        warnings.append("a catalog manages its commits: the newest may not be in the log yet")
    if unknown := sorted(features - _KNOWN_FEATURES - _CATALOG_MANAGED):
        named = ", ".join(unknown[:5])
        warnings.append(f"it needs reader features that are not known: {named}")
    return warnings
