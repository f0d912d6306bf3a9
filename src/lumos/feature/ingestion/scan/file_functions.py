"""What the pipeline does with files, put together from the features; none of it knows Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import orjson
from pydantic import ValidationError

import lumos
from lumos.core.errors import LumosError, NotTabularError, UnreadableItemError
from lumos.core.formats.fact_rows import FactsRow
from lumos.core.formats.sandbox import close_shared_sandboxes
from lumos.core.formats.tables import TableFacts
from lumos.core.formats.tables.marks import TABLE_FORMATS, inside_table, table_of_path
from lumos.core.models import LumosDataset, with_parts
from lumos.core.models.base import canonical_json, describe_validation_error, sha256_of
from lumos.core.models.origin import FOLDER, ORIGIN
from lumos.core.storage.port import SkippedLink, UnlistedPrefix, printable
from lumos.core.storage.reading import ReadItem, read_rows
from lumos.feature.discovery.assembling import dataset_names
from lumos.feature.discovery.building import FILE_LIST, FoundDataset, dataset_of_group
from lumos.feature.discovery.fold import DatasetFold, FileProblems
from lumos.feature.discovery.grouping import grouped, grouping_text, kept_names
from lumos.feature.discovery.tables import table_dataset, table_parts
from lumos.feature.discovery.unseen import UNSEEN
from lumos.spark.stages.rows import (
    FILE_PART,
    OUTSIDE_LINK,
    BuiltDataset,
    FileRow,
    ItemToRead,
    ListedFile,
    ReadOutcome,
    RowPlace,
)

if TYPE_CHECKING:
    from pathlib import Path

    from lumos.core.storage.port import Storage, StorageSource
    from lumos.core.storage.sealed import SealedSource
    from lumos.feature.discovery.datasets import SourceRoot
    from lumos.feature.discovery.path_specs import PathSpecs
    from lumos.feature.ingestion.scan.sources import ScanSource
    from lumos.spark.stages.datasets import DatasetPieces

READERS = f"{lumos.__version__}/8"
"""Changes with everything that places and reads files; the number is for changes in between."""
OWN_EXTENSIONS = frozenset({ORIGIN, "schema_drift", FILE_LIST, "file_problems", "table", UNSEEN})
"""The extensions that every ingestion says anew."""
_NO_PARTITION = "[]"
_MOST_SCHEMA_BYTES = 64 * 1024 * 1024
_Document = dict[str, Any]
_Builder = tuple[str, str | None, Callable[[], FoundDataset]]


@dataclass(frozen=True)
class StorageFunctions:
    """The functions of a pipeline over storages; they travel to the executors."""

    sources: Mapping[str, ScanSource]
    table_formats: Sequence[str] = TABLE_FORMATS
    kept_groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What datasets of groups of files were called before, by source and group."""

    @classmethod
    def of(
        cls,
        sources: Mapping[str, ScanSource],
        *,
        folder: Path,
        kept_groups: Mapping[str, Mapping[str, str]] | None = None,
    ) -> StorageFunctions:
        """Return functions without credentials, which a private folder of the run keeps."""
        sealed = {name: source.sealed(folder) for name, source in sources.items()}
        return cls(sealed, kept_groups=kept_groups or {})

    def list_unit(self, source: str, unit: str) -> Iterator[ListedFile]:
        """List a unit where the executor runs; files of a table's log get its path."""
        for found in _opened(self.sources[source].storage).list(unit):
            if isinstance(found, UnlistedPrefix):
                yield ListedFile(source, found.path, None, None, error=found.error.message)
                continue
            if isinstance(found, SkippedLink):
                yield ListedFile(source, found.path, None, None, kind=OUTSIDE_LINK)
                continue
            path, size, mtime_us, etag = found
            mark = table_of_path(path.decode("utf-8", "surrogateescape"))
            if mark is None:
                yield ListedFile(source, path, size, mtime_us, etag)
            else:
                root = mark.root.encode("utf-8", "surrogateescape")
                yield ListedFile(source, root, size, mtime_us, etag, mark.kind, mark.is_anchor)

    def fingerprint_unit(self, source: str, unit: str) -> str | None:
        """Return a digest that differs whenever a listing of the unit would; None if unknown."""
        return _opened(self.sources[source].storage).fingerprint(unit)

    def in_tables(self, tables: Iterable[tuple[str, bytes, str]]) -> Callable[[str, bytes], bool]:
        """Return a predicate: is the path under a table root?"""
        roots: dict[str, dict[str, str]] = {}
        for source, path, kind in tables:
            roots.setdefault(source, {})[path.decode("utf-8", "surrogateescape")] = kind

        def is_in_table(source: str, path: bytes) -> bool:
            text = path.decode("utf-8", "surrogateescape")
            return inside_table(text, roots.get(source, {})) is not None

        return is_in_table

    def read_items(self, items: Iterable[ItemToRead]) -> Iterator[tuple[ItemToRead, ReadOutcome]]:
        """Read files and tables in a child process: none of them can end the executor."""
        by_source: dict[str, list[tuple[ItemToRead, RowPlace]]] = {}
        for item in items:
            try:
                place = _place(item, self.sources[item.source].path_specs)
            except Exception as error:  # noqa: BLE001 - one path must not end the run
                yield item, ReadOutcome(reason=_reason(error))
                continue
            if place is None:
                yield item, ReadOutcome(skipped="")
            else:
                by_source.setdefault(item.source, []).append((item, place))
        schemas = TaskSchemas()
        for source, placed in by_source.items():
            scanned = self.sources[source]
            wanted = (ReadItem(item.path, item.size, item.kind) for item, _ in placed)
            answers = read_rows(wanted, _opened(scanned.storage), value_ranges=scanned.value_ranges)
            for (item, place), answer in zip(placed, answers, strict=True):
                for outcome in _outcomes_or_reason(answer, place, item=item):
                    yield item, schemas.with_schema_once(outcome)

    def new_fold(self) -> ItemFold:
        """Return a fold of no file."""
        return ItemFold()

    def build_datasets(self, pieces: DatasetPieces) -> Iterator[BuiltDataset]:
        """Build the canonical datasets of the files of one name, one for each format.

        One that cannot be built is a row with the reason.
        """
        try:
            builders = self._builders(pieces)
        except Exception as error:  # noqa: BLE001 - one dataset must not end the run
            yield _failed(pieces, "unknown", error)
            return
        for format_, grouping, build in builders:
            try:
                dataset, warnings = build()
                folder = self.sources[pieces.source].root.path
                built = _built(dataset, pieces, folder=folder, warnings=warnings)
                yield built if grouping is None else built._replace(grouping=grouping)
            except Exception as error:  # noqa: BLE001 - one dataset must not end the run
                yield _failed(pieces, format_, error)

    def _builders(self, pieces: DatasetPieces) -> list[_Builder]:
        """Return what builds each dataset of a group of files."""
        fold = ItemFold()
        for state in pieces.states:
            fold.merge(ItemFold.from_bytes(state))
        root = self.sources[pieces.source].root
        parts: tuple[str, ...] = tuple(orjson.loads(pieces.dataset))
        kept = kept_names(self.kept_groups.get(pieces.source, {}).get(pieces.dataset))
        groups = grouped(parts, fold.files.formats, schemas=pieces.schemas, kept=kept)
        formats: dict[tuple[str, ...], list[str]] = {}
        for group in groups:
            formats.setdefault(group.dataset, []).append(group.format)
        formats.setdefault(parts, []).extend(fold.tables)
        builders: list[_Builder] = []
        for group in groups:
            name = dataset_names(group.dataset, formats[group.dataset])[group.format]
            build = partial(
                dataset_of_group,
                root,
                name,
                group=group,
                schemas=pieces.schemas,
                of=parts,
                problems=fold.problems,
            )
            builders.append((group.format, grouping_text(group), build))
        for kind, table in sorted(fold.tables.items()):
            name = dataset_names(parts, formats[parts])[kind]
            build_table = partial(_table, root, name, table=table, pieces=pieces)
            builders.append((kind, None, build_table))
        return builders


