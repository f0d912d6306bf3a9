"""Adds up the files of datasets where they are met: what travels grows with datasets only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from lumos.spark.stages.rows import FileRow

_MOST_FOLDS = 10_000
Key = tuple[str, str]
"""A source, and the name of a dataset in it."""


class Fold(Protocol):
    """Adds up what is known of the files of one dataset."""

    def add(self, file: FileRow) -> None: ...
    def merge(self, other: Self) -> None: ...
    def to_bytes(self) -> bytes: ...


NewFold = Callable[[], Fold]


class Folds:
    """The folds of one task."""

    def __init__(self, new_fold: NewFold) -> None:
        self._new_fold = new_fold
        self._folds: dict[Key, Fold] = {}
        self._schemas: dict[Key, set[str]] = {}

    @property
    def is_full(self) -> bool:
        """Whether what is added up so far should go on its way."""
        return len(self._folds) >= _MOST_FOLDS

    def add(self, key: Key, file: FileRow) -> None:
        """Count a file in."""
        fold = self._folds.get(key)
        if fold is None:
            fold = self._folds[key] = self._new_fold()
            self._schemas[key] = set()
        fold.add(file)
        if file.reason is None:
            self._schemas[key].add(file.fingerprint)

    def taken(self) -> Iterator[tuple[Key, bytes, set[str]]]:
        """Yield the state of each dataset with the schemas of its files, and begin anew."""
        folds, self._folds = self._folds, {}
        schemas, self._schemas = self._schemas, {}
        for key, fold in folds.items():
            yield key, fold.to_bytes(), schemas[key]
