"""Reads tables from a folder or from memory, and notes what was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.tables import TableEntry


class FolderAccess:
    """Access to the files below a folder."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.lists: list[str] = []
        self.reads: list[str] = []

    def list(self, folder: str) -> Iterable[TableEntry]:
        self.lists.append(folder)
        path = self.base / folder
        found = [entry for entry in path.iterdir() if entry.is_file()] if path.is_dir() else []
        return [
            TableEntry(one.name, one.stat().st_size, one.stat().st_mtime_ns // 1_000)
            for one in found
        ]

    def read(self, path: str, *, start: int = 0, length: int | None = None) -> bytes:
        self.reads.append(path)
        try:
            with (self.base / path).open("rb") as stream:
                stream.seek(start)
                return stream.read(-1 if length is None else length)
        except OSError:
            raise UnreadableItemError("it is gone or may not be read") from None


class MemoryAccess:
    """Access to files that a test made up; all were written at the same moment."""

    MTIME_US = 1_700_000_000_000_000

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)
        self.reads: list[str] = []

    @classmethod
    def of_folder(cls, base: Path) -> MemoryAccess:
        paths = [path for path in base.rglob("*") if path.is_file()]
        return cls({str(path.relative_to(base)): path.read_bytes() for path in paths})

    def list(self, folder: str) -> Iterable[TableEntry]:
        start = f"{folder}/" if folder else ""
        for path, content in self.files.items():
            name = path.removeprefix(start)
            if path.startswith(start) and "/" not in name:
                yield TableEntry(name, len(content), self.MTIME_US)

    def read(self, path: str, *, start: int = 0, length: int | None = None) -> bytes:
        self.reads.append(path)
        if path not in self.files:
            raise UnreadableItemError("it is gone or may not be read")
        content = self.files[path]
        return content[start : len(content) if length is None else start + length]
