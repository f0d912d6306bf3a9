"""Parquet files by path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field
from typing_extensions import override

from lumos.feature.ingestion.handlers.base_ingestion_handler import (
    BaseIngestionHandler,
    SourceSettings,
)
from lumos.feature.ingestion.local_files import PARQUET_PATTERNS, LocalFiles

if TYPE_CHECKING:
    from lumos.feature.ingestion.records import ScanRecord, ScanUnit


class ParquetSettings(SourceSettings):
    """Where Parquet files lie."""

    path: Path = Field(description="A Parquet file, or a folder searched for them at any depth.")


class ParquetHandler(BaseIngestionHandler[ParquetSettings]):
    """Reads local Parquet files, each as one dataset, under the names that `local` gives them."""

    source_type = "parquet"
    settings_model = ParquetSettings

    @override
    def plan(self) -> Iterator[ScanUnit]:
        yield self._files().unit(source=self.name)

    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        yield from self._files().records(unit, source=self.name)

    def _files(self) -> LocalFiles:
        return LocalFiles(self._settings.path, patterns=PARQUET_PATTERNS, exclude=())
