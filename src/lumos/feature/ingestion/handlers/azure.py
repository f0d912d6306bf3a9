"""Files in Azure Blob Storage and Data Lake Storage."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator
from typing_extensions import override

from lumos.core.storage.azure import AzureAccess, AzureSource
from lumos.feature.ingestion.handlers.object_settings import shared_values
from lumos.feature.ingestion.handlers.storage_handler import FileSettings, StorageHandler


class AzureSettings(AzureAccess, FileSettings):
    """Which files of which containers to read, and how to get at them."""

    container: str | None = Field(
        default=None, min_length=1, description="The container to look into."
    )
    containers: tuple[str, ...] = Field(
        default=(), description="Several containers, in place of one; prefixes count for each."
    )

    @model_validator(mode="after")
    def _one_or_several(self) -> Self:
        if (self.container is None) == (not self.containers):
            raise ValueError("give either container or containers")
        if len(set(self.containers)) < len(self.containers):
            raise ValueError("containers names a container twice")
        return self


class AzureHandler(StorageHandler[AzureSettings]):
    """Reads files of Azure containers."""

    source_type = "azure"
    settings_model = AzureSettings

    @override
    def storages(self) -> tuple[AzureSource, ...]:
        shared = shared_values(self.settings, AzureAccess)
        if self.settings.container is not None:
            return (AzureSource(name=self.name, container=self.settings.container, **shared),)
        return tuple(
            AzureSource(name=f"{self.name}/{container}", container=container, **shared)
            for container in self.settings.containers
        )