class ItemFold:
    """Adds up the files of one dataset; a table that lies under the same name goes along."""

    def __init__(self) -> None:
        self.files = DatasetFold()
        self.tables: dict[str, _Document] = {}
        self.problems = FileProblems()

    def add(self, file: FileRow) -> None:
        """Count one file or table in; of one that cannot be read only that it is there."""
        if file.reason is not None or file.warnings is not None:
            self.problems.add(file.path, is_readable=file.reason is None)
        if file.reason is not None:
            return
        if file.facts is None:
            self.files.add(file)
        else:
            facts = orjson.loads(file.facts)
            self.tables[file.format] = {"fingerprint": file.fingerprint, "facts": facts}

    def merge(self, other: ItemFold) -> None:
        """Count what another fold has in."""
        self.files.merge(other.files)
        self.tables |= other.tables
        self.problems.merge(other.problems)

    def to_bytes(self) -> bytes:
        """Return the state, the same for the same files in whatever order they came."""
        document = {
            "files": self.files.to_bytes().decode(),
            "tables": self.tables,
            "problems": self.problems.as_json(),
        }
        return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)

    @classmethod
    def from_bytes(cls, state: bytes) -> ItemFold:
        """Return the fold of which `to_bytes` made this state."""
        document = orjson.loads(state)
        fold = cls()
        fold.files = DatasetFold.from_bytes(document["files"].encode())
        fold.tables = document["tables"]
        fold.problems = FileProblems.from_json(document["problems"])
        return fold


