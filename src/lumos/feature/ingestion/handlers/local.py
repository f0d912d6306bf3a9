"""Files of the local file system."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import Field
from typing_extensions import override

from lumos.core.storage.local import LocalSource
from lumos.feature.ingestion.handlers.storage_handler import FileSettings, StorageHandler


class LocalSettings(FileSettings):
    """Which local files to read."""

    path: Path = Field(
        description="A folder, searched at any depth, or one file; a relative path begins at the "
        "settings file."
    )


class LocalHandler(StorageHandler[LocalSettings]):
    """Reads local files."""

    source_type = "local"
    settings_model = LocalSettings

    @override
    def storages(self) -> tuple[LocalSource]:
        return (
            LocalSource(
                name=self.name,
                path=os.path.abspath(self.settings.path.expanduser()),
                patterns=self.settings.patterns,
                exclude=self.settings.exclude,
            ),
        )
