"""The order in which snapshots were stored, which no clock can change.

Each snapshot gets the next number while its writer holds a lock on the store, and carries it in its
manifest. A file in the store notes all numbers: it saves readers from opening every manifest, and
no number is given twice, also after the newest snapshot was removed. Whatever it lacks is read from
the manifests. Snapshots of an older Lumos have no number: they come first, by their time.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import orjson

from lumos.core.store.snapshots.manifest import MANIFEST_NAME, is_snapshot_id
from lumos.core.store.snapshots.snapshot_files import TEMP_PREFIX, write_atomically

if TYPE_CHECKING:
    from lumos.core.store.snapshots.manifest import Manifest, SnapshotInfo
    from lumos.core.store.snapshots.snapshot_files import DurableFiles

ORDER_NAME = ".order.json"
ORDER_LOCK_NAME = ".order.lock"
STORE_FILES = frozenset({ORDER_NAME, ORDER_LOCK_NAME})
"""What lies in a store beside its snapshots."""
_SECOND = len("YYYYMMDDTHHMMSSZ")
_SEQUENCE = re.compile(rb'^  "sequence": ([0-9]{1,18}),?$', re.MULTILINE)

Numbers = Mapping[str, int | None]
"""The number of each snapshot, by id; None for one that has none."""


class _Note(NamedTuple):
    """What the file of the store says."""

    next: int
    numbers: Numbers


class SnapshotOrder:
    """Gives the snapshots of one store their numbers, and reads them."""

    def __init__(self, root: Path, *, files: DurableFiles) -> None:
        self._root = root
        self._files = files

    @contextmanager
    def next_number(self, identity: str) -> Iterator[int]:
        """Yield the number of a snapshot that is about to be committed.

        Until the block ends no other writer commits to the store. A number whose snapshot is never
        committed is skipped.
        """
        with self._locked():
            note = self._note()
            numbers = {**self._numbers(self._present(), note), identity: None}
            number = max(note.next, 1 + max(filter(None, numbers.values()), default=0))
            numbers[identity] = number
            document = {"next": number + 1, "snapshots": numbers}
            content = orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)
            write_atomically(self._root / ORDER_NAME, [content], files=self._files)
            self._files.sync_folder(self._root)
            yield number

    def numbers(self, names: Iterable[str], *, trust_note: bool = True) -> Numbers:
        """Return the numbers of snapshots; those that are not noted are read from manifests."""
        return self._numbers(names, self._note() if trust_note else _Note(1, {}))

    def noted(self) -> Numbers:
        """Return the numbers that the file of the store has."""
        return self._note().numbers

    def is_last(self, manifest: Manifest) -> bool:
        """Return whether no snapshot was stored after this one; True if it has no number."""
        if manifest.sequence is None:
            return True
        numbers = self.numbers(self._present())
        return all((number or 0) <= manifest.sequence for number in numbers.values())

    def leftovers(self) -> list[Path]:
        """Return the files that killed writers left beside the note, and remove them."""
        found = [path for path in self._root.glob(f"{TEMP_PREFIX}*{ORDER_NAME}") if path.is_file()]
        if not found:
            return []
        with self._locked():  # the process that writes the note now has finished then
            for path in found:
                self._files.remove(path)
        return found

    def _numbers(self, names: Iterable[str], note: _Note) -> dict[str, int | None]:
        return {
            name: note.numbers[name] if name in note.numbers else self._number_in_manifest(name)
            for name in names
        }

    def _number_in_manifest(self, name: str) -> int | None:
        try:
            content = (self._root / name / MANIFEST_NAME).read_bytes()
        except OSError:
            return None
        found = _SEQUENCE.search(content)
        return int(found[1]) if found else None

    def _present(self) -> list[str]:
        return [
            path.name
            for path in self._root.iterdir()
            if is_snapshot_id(path.name) and (path / MANIFEST_NAME).exists()
        ]

    def _note(self) -> _Note:
        """Return what is noted; nothing where the file is missing or damaged."""
        try:
            document = orjson.loads((self._root / ORDER_NAME).read_bytes())
            numbers = {
                str(name): None if number is None else int(number)
                for name, number in document["snapshots"].items()
            }
            return _Note(int(document["next"]), numbers)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return _Note(1, {})

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Wait until no other process changes the order; the lock ends with the process."""
        descriptor = self._files.open_lock(self._root / ORDER_LOCK_NAME)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def order_key(info: SnapshotInfo, noted: Numbers) -> tuple[bool, int, str, str, str]:
    """Return what snapshots are sorted by, oldest first.

    Args:
        info: the snapshot.
        noted: the numbers that the store has noted, for a snapshot whose manifest is damaged.
    """
    number = info.sequence if info.problem is None else noted.get(info.id)
    return number is not None, number or 0, info.id[:_SECOND], str(info.stored_at), info.id
