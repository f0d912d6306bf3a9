"""Whether the partition that a run is about arrived, on time and with the schema of its dataset."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from lumos.core.changes import diff_datasets
from lumos.core.errors import ConfigurationError, SourceError
from lumos.core.models import LumosDataset, Schema, Urn, with_parts
from lumos.feature.discovery.drift import moment_of
from lumos.feature.discovery.merging import SchemaVariant, merge_schemas
from lumos.feature.discovery.run_partition import (
    Arrival,
    PartitionArrival,
    late_or_missing,
    partition_prefix,
)
from lumos.feature.ingestion.results import IngestedPartition
from lumos.feature.versioning.reported_change import ReportedChange
from lumos.spark.partitioned import (
    DatasetKey,
    PartitionFiles,
    documents_of,
    folders_above,
    partition_files,
    schemas_of,
)

if TYPE_CHECKING:
    from lumos.core.models import Change
    from lumos.core.run_report import RunRecorder
    from lumos.feature.ingestion.scan.sources import ScanSource
    from lumos.spark.file_index import IndexTables

_DIGITS: Final = {
    "%Y": "[0-9]{4}", "%m": "[0-9]{2}", "%d": "[0-9]{2}", "%H": "[0-9]{2}", "%M": "[0-9]{2}",
    "%S": "[0-9]{2}", "%-m": "[0-9]{1,2}", "%-d": "[0-9]{1,2}", "%-H": "[0-9]{1,2}",
    "%-M": "[0-9]{1,2}", "%-S": "[0-9]{1,2}", "%%": "%",
}  # fmt: skip
_DIRECTIVE = re.compile(r"(%-?.)")
_HARMLESS: Final = frozenset({"null.tightened"})
"""What a partition may do though the dataset does not: promise more than all of it does."""


class MissingPartitionError(SourceError):
    """A partition that a run expects has no files."""

    code = "LUM-225"


class PartitionedSource(NamedTuple):
    """A storage of a source, and how its partitions are called."""

    entry: str
    name: str
    scanned: ScanSource
    format: str
    delay: timedelta | None

    @property
    def pattern(self) -> str:
        return path_pattern(self.format)

    def partition(self, timestamp: datetime) -> str:
        return partition_prefix(self.format, timestamp).rstrip("/")


class PartitionCheck:
    """Looks at the partition of each dataset before anything of the run is published."""

    def __init__(
        self,
        sources: Sequence[PartitionedSource],
        timestamp: datetime,
        *,
        before: IndexTables | None,
        now: datetime,
    ) -> None:
        self._sources = sources
        self._timestamp = timestamp
        self._before = before
        self._now = now
        self.found: list[IngestedPartition] = []
        self.told: list[str] = []

    def __call__(self, now: IndexTables, recorder: RunRecorder) -> None:
        """Put the state of every partition into the report."""
        for text in self.told:
            recorder.warning(text)
        for source in self._sources:
            partition = source.partition(self._timestamp)
            files = partition_files(now, source.name, pattern=source.pattern, partition=partition)
            if not files:
                recorder.warning(f"source {source.name}: no dataset has {source.format} partitions")
            drift = self._drift(now, files)
            for each in files:
                self._record(each, source, drift=drift.get(each.key, ()), recorder=recorder)

    def _record(
        self,
        files: PartitionFiles,
        source: PartitionedSource,
        *,
        drift: Sequence[Change],
        recorder: RunRecorder,
    ) -> None:
        arrival = self._arrival(files, source)
        name = arrival.partition.rstrip("/")
        message = f"{arrival.message}; the newest is {files.newest}"
        match arrival.arrival:
            case Arrival.MISSING:
                error = MissingPartitionError(message, hint="look at what writes the dataset")
                recorder.failed(files.urn, error, scope_seen=True)
            case Arrival.NOT_DUE:
                recorder.skipped(files.urn, reason=message)
            case Arrival.LATE:
                recorder.warning(f"{files.urn}: {arrival.message}")
            case Arrival.ON_TIME:
                pass
        for change in drift:
            told = f"{change.level} {change.message} ({change.rule})"
            recorder.warning(f"{files.urn}: partition {name}: {told}")
        self.found.append(
            IngestedPartition(
                dataset=Urn(files.urn),
                partition=name,
                state=arrival.arrival.value,
                due=arrival.due,
                written=arrival.written,
                files=files.files,
                newest=files.newest,
                changes=tuple(map(ReportedChange.of, drift)),
            )
        )

    def _arrival(self, files: PartitionFiles, source: PartitionedSource) -> PartitionArrival:
        prefix = partition_prefix(source.format, self._timestamp)
        written = None if files.first_us is None else moment_of(files.first_us)
        zone = self._timestamp.tzinfo
        (arrival,) = late_or_missing(
            {prefix: written.astimezone(zone)} if written else {},
            source.format,
            timestamp=self._timestamp,
            now=self._now.astimezone(zone),
            grace=source.delay or timedelta(0),
        )
        if arrival.arrival is Arrival.LATE and source.delay is None:
            return arrival._replace(arrival=Arrival.ON_TIME)  # nobody said when it has to come
        return arrival

    def _drift(
        self, now: IndexTables, files: Iterable[PartitionFiles]
    ) -> Mapping[DatasetKey, tuple[Change, ...]]:
        """Return how the schemas of partitions differ from those of their datasets so far."""
        doubtful = [each for each in files if each.fingerprints]
        if not doubtful:
            return {}
        keys = [each.key for each in doubtful]
        schemas = schemas_of(now, (one for each in doubtful for one in each.fingerprints))
        documents = documents_of(now, keys)
        if self._before is not None:
            documents |= documents_of(self._before, keys)
        return {
            each.key: _changes(
                documents[each.key],
                [schemas[one] for one in each.fingerprints],
            )
            for each in doubtful
        }


def path_pattern(format_: str) -> str:
    """Return what fits a path with a partition: the folder above it, and the partition itself.

    Raises:
        ConfigurationError: the format is invalid; the message says where.
    """
    partition_prefix(format_, datetime(2000, 1, 1, tzinfo=UTC))
    pieces = _DIRECTIVE.split(format_.strip("/"))
    spelled = "".join(_DIGITS.get(piece) or re.escape(piece) for piece in pieces)
    return f"^(?:(.*?)/)?({spelled})/"


def partition_folders(
    before: IndexTables, sources: Sequence[PartitionedSource], timestamp: datetime
) -> dict[str, tuple[bytes, ...]] | None:
    """Return the folders of the partition; None where a source was never looked into."""
    under: dict[str, tuple[bytes, ...]] = {}
    for source in sources:
        if not before.knows(source.name):
            return None
        partition = source.partition(timestamp).encode()
        above = folders_above(before, source.name, pattern=source.pattern)
        if above:
            under[source.name] = tuple(
                folder + b"/" + partition if folder else partition for folder in above
            )
    if not under:
        formats = ", ".join(sorted({source.format for source in sources}))
        raise ConfigurationError(
            f"no dataset has partitions of the form {formats}",
            hint="check partitioning_format; lumos show DATASET shows how a dataset is partitioned",
        )
    return under


def _changes(document: str, schemas: Sequence[str]) -> tuple[Change, ...]:
    """Return how a partition with these schemas differs from its dataset."""
    dataset = LumosDataset.from_json(orjson.loads(document))
    merged = merge_schemas(
        SchemaVariant(Schema.from_json(orjson.loads(text))) for text in schemas
    ).schema
    here = {field.name for field in merged.fields}
    keys = set(dataset.location.partition_keys) if dataset.location else set()
    added = [
        field for field in dataset.schema.fields if field.name in keys and field.name not in here
    ]
    schema = merged.model_copy(update={"fields": (*merged.fields, *added)})
    changes = diff_datasets(dataset, with_parts(dataset, schema=schema))
    return tuple(change for change in changes if change.rule not in _HARMLESS)
