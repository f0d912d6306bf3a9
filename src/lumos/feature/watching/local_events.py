"""Events of local folders, from the operating system."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from lumos.core.errors import MissingExtraError
from lumos.core.storage.local import leads_inside
from lumos.core.storage.selection import FileSelection
from lumos.feature.watching.folders import (
    WHOLE_FOLDER,
    folder_of_file,
    folder_of_folder,
    folder_of_missing,
)

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

    from lumos.core.storage.local import LocalSource
    from lumos.feature.watching.inbox import Inbox

_GROUP_MS: Final = 200
_STEP_MS: Final = 50
_LOOK_AFTER_MS: Final = 2_000
"""So often, while nothing happens, it is made sure that the folder is still the one watched."""
_POLL_MS: Final = 1_000
_TRY_AGAIN_SECONDS: Final = 2.0
SUSPICIOUS: Final = 8_000
"""From so many events at once on, some may be lost: the queue of the kernel holds 16,384."""


class LocalEvents:
    """Watches one local folder in a separate thread.

    A folder that is replaced, or comes back, is watched anew and looked into as a whole. So is one
    with more events than the operating system is sure to deliver.
    """

    def __init__(self, source: LocalSource, inbox: Inbox) -> None:
        self._name = source.name
        self._path = os.path.abspath(os.path.expanduser(source.path))
        self._root = os.path.realpath(self._path)  # under which some systems report events
        self._skip = tuple(map(os.path.realpath, source.skip))
        self._is_confined = source.follow_symlinks == "inside"
        self._selection = FileSelection(patterns=source.patterns, exclude=source.exclude)
        self._inbox = inbox
        self._stop = threading.Event()
        self._armed = threading.Event()
        self._told: str | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Watch for the length of a `with` block; it begins once nothing can be missed any more.

        Raises:
            MissingExtraError: the package that watches folders is not installed.
        """
        _require_watchfiles()
        thread = threading.Thread(target=self._run, name=f"events of {self._name}", daemon=True)
        thread.start()
        self._armed.wait()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def folders_of(self, paths: Iterable[str]) -> set[bytes]:
        """Return the folders to look into after something happened to these whole paths."""
        found = (self._folder_of(path) for path in paths)
        return {folder for folder in found if folder is not None}

    def _run(self) -> None:
        is_first = True
        while not self._stop.is_set():
            self._root = os.path.realpath(self._path)
            identity = _identity(self._root)
            is_folder = os.path.isdir(self._root)
            watched = self._root if is_folder else os.path.dirname(self._root)
            try:
                with _watcher(watched, recursive=is_folder) as watcher:
                    self._armed.set()
                    if not is_first and identity is not None:
                        self._inbox.put({self._name: {WHOLE_FOLDER}}, events=1)
                    is_first = False
                    self._pass_on(watcher, identity)
                    continue
            except (OSError, RuntimeError) as error:  # RuntimeError is what the watcher raises
                if _identity(self._root) != identity:
                    continue  # it went or came in between
                self._report(error)
            is_first = False
            self._armed.set()
            self._stop.wait(_TRY_AGAIN_SECONDS)

    def _pass_on(self, watcher: RustNotify, identity: tuple[int, int] | None) -> None:
        """Put events into the inbox until the folder is another one, or there is none."""
        while _identity(self._root) == identity:
            told = watcher.watch(_GROUP_MS, _STEP_MS, _LOOK_AFTER_MS, self._stop)
            if isinstance(told, set):
                self._put([path for _, path in told])
            elif told != "timeout":
                return

    def _put(self, paths: list[str]) -> None:
        if len(paths) >= SUSPICIOUS:
            self._inbox.put({self._name: {WHOLE_FOLDER}}, events=len(paths))
        elif folders := self.folders_of(paths):
            self._inbox.put({self._name: folders}, events=len(paths))

    def _folder_of(self, path: str) -> bytes | None:
        if path == self._root:
            return WHOLE_FOLDER
        if any(path == skipped or path.startswith(f"{skipped}/") for skipped in self._skip):
            return None
        relative = os.path.relpath(path, self._root)
        if relative.startswith("../"):
            return None  # a neighbour of a single file
        if self._is_confined and not leads_inside(os.path.dirname(path), self._root):
            return None  # behind a symlink that is not followed
        if os.path.isdir(path):
            return folder_of_folder(relative, self._selection)
        if os.path.lexists(path):
            return folder_of_file(relative, self._selection)
        return folder_of_missing(relative, self._selection)

    def _report(self, error: Exception) -> None:
        reason = error.strerror if isinstance(error, OSError) else None
        problem = f"source '{self._name}' cannot be watched: {reason or type(error).__name__}"
        if problem != self._told:
            self._told = problem
            self._inbox.report(problem)


def _watcher(folder: str, *, recursive: bool) -> RustNotify:
    from watchfiles._rust_notify import RustNotify

    # Positions: debug, force_polling, poll_delay_ms, recursive, ignore_permission_denied.
    return RustNotify([folder], False, _force_polling(), _POLL_MS, recursive, True)


def _force_polling() -> bool:
    return bool(os.environ.get("WATCHFILES_FORCE_POLLING"))


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _require_watchfiles() -> None:
    from importlib.util import find_spec

    if find_spec("watchfiles") is None:
        raise MissingExtraError(
            "watching local folders needs the package watchfiles",
            hint="install it with: pip install 'lumos[watch]'",
        )