class TaskSchemas:
    """Gives the first file of a task that has a schema its text, and no other file.

    A reader returns each schema once in its life, which is longer than a task: what was returned
    is remembered here.
    """

    _known: ClassVar[dict[str, str]] = {}
    _bytes: ClassVar[int] = 0

    def __init__(self) -> None:
        self._told: set[str] = set()
        if TaskSchemas._bytes > _MOST_SCHEMA_BYTES:
            close_shared_sandboxes()  # new readers return everything anew
            TaskSchemas._known.clear()
            TaskSchemas._bytes = 0

    def with_schema_once(self, outcome: ReadOutcome) -> ReadOutcome:
        """Return the outcome with the text of its schema, or without."""
        fingerprint = outcome.fingerprint
        if fingerprint is None:
            return outcome
        if outcome.schema is not None and fingerprint not in TaskSchemas._known:
            TaskSchemas._known[fingerprint] = outcome.schema
            TaskSchemas._bytes += len(outcome.schema)
        if fingerprint in self._told:
            return outcome if outcome.schema is None else outcome._replace(schema=None)
        self._told.add(fingerprint)
        return outcome._replace(schema=TaskSchemas._known[fingerprint])


@lru_cache(maxsize=64)
def _opened(source: StorageSource | SealedSource) -> Storage:
    """Open a storage once in each process of an executor, also for one run after the other."""
    return _opened_unsealed(source.unsealed())


@lru_cache(maxsize=64)
def _opened_unsealed(source: StorageSource) -> Storage:
    return source.open()


def _place(item: ItemToRead, path_specs: PathSpecs) -> RowPlace | None:
    text = item.path.decode("utf-8", "backslashreplace")
    if item.kind is not None:
        return RowPlace(_text(table_parts(text)), "", _NO_PARTITION)
    found = path_specs.place(text)
    if found is None:
        return None
    bond = None if found.bond is None else _text([found.bond, *found.alone])
    return RowPlace(_text(found.dataset), found.layout, found.partition, bond)


def _outcomes_or_reason(
    answer: bytes | UnreadableItemError, place: RowPlace, *, item: ItemToRead
) -> list[ReadOutcome]:
    """Return what was read from a file; where that cannot be used, the reason."""
    try:
        return list(_outcomes(answer, place, is_table=item.kind is not None))
    except Exception as error:  # noqa: BLE001 - one file must not end the run
        return [ReadOutcome(place=place, reason=_reason(error))]


