"""The records of a source as flat rows, the form in which they come back from executors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from lumos.core.errors import LumosError
from lumos.core.models import LineageEdge, LumosDataset, Observation
from lumos.core.models.base import canonical_json
from lumos.core.platform.entities import kind_of, name_of
from lumos.core.run_report import FOUND_TWICE
from lumos.feature.ingestion.records import (
    ScanMark,
    ScannedScope,
    ScanRecord,
    ScanUnit,
    ScanWarning,
    SkippedItem,
    Statement,
    UnlistedPart,
    UnreadableItem,
    printable,
)
from lumos.spark.stages.rows import (
    DATASET,
    EDGE,
    MARK,
    OBSERVATION,
    SCOPE,
    SKIPPED,
    UNLISTED_PART,
    UNREADABLE,
    WARNING,
    ScannedRow,
)

if TYPE_CHECKING:
    from lumos.feature.ingestion.handlers.base_ingestion_handler import RecordHandler


def scan_unit(handler: RecordHandler, unit: ScanUnit, *, number: int = 0) -> Iterator[ScannedRow]:
    """Yield one row for each record of a unit, in one attempt.

    Raises:
        LumosError: the rest of the unit cannot be scanned.
    """
    rows = (_row(record, handler.name, number) for record in handler.records(unit))
    yield from each_dataset_once(rows, set())


def found_twice(row: ScannedRow) -> ScannedRow:
    """Return what is reported of a dataset that its source found before."""
    return ScannedRow(SKIPPED, row.source, row.unit, row.key, urn=row.urn, reason=FOUND_TWICE)


def each_dataset_once(rows: Iterable[ScannedRow], seen: set[str]) -> Iterator[ScannedRow]:
    for row in rows:
        if row.kind != DATASET:
            yield row
        elif row.key in seen:
            yield found_twice(row)
        else:
            seen.add(row.key)
            yield row


def _row(record: ScanRecord, source: str, unit: int) -> ScannedRow:
    match record:
        case ScannedScope(urn_prefix=prefix):
            return ScannedRow(SCOPE, source, unit, str(prefix))
        case ScanMark(key=key, value=value):
            return ScannedRow(MARK, source, unit, printable(key), document=printable(value))
        case UnreadableItem(item=item, error=error, urn=urn):
            return problem(UNREADABLE, source, unit, item=item, error=error, urn=urn)
        case UnlistedPart(item=item, error=error):
            return problem(UNLISTED_PART, source, unit, item=item, error=error)
        case SkippedItem(item=item, reason=text):
            return ScannedRow(SKIPPED, source, unit, printable(item), reason=printable(text))
        case ScanWarning(item=item, text=text):
            return ScannedRow(WARNING, source, unit, printable(item), reason=printable(text))
    try:
        return _said(record, source, unit)
    except LumosError as error:  # of one record; the others go on
        about = record.urn if isinstance(record, LumosDataset) else None
        item = about or type(record).__name__
        return problem(UNREADABLE, source, unit, item=item, error=error, urn=about)


def _said(record: Statement, source: str, unit: int) -> ScannedRow:
    urn: str | None = None
    kind: str
    match record:
        case LumosDataset():
            kind, key, urn = DATASET, str(record.urn), str(record.urn)
        case LineageEdge():
            kind, key = EDGE, canonical_json(list(map(str, record.key))).decode()
        case Observation():
            urn = str(record.urn)
            parts = [urn, record.kind.value, record.at.isoformat()]
            kind, key = OBSERVATION, canonical_json(parts).decode()
        case _:
            kind, key = kind_of(record), str(name_of(record))
    content = canonical_json(record.to_json())
    digest = hashlib.sha256(content).hexdigest()
    return ScannedRow(kind, source, unit, key, urn, digest, content.decode())


def problem(
    kind: str, source: str, unit: int, *, item: str, error: LumosError, urn: str | None = None
) -> ScannedRow:
    return ScannedRow(
        kind,
        source,
        unit,
        printable(item),
        urn=urn,
        reason=printable(error.message),
        code=error.code,
        hint=error.hint and printable(error.hint),
        retryable=error.retryable,
    )
