"""Files of the local file system."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import Field
from typing_extensions import override

from lumos.core.storage.local import FollowSymlinks, LocalSource
from lumos.feature.ingestion.handlers.storage_handler import FileSettings, StorageHandler

FOLLOW_SYMLINKS: FollowSymlinks = Field(
    default="inside",
    description="`inside` follows symlinks that lead to something below the path; others are "
    "named and skipped. `all` follows every symlink.",
)
ROOT: str | None = Field(
    default=None,
    min_length=1,
    description="What the URNs of its datasets begin with, wherever the folder lies: "
    "`lumos://local/ROOT/…`. By default the `name` of the source, else the last folder of `path`.",
)
"""The settings that all sources of local files have."""


class LocalSettings(FileSettings):
    """Which local files to read."""

    path: Path = Field(
        description="A folder, searched at any depth, or one file; a relative path begins at the "
        "settings file."
    )
    root: str | None = ROOT
    follow_symlinks: FollowSymlinks = FOLLOW_SYMLINKS


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
                root=self.settings.root,
                patterns=self.settings.patterns,
                exclude=self.settings.exclude,
                follow_symlinks=self.settings.follow_symlinks,
            ),
        )

    @override
    def event_folders(self) -> tuple[LocalSource]:
        return self.storages()
