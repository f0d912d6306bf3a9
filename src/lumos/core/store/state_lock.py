"""The lock over a state folder: one writer at a time; readers never need it."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lumos.core.errors import StateLockedError
from lumos.core.events import emit, since
from lumos.core.private_files import FILE_MODE, private_opener
from lumos.core.regular_files import read_regular
from lumos.core.store.snapshot_files import storing
from lumos.core.store.state_folder import HOLDER_FILE, LOCK_FILE, prepare_state_folder

_LARGEST_NOTE = 64 * 1024
_MOMENT_SECONDS = 1.0


class StateLock:
    """The right to change one state folder; the system takes it back when the process ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def acquire(
        self,
        purpose: str,
        timeout: float = 0.0,
        *,
        on_wait: Callable[[str], None] = lambda _: None,
    ) -> Iterator[None]:
        """Hold the lock for the length of a `with` block.

        Args:
            purpose: what the holder does, in a few words; told to whoever has to wait.
            timeout: how many seconds to wait for another holder.
            on_wait: is told whom it waits for, where that takes longer than a moment.

        Raises:
            StateLockedError: another process holds it; the error names who and what for.
            StateReadOnlyError: the folder does not allow writing.
        """
        from filelock import FileLock, Timeout

        lock = FileLock(self._folder / LOCK_FILE, mode=FILE_MODE)
        with storing(self._folder):
            prepare_state_folder(self._folder)
            moment = min(max(timeout, 0.0), _MOMENT_SECONDS)
            try:
                lock.acquire(timeout=moment)
            except Timeout:
                began, holder = time.monotonic() - moment, self._holder()
                try:
                    if timeout > moment:
                        on_wait(f"waiting up to {timeout:g} s for {holder} to end")
                    lock.acquire(timeout=max(timeout, 0.0) - moment)
                    emit("lock.waited", holder=holder, seconds=since(began))
                except Timeout:
                    raise self._locked() from None
        try:
            self._note_holder(purpose)
            yield
        finally:
            with suppress(OSError):  # the note is a courtesy; the lock is what counts
                (self._folder / HOLDER_FILE).unlink(missing_ok=True)
            lock.release()

    def _note_holder(self, purpose: str) -> None:
        note = {"pid": os.getpid(), "host": socket.gethostname(), "purpose": purpose}
        path = self._folder / HOLDER_FILE
        with suppress(OSError):
            path.unlink(missing_ok=True)  # a pipe of that name would wait for a reader
            with open(path, "w", encoding="utf-8", opener=private_opener) as file:
                json.dump(note, file)

    def _locked(self) -> StateLockedError:
        holder = self._holder()
        return StateLockedError(
            f"{self._folder} is in use by {holder}",
            hint="wait until it has ended, or raise lock_seconds in the settings",
        )

    def _holder(self) -> str:
        try:
            note = json.loads(read_regular(self._folder / HOLDER_FILE, most=_LARGEST_NOTE))
            return f"process {note['pid']} on {note['host']} ({note['purpose']})"
        except (OSError, ValueError, KeyError, TypeError):
            return "another Lumos process"
