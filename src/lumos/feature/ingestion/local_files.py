"""Files of the local file system, as the pipeline lists them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from lumos.core.storage.local import LocalSource
from lumos.core.storage.port import UnlistedPrefix
from lumos.feature.ingestion.records import UnlistedPart


class LocalFile(NamedTuple):
    """A file as a listing sees it."""

    path: bytes
    """Relative to the folder listed, with `/` between the parts, in the system's own bytes."""
    size: int
    mtime_us: int


class LocalFiles:
    """The files below one path that match a pattern and that nobody hides."""

    def __init__(
        self,
        root: Path,
        *,
        patterns: Sequence[str],
        exclude: Sequence[str],
        skip: Sequence[str] = (),
    ) -> None:
        """Look below a path.

        Args:
            root: a folder, or one file.
            patterns: names, or paths, of files to find.
            exclude: names, or paths, of files and folders to leave out.
            skip: whole paths of folders to leave out, such as the state folder.
        """
        path = os.path.abspath(os.path.expanduser(root))
        self._source = LocalSource(
            name=path,
            path=path,
            patterns=tuple(patterns),
            exclude=tuple(exclude),
            skip=tuple(skip),
        )

    def listing(self) -> Iterator[LocalFile | UnlistedPart]:
        """Yield every file with its size and time, and what could not be listed.

        Raises:
            SourceError: the path is gone since the scan was planned.
        """
        for found in self._source.open().list(""):
            if isinstance(found, UnlistedPrefix):
                yield UnlistedPart(found.shown, found.error)
            else:
                yield LocalFile(found.path, found.size, found.mtime_us)
