"""Reads an Iceberg table from its newest metadata file; no manifest and no data file is opened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.tables.facts import PartitionField, TableFacts
from lumos.core.formats.tables.iceberg_types import IcebergSchema
from lumos.core.formats.tables.marks import ICEBERG, ICEBERG_METADATA_FILE, VERSION_HINT
from lumos.core.formats.tables.parts import (
    count_of,
    parsed_object,
    short_text,
    short_text_at,
    shown_properties,
)
from lumos.core.formats.tables.ranges import joined, read_log_document
from lumos.core.json_reading import Json, as_object, list_at, object_at, objects_at

if TYPE_CHECKING:
    from lumos.core.formats.tables.access import TableAccess, TableEntry

METADATA_FOLDER: Final = "metadata"
_NEWEST_FORMAT: Final = 3
_LARGEST_MILLIS: Final = 253_402_300_799_999
_NO_SETTINGS: Final = frozenset({"comment", "schema.name-mapping.default", "metadata_location"})
_HINT_BYTES: Final = 4_096


def read_iceberg(root: str, access: TableAccess) -> TableFacts:
    """Return the facts of the table at a root, from its newest metadata.

    Raises:
        UnreadableItemError: the metadata is missing, damaged or cannot be read.
    """
    folder = joined(root, METADATA_FOLDER)
    entry, doubts = _newest(list(access.list(folder)), folder, access)
    what = f"its metadata file {entry.name}"
    document = parsed_object(
        read_log_document(access, joined(folder, entry.name), what=what), what=what
    )
    if "view-uuid" in document:
        return _view_facts(document, doubts)
    return _table_facts(document, root, doubts)


def _newest(
    entries: Sequence[TableEntry], folder: str, access: TableAccess
) -> tuple[TableEntry, list[str]]:
    """Choose the metadata file that is current, as far as a folder shows it.

    A catalog knows it for certain. Without one the highest number is right, except that a commit
    that lost a race may have left a file of the same number, or that a table moved from numbers of
    one kind to the other; then the file written last is taken.
    """
    matches = [(entry, ICEBERG_METADATA_FILE.fullmatch(entry.name)) for entry in entries]
    numbered = [
        (int(match["number"] or 0), entry.name.startswith("v"), entry)
        for entry, match in matches
        if match
    ]
    if not numbered:
        raise UnreadableItemError(
            "there is no metadata file of an Iceberg table in its metadata folder",
            hint="where a catalog keeps the metadata elsewhere, make that folder a source too",
        )
    if not all(by_version for _, by_version, _ in numbered):
        named = _hinted(entries, folder, access)
        for _, _, entry in numbered:
            if entry.name in (named, f"{named}.metadata.json"):
                return entry, []
    newest_of_kind = [
        max((one for one in numbered if one[1] is by_version), key=_rank)
        for by_version in {one[1] for one in numbered}
    ]
    number, by_version, entry = max(newest_of_kind, key=lambda one: (one[2].mtime_us, *_rank(one)))
    rivals = [one for one in numbered if one[0] == number and one[1] is by_version]
    doubts = (
        [f"{len(rivals)} metadata files have the number {number}; the newest is taken"]
        if len(rivals) > 1
        else []
    )
    return entry, doubts


def _rank(candidate: tuple[int, bool, TableEntry]) -> tuple[int, int, str]:
    number, _, entry = candidate
    return number, entry.mtime_us, entry.name


def _hinted(entries: Sequence[TableEntry], folder: str, access: TableAccess) -> str | None:
    """Return the file that `version-hint.text` names in full.

    A mere number, which is all that goes with `v3.metadata.json`, says no more than the listing:
    a file of a higher number is committed too.
    """
    if all(entry.name != VERSION_HINT for entry in entries):
        return None
    hint = access.read(joined(folder, VERSION_HINT), start=0, length=_HINT_BYTES)
    text = hint.decode("utf-8", "replace").strip()
    return None if text.isdecimal() or not text else text


def _table_facts(document: Json, root: str, doubts: Sequence[str]) -> TableFacts:
    schema_document = _current(document, "schemas", "current-schema-id", "schema-id") or object_at(
        document, "schema"
    )
    iceberg = IcebergSchema(schema_document)
    properties = object_at(document, "properties")
    snapshot = _snapshot(document)
    shown = shown_properties(properties, without=_NO_SETTINGS)
    if order := _sort_order(document, iceberg.names):
        shown["sort_order"] = order
    rows, rows_exact = _rows(snapshot)
    summary = object_at(snapshot, "summary")
    empty = 0 if not snapshot else None
    return TableFacts(
        format=ICEBERG,
        schema=iceberg.schema,
        description=short_text(properties.get("comment")),
        partitioning=_partitioning(document, iceberg.names),
        keys=_keys(schema_document, iceberg.names),
        properties=shown,
        version=str(snapshot["snapshot-id"]) if snapshot else None,
        rows=rows,
        rows_exact=rows_exact,
        files=_total(summary, "total-data-files", empty),
        size_bytes=_total(summary, "total-files-size", empty),
        last_modified_us=_micros(snapshot.get("timestamp-ms"))
        or _micros(document.get("last-updated-ms")),
        observations=_observations(document, snapshot, iceberg.names),
        warnings=(*iceberg.warnings, *doubts, *_warnings(document, snapshot, root)),
    )


def _view_facts(document: Json, doubts: Sequence[str]) -> TableFacts:
    version = _current(document, "versions", "current-version-id", "version-id")
    schemas = objects_at(document, "schemas")
    wanted = version.get("schema-id")
    schema = next((one for one in schemas if one.get("schema-id", 0) == wanted), {})
    iceberg = IcebergSchema(schema)
    properties = object_at(document, "properties")
    dialects = {short_text_at(one, "dialect") for one in objects_at(version, "representations")}
    return TableFacts(
        format=ICEBERG,
        schema=iceberg.schema,
        description=short_text(properties.get("comment")),
        properties=shown_properties(properties, without=_NO_SETTINGS),
        version=str(count_of(document.get("current-version-id"))),
        last_modified_us=_micros(version.get("timestamp-ms")),
        observations={"view": True, "dialects": [*sorted(one for one in dialects if one)]},
        warnings=(*iceberg.warnings, *doubts),
    )


def _current(document: Json, many: str, chosen: str, own: str) -> Json:
    """Return the member of a list whose id is the chosen one."""
    wanted = document.get(chosen)
    return next((one for one in objects_at(document, many) if one.get(own, 0) == wanted), {})


def _snapshot(document: Json) -> Json:
    """Return the current snapshot; an empty object where the table never had one."""
    wanted = document.get("current-snapshot-id")
    if wanted in (None, -1):
        return {}
    found = _current(document, "snapshots", "current-snapshot-id", "snapshot-id")
    if not found:
        raise UnreadableItemError("its metadata is damaged: the current snapshot is not in it")
    return found


def _partitioning(document: Json, names: dict[int, str]) -> tuple[PartitionField, ...]:
    spec = _current(document, "partition-specs", "default-spec-id", "spec-id")
    members = objects_at(spec, "fields") or objects_at(document, "partition-spec")
    parts = []
    for member in members:
        transform, source = short_text_at(member, "transform"), _sources(member, names)
        if transform and transform != "void":  # what a dropped partition field leaves behind
            parts.append(PartitionField(short_text_at(member, "name") or source, transform, source))
    return tuple(parts)


def _sources(member: Json, names: dict[int, str]) -> str:
    listed = list_at(member, "source-ids") or [member.get("source-id")]
    found = [names.get(one, f"field {one}") for one in map(count_of, listed) if one is not None]
    return ", ".join(found)


def _sort_order(document: Json, names: dict[int, str]) -> str:
    order = _current(document, "sort-orders", "default-sort-order-id", "order-id")
    shown = []
    for member in objects_at(order, "fields"):
        transform, source = short_text_at(member, "transform"), _sources(member, names)
        term = source if transform in (None, "identity") else f"{transform}({source})"
        shown.append(f"{term} {member.get('direction')} {member.get('null-order')}")
    return ", ".join(shown)


def _keys(schema: Json, names: dict[int, str]) -> tuple[str, ...]:
    ids = map(count_of, list_at(schema, "identifier-field-ids"))
    found = (names.get(one) for one in ids if one is not None)
    return tuple(dict.fromkeys(name for name in found if name))


def _rows(snapshot: Json) -> tuple[int | None, bool]:
    """Return the rows and whether that is exact; deletes not yet applied make it a guess."""
    if not snapshot:
        return 0, True
    summary = object_at(snapshot, "summary")
    records = count_of(summary.get("total-records"))
    if records is None:
        return None, False
    by_position = count_of(summary.get("total-position-deletes")) or 0
    by_value = count_of(summary.get("total-equality-deletes")) or 0
    files = count_of(summary.get("total-delete-files")) or 0
    return max(0, records - by_position), not (by_position or by_value or files)


def _total(summary: Json, name: str, empty: int | None) -> int | None:
    return empty if empty is not None else count_of(summary.get(name))


def _micros(millis: object) -> int | None:
    known = count_of(millis)
    return known * 1_000 if known is not None and known <= _LARGEST_MILLIS else None


def _observations(document: Json, snapshot: Json, names: dict[int, str]) -> dict[str, JsonValue]:
    observed: dict[str, JsonValue] = {}
    if (version := count_of(document.get("format-version"))) is not None:
        observed["format_version"] = version
    if table_id := short_text_at(document, "table-uuid"):
        observed["table_id"] = table_id
    if operation := short_text_at(object_at(snapshot, "summary"), "operation"):
        observed["operation"] = operation
    if refs := object_at(document, "refs"):
        observed["refs"] = {name: _shown_ref(as_object(refs[name], name)) for name in sorted(refs)}
    if distinct := _distinct_values(document, snapshot, names):
        observed["distinct_values"] = distinct
    return observed


def _shown_ref(ref: Json) -> dict[str, JsonValue]:
    snapshot = count_of(ref.get("snapshot-id"))
    return {"type": short_text_at(ref, "type"), "snapshot": str(snapshot)}


def _distinct_values(document: Json, snapshot: Json, names: dict[int, str]) -> dict[str, JsonValue]:
    """Return how many distinct values columns have, where somebody counted them."""
    counted: dict[str, JsonValue] = {}
    for statistics in objects_at(document, "statistics"):
        if statistics.get("snapshot-id") != snapshot.get("snapshot-id"):
            continue
        for blob in objects_at(statistics, "blob-metadata"):
            ids = list_at(blob, "fields")
            number = count_of(object_at(blob, "properties").get("ndv"))
            if len(ids) == 1 and number is not None:
                column = count_of(ids[0])
                if column in names:
                    counted[names[column]] = number
    return counted


def _warnings(document: Json, snapshot: Json, root: str) -> list[str]:
    warnings = []
    version = count_of(document.get("format-version"))
    if version is None or version > _NEWEST_FORMAT:
        warnings.append(f"its format version {version} is not known; parts may be missing")
    location = (short_text_at(document, "location") or "").rstrip("/")
    if root and location and location.rpartition("/")[2] != root.rpartition("/")[2]:
        warnings.append(
            "its metadata names another location: it was copied, or its data is elsewhere"
        )
    properties = object_at(document, "properties")
    for name in ("write.data.path", "write.object-storage.path", "write.folder-storage.path"):
        path = (short_text(properties.get(name)) or "").rstrip("/")
        if path and location and not f"{path}/".startswith(f"{location}/"):
            warnings.append("its data files are kept outside of its folder")
            break
    if snapshot and count_of(object_at(snapshot, "summary").get("total-records")) is None:
        warnings.append("its current snapshot has no totals: rows are not known")
    return warnings