def _outcomes(
    answer: bytes | UnreadableItemError, place: RowPlace, *, is_table: bool
) -> Iterator[ReadOutcome]:
    if isinstance(answer, NotTabularError):
        yield ReadOutcome(place=place, skipped=answer.kind)
        return
    if isinstance(answer, UnreadableItemError):
        yield ReadOutcome(place=place, reason=answer.message, retry=answer.retryable)
        return
    facts = orjson.loads(answer)
    if isinstance(facts, list):
        yield _outcome_of_row(FactsRow(*facts), place)
        return
    members = facts.pop("members", None)
    if not members:
        yield _outcome(facts, place, is_table=is_table)
        return
    for part, member in enumerate(members, start=FILE_PART):
        name = str(member.get("name") or part)
        inner = _text((*orjson.loads(place.dataset), name))
        bond = None if place.bond is None else _text((*orjson.loads(place.bond), name))
        yield _outcome(member, place._replace(dataset=inner, bond=bond), is_table=False, part=part)


def _outcome_of_row(row: FactsRow, place: RowPlace) -> ReadOutcome:
    return ReadOutcome(
        FILE_PART,
        place,
        format=row.format,
        fingerprint=row.fingerprint,
        rows=row.rows,
        rows_estimate=row.rows_estimate,
        columns=row.columns,
        dialect=row.dialect,
        warnings=row.warnings,
        schema=row.schema,
    )


def _outcome(
    facts: _Document, place: RowPlace, *, is_table: bool, part: int = FILE_PART
) -> ReadOutcome:
    schema = canonical_json(facts.pop("schema"))
    fingerprint = facts.pop("fingerprint", None) or sha256_of(orjson.loads(schema))
    warnings, columns = facts.get("warnings"), facts.get("columns")
    return ReadOutcome(
        part=part,
        place=place,
        format=facts["format"],
        fingerprint=fingerprint,
        rows=facts.get("rows"),
        rows_estimate=facts.get("rows_estimate"),
        columns=orjson.dumps(columns).decode() if columns else None,
        dialect=_dialect(facts),
        facts=orjson.dumps(facts).decode() if is_table else None,
        warnings=_text(warnings) if warnings else None,
        schema=schema.decode(),
    )


def _dialect(facts: _Document) -> str | None:
    """Say how a file is written; a sheet's name is that of its dataset already."""
    properties = facts.get("properties") or {}
    told = {name: value for name, value in properties.items() if name != "sheet"}
    return _text(told) if told else None


def _table(
    root: SourceRoot, name: tuple[str, ...], *, table: _Document, pieces: DatasetPieces
) -> FoundDataset:
    schema = orjson.loads(pieces.schemas[table["fingerprint"]])
    facts = TableFacts.from_json({**table["facts"], "schema": schema})
    return FoundDataset(table_dataset(root, name, facts=facts), ())


def _failed(pieces: DatasetPieces, format_: str, error: Exception) -> BuiltDataset:
    return BuiltDataset(
        pieces.source, pieces.dataset, "", "", format_, "", None, reason=_reason(error)
    )


def _reason(error: Exception) -> str:
    """Say why something failed, without any value of the data.

    Raises:
        MemoryError: there is not enough memory now; another run may have it.
    """
    if isinstance(error, MemoryError):
        raise error
    if isinstance(error, LumosError):
        return error.message
    if isinstance(error, ValidationError):
        return describe_validation_error(error)
    return f"Lumos cannot describe it ({type(error).__name__})"


def _built(
    dataset: LumosDataset, pieces: DatasetPieces, *, folder: str | None, warnings: Sequence[str]
) -> BuiltDataset:
    origin = {"source": pieces.source, "dataset": pieces.dataset}
    if folder is not None:
        origin[FOLDER] = printable(folder)
    document = with_parts(dataset, extensions={**dataset.extensions, ORIGIN: origin}).to_json()
    return BuiltDataset(
        pieces.source,
        pieces.dataset,
        dataset.urn,
        sha256_of(document),
        dataset.format or "unknown",
        canonical_json(document).decode(),
        _text(warnings) if warnings else None,
    )


def _text(value: Sequence[str | None] | Mapping[str, object]) -> str:
    return canonical_json(value).decode()
