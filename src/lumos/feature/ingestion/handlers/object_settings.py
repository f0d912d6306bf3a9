"""What the settings of all object storages have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from lumos.feature.ingestion.handlers.storage_handler import FileSettings

if TYPE_CHECKING:
    from pydantic import BaseModel


class BucketSettings(FileSettings):
    """Which files of which buckets to read."""

    bucket: str | None = Field(default=None, min_length=1, description="The bucket to look into.")
    buckets: tuple[str, ...] = Field(
        default=(), description="Several buckets, in place of one; prefixes count for each."
    )

    @model_validator(mode="after")
    def _one_or_several(self) -> Self:
        if (self.bucket is None) == (not self.buckets):
            raise ValueError("give either bucket or buckets")
        if len(set(self.buckets)) < len(self.buckets):
            raise ValueError("buckets names a bucket twice")
        return self

    def named_buckets(self) -> dict[str, str]:
        """Return each bucket as a separate source with its name."""
        if self.bucket is not None:
            return {self.name: self.bucket}
        return {f"{self.name}/{bucket}": bucket for bucket in self.buckets}


def shared_values(settings: FileSettings, access: type[BaseModel]) -> dict[str, Any]:
    """Return what settings say on access and files, as a storage's source takes it."""
    values = {name: getattr(settings, name) for name in access.model_fields}
    return {**values, "patterns": settings.patterns, "exclude": settings.exclude}
