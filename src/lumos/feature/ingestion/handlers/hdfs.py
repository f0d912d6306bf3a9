"""Files in HDFS."""

from __future__ import annotations

from typing_extensions import override

from lumos.core.storage.hdfs import HdfsAccess, HdfsSource
from lumos.feature.ingestion.handlers.object_settings import shared_values
from lumos.feature.ingestion.handlers.storage_handler import FileSettings, StorageHandler


class HdfsSettings(HdfsAccess, FileSettings):
    """Which files of an HDFS to read, and how to get at them."""


class HdfsHandler(StorageHandler[HdfsSettings]):
    """Reads files of HDFS."""

    source_type = "hdfs"
    settings_model = HdfsSettings

    @override
    def storages(self) -> tuple[HdfsSource]:
        return (HdfsSource(name=self.name, **shared_values(self.settings, HdfsAccess)),)
