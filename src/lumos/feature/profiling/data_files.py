"""Reads the files of a dataset from beginning to end, as flat columns; runs on executors."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO, Final, cast
from urllib.parse import unquote

from typing_extensions import override

from lumos.core.errors import LumosError, UnreadableItemError
from lumos.core.formats.reader import read_file
from lumos.core.formats.sandbox_io import opened
from lumos.feature.profiling.arrow_batches import ARROW_FORMATS, arrow_batches, flat_batch
from lumos.feature.profiling.csv_batches import CsvRows
from lumos.feature.profiling.record_batches import JsonRecords, avro_records, record_batches
from lumos.spark.stages.profiling import FileProblem, FileToProfile

if TYPE_CHECKING:
    import pyarrow as pa

    from lumos.core.formats.facts import FileFacts
    from lumos.core.storage.port import Storage, StorageSource
    from lumos.core.storage.sealed import SealedSource
    from lumos.feature.profiling.columns import ProfiledColumn

READABLE: Final = ARROW_FORMATS | {"csv", "json", "avro"}
"""The formats whose data can be read."""

_BUFFER_BYTES = 4 * 1024 * 1024
_HEAD_BYTES = 64 * 1024
_NO_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
_ARROW_CODECS: Final = {"gzip": "gzip", "bzip2": "bz2", "zstd": "zstd", "lz4": "lz4"}

Batches = Iterator["pa.RecordBatch"]


@dataclass(frozen=True)
class DataFiles:
    """Reads files of one dataset; it travels to the executors."""

    storage: StorageSource | SealedSource
    format: str
    columns: tuple[ProfiledColumn, ...]
    share: float | None = None
    """The share of rows to take; None for all."""
    seed: int = 0

    def read(self, files: Iterable[FileToProfile]) -> Iterator[pa.RecordBatch | FileProblem]:
        """Yield the rows of all files, and what is wrong with any."""
        storage = self.storage.open()
        for file in files:
            try:
                yield from self._rows(file, storage)
            except LumosError as error:
                yield FileProblem(file.path, error.message, fatal=True)
            except Exception as error:  # noqa: BLE001 - whatever a parser raises is of this file
                # The words of a parser may hold data.
                reason = f"its data cannot be read: {type(error).__name__}"
                yield FileProblem(file.path, reason, fatal=True)

    def _rows(
        self, file: FileToProfile, storage: Storage
    ) -> Iterator[pa.RecordBatch | FileProblem]:
        """Yield the sampled rows of one file, with the columns that its folders name."""
        given = self._columns_of_folders(file.path)
        taken = _Sample(file.path, share=self.share, seed=self.seed)
        with closing(_opened(storage, file)) as stream:
            reading = _Reading(self.format, self.columns, stream=stream, file=file)
            for batch in reading.batches():
                yield _with_folder_values(taken.of(batch), given)
            if remark := reading.remark():
                yield FileProblem(file.path, remark, fatal=False)

    def _columns_of_folders(self, path: bytes) -> dict[str, str | None]:
        """Return the values of `key=value` folders, by flat column."""
        *folders, _ = path.decode("utf-8", "surrogateescape").split("/")
        pairs = (folder.partition("=") for folder in folders if "=" in folder)
        values = {unquote(key).casefold(): unquote(value) for key, _, value in pairs}
        return {
            column.flat.name: None if values[name] == _NO_PARTITION else values[name]
            for column in self.columns
            if len(column.steps) == 1 and (name := column.field.name.casefold()) in values
        }


class _Reading:
    """One file, while its data is read."""

    def __init__(
        self,
        format: str,
        columns: tuple[ProfiledColumn, ...],
        *,
        stream: BinaryIO,
        file: FileToProfile,
    ) -> None:
        self._format = format
        self._columns = columns
        self._stream = stream
        self._file = file
        self._remark: Callable[[], str | None] = lambda: None

    def batches(self) -> Batches:
        if self._format in ARROW_FORMATS:
            return (
                flat_batch(batch, self._columns)
                for batch in arrow_batches(self._stream, self._format)
            )
        if self._format == "avro":
            return record_batches(avro_records(self._stream), self._columns)
        return self._csv() if self._format == "csv" else self._json()

    def remark(self) -> str | None:
        """Say what was left out of a file that was read to its end."""
        return self._remark()

    def _json(self) -> Batches:
        facts = self._facts
        records = JsonRecords(
            self._unpacked(facts),
            layout=facts.properties.get("layout", "lines"),
            encoding=facts.properties.get("encoding", "utf-8"),
        )
        self._remark = lambda: _left_out(records.broken, "that are no JSON")
        return record_batches(records, self._columns)

    def _csv(self) -> Batches:
        facts = self._facts
        encoding = facts.properties.get("encoding", "utf-8")
        head = self._unpacked(facts).read(_HEAD_BYTES).decode(encoding, "replace")
        rows = CsvRows(facts, head=head.removeprefix("\ufeff"))
        self._remark = lambda: _left_out(rows.ragged, "with more or fewer values than columns")
        return rows.batches(self._unpacked(facts), self._columns)

    @cached_property
    def _facts(self) -> FileFacts:
        name = self._file.path.decode("utf-8", "replace")
        return read_file(self._stream, size=self._file.size, name=name)

    def _unpacked(self, facts: FileFacts) -> BinaryIO:
        """Return the content from its beginning, without the archive around it."""
        self._stream.seek(0)
        codec = facts.compression
        if codec is None:
            return self._stream
        if codec == "xz":
            import lzma

            return cast("BinaryIO", lzma.open(self._stream))
        if codec in _ARROW_CODECS:
            import pyarrow as pa

            packed = pa.PythonFile(self._stream, mode="r")
            return cast("BinaryIO", pa.CompressedInputStream(packed, _ARROW_CODECS[codec]))
        raise UnreadableItemError(f"it is packed with {codec}, which is not unpacked for profiling")


class _Sample:
    """Takes rows by chance, always the same of the same file."""

    def __init__(self, path: bytes, *, share: float | None, seed: int) -> None:
        import numpy as np

        self._share = share
        self._chance = np.random.default_rng((seed, zlib.crc32(path)))

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa

        if self._share is None:
            return batch
        return batch.filter(pa.array(self._chance.random(batch.num_rows) < self._share))


class _StorageStream(io.RawIOBase):
    """A file of a storage as a stream that can be read at any place."""

    def __init__(self, storage: Storage, file: FileToProfile) -> None:
        self._storage = storage
        self._file = file
        self._place = 0

    @override
    def readable(self) -> bool:
        return True

    @override
    def seekable(self) -> bool:
        return True

    @override
    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._file.size}[whence]
        self._place = max(0, start + offset)
        return self._place

    @override
    def tell(self) -> int:
        return self._place

    @override
    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        length = min(len(buffer), self._file.size - self._place)
        if length <= 0:
            return 0
        content = self._storage.read(self._file.path, start=self._place, length=length)
        buffer[: len(content)] = content
        self._place += len(content)
        return len(content)


def _opened(storage: Storage, file: FileToProfile) -> BinaryIO:
    if storage.local_folder is None:
        return io.BufferedReader(_StorageStream(storage, file), _BUFFER_BYTES)
    inside = os.path.realpath(storage.local_folder) if storage.is_confined else None
    whole = os.path.join(storage.local_folder, os.fsdecode(file.path))
    try:
        stream, _ = opened(whole, inside=inside)
        return io.BufferedReader(cast("io.RawIOBase", stream))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnreadableItemError(f"it cannot be read: {reason}") from error


def _with_folder_values(batch: pa.RecordBatch, given: Mapping[str, str | None]) -> pa.RecordBatch:
    """Fill the columns that files lack and their folders name."""
    import pyarrow as pa

    for place, name in enumerate(batch.schema.names):
        if name not in given or batch.column(place).null_count < batch.num_rows:
            continue
        type_ = batch.schema.field(place).type
        values = pa.array([given[name]], pa.string()).cast(type_)
        filled = pa.repeat(values[0], batch.num_rows)
        batch = batch.set_column(place, batch.schema.field(place), filled)
    return batch


def _left_out(count: int, what: str) -> str | None:
    noun = "row" if count == 1 else "rows"
    return f"{count:,} {noun} {what} left out" if count else None
