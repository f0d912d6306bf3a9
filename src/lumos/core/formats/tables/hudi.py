"""Reads a Hudi table from its properties and its timeline; no data file is opened."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import orjson
from pydantic import JsonValue

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.avro import canonical_avro_schema
from lumos.core.formats.tables.facts import IDENTITY, PartitionField, TableFacts
from lumos.core.formats.tables.hudi_timeline import (
    LOG_FOLDER,
    FileGroups,
    Instant,
    archived_commits,
    completed_instants,
    read_instant,
)
from lumos.core.formats.tables.marks import HUDI
from lumos.core.formats.tables.parts import (
    Totals,
    count_of,
    short_text_at,
    shown_properties,
)
from lumos.core.formats.tables.ranges import joined, read_log_document
from lumos.core.json_reading import Json, object_at, text_at
from lumos.core.models import Field, Schema, TypeName

if TYPE_CHECKING:
    from lumos.core.formats.tables.access import TableAccess

_NEWEST_TABLE_VERSION: Final = 9
_FIRST_WITH_TIMELINE_FOLDER: Final = 8
_NO_SETTINGS: Final = frozenset(
    {
        "hoodie.database.name",
        "hoodie.table.checksum",
        "hoodie.table.create.schema",
        "hoodie.table.initial.version",
        "hoodie.table.metadata.partitions",
        "hoodie.table.metadata.partitions.inflight",
        "hoodie.table.name",
        "hoodie.table.version",
        "hoodie.timeline.layout.version",
    }
)
"""What the other facts say already, and what changes with the data."""
_META_COLUMNS: Final = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
_DATE_FORMAT = "hoodie.keygen.timebased.output.dateformat"
_OLD_DATE_FORMAT = "hoodie.deltastreamer.keygen.timebased.output.dateformat"
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ODD_BACKSLASHES = re.compile(r"(?<!\\)(?:\\\\)*\\$")
_PROPERTY = re.compile(r"((?:\\.|[^\\=:\s])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)


def read_hudi(root: str, access: TableAccess) -> TableFacts:
    """Return the facts of the table at a root, from its present timeline.

    Raises:
        UnreadableItemError: the properties or the timeline are damaged or cannot be read.
    """
    path = joined(root, LOG_FOLDER, "hoodie.properties")
    properties = parse_properties(read_log_document(access, path, what="its hoodie.properties"))
    if "hoodie.table.name" not in properties:
        raise UnreadableItemError("its hoodie.properties are damaged: they name no table")
    timeline = _Timeline(root, access, properties)
    schema, description, warnings = _schema(timeline.schema_text, properties)
    totals, exact = timeline.totals, timeline.exact
    return TableFacts(
        format=HUDI,
        schema=schema,
        name=short_text_at(properties, "hoodie.table.name"),
        description=description,
        partitioning=_partitioning(properties),
        keys=_listed(properties.get("hoodie.table.recordkey.fields")),
        properties=shown_properties(properties, without=_NO_SETTINGS),
        version=timeline.newest.start if timeline.newest else None,
        rows=totals.row_count if totals else None,
        rows_exact=exact and totals is not None and totals.exact,
        files=totals.files if totals else None,
        size_bytes=totals.total_bytes if totals else None,
        last_modified_us=timeline.newest.entry.mtime_us if timeline.newest else None,
        observations=_observations(properties, timeline),
        warnings=(*warnings, *timeline.warnings),
    )


class _Timeline:
    """The completed commits that are still in the active timeline, folded."""

    def __init__(self, root: str, access: TableAccess, properties: Mapping[str, str]) -> None:
        self.warnings: list[str] = []
        self.schema_text: str | None = None
        self.totals: Totals | None = None
        self.exact = False
        version = count_of(properties.get("hoodie.table.version"))
        if version is not None and version > _NEWEST_TABLE_VERSION:
            self.warnings.append(f"its table version {version} is not known; parts may be missing")
        self.folder, archive = _folders(properties, version)
        instants = completed_instants(access.list(joined(root, self.folder)), folder=self.folder)
        self.newest: Instant | None = instants[-1] if instants else None
        active = {instant.completed for instant in instants}
        groups = FileGroups()
        entries = list(access.list(joined(root, archive)))
        archived = archived_commits(access, root, entries, folder=archive) if entries else {}
        for completed, commit in (archived or {}).items():
            if completed not in active:
                self._apply(commit, groups)
        for instant in instants:
            self._apply(read_instant(access, root, instant), groups)
        if archived is None:
            self.warnings.append("older commits are archived: rows and files are not known")
            return
        self.totals, logged = groups.totals()
        self.exact = not logged

    def _apply(self, commit: Json, groups: FileGroups) -> None:
        groups.apply(commit)
        self.schema_text = text_at(object_at(commit, "extraMetadata"), "schema") or self.schema_text


def _folders(properties: Mapping[str, str], version: int | None) -> tuple[str, str]:
    """Return the folders of the active and of the archived timeline."""
    if version is not None and version >= _FIRST_WITH_TIMELINE_FOLDER:
        active = joined(LOG_FOLDER, properties.get("hoodie.timeline.path") or "timeline")
        return active, joined(active, properties.get("hoodie.timeline.history.path") or "history")
    archive = properties.get("hoodie.archivelog.folder") or "archived"
    return LOG_FOLDER, joined(LOG_FOLDER, archive)


def _schema(
    text: str | None, properties: Mapping[str, str]
) -> tuple[Schema, str | None, tuple[str, ...]]:
    text = text or text_at(properties, "hoodie.table.create.schema")
    if text is None:
        raise UnreadableItemError(
            "neither its commits nor its hoodie.properties hold a schema",
            hint="it gets one with its first commit",
        )
    try:
        document = orjson.loads(text)
    except ValueError:
        raise UnreadableItemError("the schema in its timeline is not JSON") from None
    schema, description, warnings = canonical_avro_schema(document)
    known = {field.name for field in schema.fields}
    before: tuple[Field, ...] = ()
    if properties.get("hoodie.populate.meta.fields", "true").lower() != "false":
        before = tuple(_text_column(name) for name in _META_COLUMNS if name not in known)
    after = tuple(
        _text_column(part.source) for part in _partitioning(properties) if part.source not in known
    )
    fields = (*before, *schema.fields, *after)
    return Schema(fields=fields), description, warnings


def _text_column(name: str) -> Field:
    return Field(name=name, type=TypeName.STRING, native_type="string")


def _partitioning(properties: Mapping[str, str]) -> tuple[PartitionField, ...]:
    date_format = properties.get(_DATE_FORMAT) or properties.get(_OLD_DATE_FORMAT)
    by_time = "TIMESTAMP" in properties.get("hoodie.table.keygenerator.type", "").upper() or (
        "TimestampBased" in properties.get("hoodie.table.keygenerator.class", "")
    )
    parts = {}
    for entry in _listed(properties.get("hoodie.table.partition.fields")):
        column, _, kind = entry.partition(":")
        transform = IDENTITY
        if kind.upper() == "TIMESTAMP" or (by_time and not kind):
            transform = f"format[{date_format}]" if date_format else "format"
        if column:
            parts[column] = PartitionField(column, transform, column)
    return tuple(parts.values())


def _listed(text: str | None) -> tuple[str, ...]:
    names = (name.strip() for name in (text or "").split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def _observations(properties: Mapping[str, str], timeline: _Timeline) -> dict[str, JsonValue]:
    observed: dict[str, JsonValue] = {}
    if (version := count_of(properties.get("hoodie.table.version"))) is not None:
        observed["format_version"] = version
    if timeline.newest:
        observed["operation"] = timeline.newest.action
        observed["completed"] = timeline.newest.completed
    if database := short_text_at(properties, "hoodie.database.name"):
        observed["database"] = database
    return observed


def parse_properties(content: bytes) -> dict[str, str]:
    """Return the pairs of a properties file of Java; of a name that occurs twice the last holds."""
    pairs = {}
    for line in _logical_lines(content.decode("latin-1")):
        if match := _PROPERTY.fullmatch(line):
            pairs[_unescaped(match[1])] = _unescaped(match[2])
    pairs.pop("", None)
    return pairs


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines without comments, those joined that end with a backslash."""
    pending = ""
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        if _ODD_BACKSLASHES.search(line):
            pending += line[:-1]
            continue
        yield pending + line
        pending = ""
    if pending:
        yield pending


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_character, text)
    # Two escapes may be the halves of one character; a lone half is no text.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) > 1:
        return chr(int(code[1:], 16))
    return _CONTROL.get(code, code)
