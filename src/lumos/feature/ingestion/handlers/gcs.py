"""Files in Google Cloud Storage."""

from __future__ import annotations

from typing_extensions import override

from lumos.core.storage.gcs import GcsAccess, GcsSource
from lumos.feature.ingestion.handlers.object_settings import BucketSettings, shared_values
from lumos.feature.ingestion.handlers.storage_handler import StorageHandler


class GcsSettings(GcsAccess, BucketSettings):
    """Which files of which buckets to read, and how to get at them."""


class GcsHandler(StorageHandler[GcsSettings]):
    """Reads files of Google Cloud buckets."""

    source_type = "gcs"
    settings_model = GcsSettings

    @override
    def storages(self) -> tuple[GcsSource, ...]:
        shared = shared_values(self.settings, GcsAccess)
        return tuple(
            GcsSource(name=name, bucket=bucket, **shared)
            for name, bucket in self.settings.named_buckets().items()
        )
