"""Parquet files by path."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import Field
from typing_extensions import override

from lumos.core.storage.local import LocalSource
from lumos.feature.ingestion.handlers.base_ingestion_handler import SourceSettings
from lumos.feature.ingestion.handlers.storage_handler import StorageHandler
from lumos.feature.ingestion.stored_files import PARQUET_PATTERNS


class ParquetSettings(SourceSettings):
    """Where Parquet files lie."""

    path: Path = Field(description="A Parquet file, or a folder searched for them at any depth.")


class ParquetHandler(StorageHandler[ParquetSettings]):
    """Reads local Parquet files, under the names that `local` gives them."""

    source_type = "parquet"
    settings_model = ParquetSettings

    @override
    def storages(self) -> tuple[LocalSource]:
        path = os.path.abspath(self.settings.path.expanduser())
        return (LocalSource(name=self.name, path=path, patterns=PARQUET_PATTERNS),)
