"""Parquet files by path."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from pydantic import Field
from typing_extensions import override

from lumos.core.storage.local import FollowSymlinks, LocalSource
from lumos.feature.ingestion.handlers.local import FOLLOW_SYMLINKS, ROOT
from lumos.feature.ingestion.handlers.storage_handler import FileSettings, StorageHandler

PARQUET_PATTERNS: Final = ("*.parquet", "*.parq", "*.pq")


class ParquetSettings(FileSettings):
    """Where Parquet files lie."""

    path: Path = Field(
        description="A Parquet file, or a folder searched for them at any depth; a relative path "
        "begins at the settings file."
    )
    root: str | None = ROOT
    follow_symlinks: FollowSymlinks = FOLLOW_SYMLINKS

    @property
    @override
    def patterns(self) -> tuple[str, ...]:
        return self.file_patterns or PARQUET_PATTERNS


class ParquetHandler(StorageHandler[ParquetSettings]):
    """Reads local Parquet files, under the names that `local` gives them."""

    source_type = "parquet"
    settings_model = ParquetSettings

    @override
    def storages(self) -> tuple[LocalSource]:
        return (
            LocalSource(
                name=self.name,
                path=os.path.abspath(self.settings.path.expanduser()),
                root=self.settings.root,
                patterns=self.settings.patterns,
                exclude=self.settings.exclude,
                follow_symlinks=self.settings.follow_symlinks,
            ),
        )

    @override
    def event_folders(self) -> tuple[LocalSource]:
        return self.storages()
