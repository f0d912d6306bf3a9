"""Files of the local file system."""

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
from lumos.feature.ingestion.local_files import DATA_PATTERNS, LocalFiles

if TYPE_CHECKING:
    from lumos.feature.ingestion.records import ScanRecord, ScanUnit


class LocalSettings(SourceSettings):
    """Which local files to read."""

    path: Path = Field(description="A folder, searched at any depth, or one file.")
    file_patterns: tuple[str, ...] = Field(
        default=DATA_PATTERNS,
        min_length=1,
        description="Names to read, such as `*.parquet`; one with a slash fits the whole path.",
    )
    exclude: tuple[str, ...] = Field(
        default=(), description="Names or paths, of files or folders, to leave out."
    )


class LocalHandler(BaseIngestionHandler[LocalSettings]):
    """Reads local files, each as one dataset."""

    source_type = "local"
    settings_model = LocalSettings

    @override
    def plan(self) -> Iterator[ScanUnit]:
        yield self._files().unit(source=self.name)

    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        yield from self._files().records(unit, source=self.name)

    def _files(self) -> LocalFiles:
        settings = self._settings
        return LocalFiles(settings.path, patterns=settings.file_patterns, exclude=settings.exclude)
