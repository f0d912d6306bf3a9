"""Files in S3, or in a storage that speaks its protocol."""

from __future__ import annotations

from pydantic import Field
from typing_extensions import override

from lumos.core.settings import SettingsModel
from lumos.core.storage.s3 import S3Access, S3Source
from lumos.feature.ingestion.handlers.base_ingestion_handler import EventQueue
from lumos.feature.ingestion.handlers.object_settings import BucketSettings, shared_values
from lumos.feature.ingestion.handlers.storage_handler import StorageHandler


class S3Events(SettingsModel):
    """The queue to which S3 sends notifications on the objects of a bucket."""

    queue_url: str = Field(
        pattern=r"^https?://[^/]+/.+",
        description="The SQS queue that gets the notifications of the bucket.",
    )


class S3Settings(S3Access, BucketSettings):
    """Which files of which buckets to read, and how to get at them."""

    events: S3Events | None = Field(
        default=None,
        description="`queue_url`: the SQS queue with notifications of the bucket, for watching.",
    )


class S3Handler(StorageHandler[S3Settings]):
    """Reads files of S3 buckets."""

    source_type = "s3"
    settings_model = S3Settings

    @override
    def storages(self) -> tuple[S3Source, ...]:
        shared = shared_values(self.settings, S3Access)
        return tuple(
            S3Source(name=name, bucket=bucket, **shared)
            for name, bucket in self.settings.named_buckets().items()
        )

    @override
    def event_queues(self) -> tuple[EventQueue, ...]:
        events = self.settings.events
        return () if events is None else (EventQueue(events.queue_url, self.storages()),)
