"""JSON documents in a folder; no error of the file system gets out of here as it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import JsonValue

from lumos.core.errors import PlatformError


class JsonFiles:
    """One file for each document, found by a name that may be any text."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, document: JsonValue) -> None:
        """Keep a document in place of the one of that name, as a whole or not at all."""
        text = json.dumps(document, indent=2, sort_keys=True) + "\n"
        with self._own_errors():
            self._folder.mkdir(parents=True, exist_ok=True)
            file = self._file_of(name)
            partial = file.with_suffix(".partial")
            partial.write_text(text, "utf-8")
            partial.replace(file)

    def get(self, name: str) -> JsonValue | None:
        """Return the document of a name, or nothing where there is none."""
        with self._own_errors():
            try:
                return _read(self._file_of(name))
            except FileNotFoundError:
                return None

    def all(self) -> list[JsonValue]:
        """Return all documents in no particular order."""
        with self._own_errors():
            try:
                return [_read(file) for file in self._folder.iterdir() if file.suffix == ".json"]
            except FileNotFoundError:
                return []

    def remove(self, name: str) -> None:
        """Take a document away, if it is there."""
        with self._own_errors():
            self._file_of(name).unlink(missing_ok=True)

    def _file_of(self, name: str) -> Path:
        # A name may hold anything, so it is not the name of the file.
        return self._folder / f"{hashlib.sha256(name.encode()).hexdigest()}.json"

    @contextmanager
    def _own_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as error:
            raise PlatformError(
                f"the folder catalog failed in {self._folder}: {type(error).__name__}",
                hint="check that the folder can be read and written",
            ) from error


def _read(file: Path) -> JsonValue:
    document: JsonValue = json.loads(file.read_text("utf-8"))
    return document
