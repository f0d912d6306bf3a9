"""Files of the local file system."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Literal, Self

from typing_extensions import override

from lumos.core.errors import SourceError, UnreadableItemError
from lumos.core.formats.confined import is_inside, require_inside
from lumos.core.storage.port import (
    Listed,
    ListedObject,
    SkippedLink,
    Storage,
    StorageSource,
    UnlistedPrefix,
    printable,
)
from lumos.core.storage.selection import FileSelection, Folder, is_hidden

PLATFORM = "local"
FollowSymlinks = Literal["inside", "all"]
_DEEPEST = 60


class LocalSource(StorageSource):
    """A local folder, or one file."""

    path: str
    root: str | None = None
    """What its URNs begin with, wherever the folder lies; by default the name of the folder."""
    skip: tuple[str, ...] = ()
    """Whole paths of folders to leave out, such as the state folder."""
    follow_symlinks: FollowSymlinks = "inside"
    """Which symlinks are followed: those that lead to files below the path, or all."""

    @property
    @override
    def platform(self) -> str:
        return PLATFORM

    @property
    @override
    def is_one_file(self) -> bool:
        return not os.path.isdir(self.path)

    @override
    def without_folder(self, folder: str) -> Self:
        return self.model_copy(update={"skip": (*self.skip, folder)})

    @override
    def open(self) -> LocalStorage:
        return LocalStorage(self)


class LocalStorage(Storage):
    """A local folder; it is listed in one go, because links may lead from one part to another."""

    def __init__(self, source: LocalSource) -> None:
        self._name = source.name
        self._root_name = source.root
        self._root = os.path.abspath(os.path.expanduser(source.path))
        self._skip = frozenset(source.skip)
        self._selection = FileSelection(patterns=source.patterns, exclude=source.exclude)
        self._patterns = (source.patterns, source.exclude)
        is_folder = os.path.isdir(self._root)
        self.local_folder = self._root if is_folder else os.path.dirname(self._root)
        # A single file was named by the author of the settings: it may be a symlink to anywhere.
        self.is_confined = is_folder and source.follow_symlinks == "inside"

    @override
    def check(self) -> None:
        mode_of(self._root, source=self._name)

    @override
    def units(self, wanted: int) -> Sequence[str]:
        self.check()
        return [""]

    @override
    def list(self, unit: str) -> Iterator[Listed]:
        if not stat.S_ISDIR(mode_of(self._root, source=self._name)):
            yield from _listed(self._root, os.path.basename(self._root))
            return
        if unit and not _is_there(os.path.join(self._root, unit)):
            return
        real_root = os.path.realpath(self._root) if self.is_confined else None
        if unit and not leads_inside(os.path.join(self._root, unit), real_root):
            yield SkippedLink(os.fsencode(unit))
            return
        walk = FolderWalk(
            self._root, selection=self._selection, skip=self._skip, real_root=real_root
        )
        start = len(self._root.rstrip("/")) + 1
        for found in walk.files(unit):
            if not isinstance(found, str):
                yield found
            else:
                relative = found[start:]
                if self._selection.wanted(relative):
                    yield from _listed(found, relative)

    @override
    def fingerprint(self, unit: str) -> str | None:
        if unit or not os.path.isdir(self._root):
            return None
        try:
            chosen = repr((self._patterns, self.is_confined)).encode("utf-8", "replace")
            return _fingerprint(
                self._root, selection=self._selection, skip=self._skip, chosen=chosen
            )
        except OSError:  # the listing names what cannot be looked at
            return None

    @override
    def below(self, folder: bytes) -> str:
        return os.fsdecode(folder).strip("/")

    @override
    def children(self, folder: bytes) -> Sequence[ListedObject]:
        top = os.path.join(self._folder(), os.fsdecode(folder))
        try:
            with os.scandir(top) as entries:
                names = sorted(
                    (
                        entry.name
                        for entry in entries
                        if entry.is_file() and self._may_follow(entry)
                    ),
                    key=os.fsencode,
                )
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise unreadable(error) from error
        listed = [
            item
            for name in names
            for item in _listed(
                os.path.join(top, name), os.path.join(os.fsdecode(folder), name).lstrip("/")
            )
        ]
        return [item for item in listed if isinstance(item, ListedObject)]

    @override
    def read(self, path: bytes, *, start: int, length: int) -> bytes:
        try:
            whole = os.path.join(self._folder(), os.fsdecode(path))
            descriptor = os.open(whole, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                if self.is_confined:
                    real_root = os.path.realpath(self._root)
                    require_inside(descriptor, whole, folder=real_root)
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise UnreadableItemError("it is not a regular file")
                return os.pread(descriptor, length, start)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise unreadable(error) from error

    @override
    def shown(self, path: bytes) -> str:
        if not path:
            return printable(self._root)
        return os.path.join(printable(self._folder()), path.decode("utf-8", "backslashreplace"))

    @override
    def urn_parts(self) -> tuple[str, ...]:
        """Return the name of the root.

        Raises:
            SourceError: none is given, and the folder is `/`, which has no name.
        """
        name = self._root_name or os.path.basename(self._folder())
        if not name:
            raise SourceError(
                f"source '{self._name}': the folder {self._folder()} has no name for URNs",
                hint="give the source a name in the settings: root: NAME",
            )
        return (name,)

    def _folder(self) -> str:
        return self.local_folder or self._root

    def _may_follow(self, entry: os.DirEntry[str]) -> bool:
        if not (self.is_confined and entry.is_symlink()):
            return True
        return leads_inside(entry.path, os.path.realpath(self._root))


class FolderWalk:
    """A walk that enters every real folder once, whatever links lead to it.

    Real folders come first, in the order of their names; links to folders follow, and only where
    they lead to a folder that was not walked under its own name. So no link can make a loop, and
    a new link never changes how anything else is called.

    Args:
        root: the folder to walk.
        selection: which files and folders are wanted.
        skip: whole paths of folders to leave out, under whatever name a link gives them.
        real_root: the only folder that symlinks may lead into; None where they may lead anywhere.
    """

    def __init__(
        self,
        root: str,
        *,
        selection: FileSelection,
        skip: frozenset[str] = frozenset(),
        real_root: str | None = None,
    ) -> None:
        self._root = root
        self._start = len(root.rstrip("/")) + 1
        self._selection = selection
        self._skip = skip
        self._real_skip = tuple(map(os.path.realpath, skip))
        self._real_root = real_root
        self._entered: set[tuple[int, int]] = set()
        self._links: list[str] = []

    def files(self, below: str = "") -> Iterator[str | UnlistedPrefix | SkippedLink]:
        """Yield each file of wanted folders, each unlisted folder and each link not followed.

        Args:
            below: the folder to begin with, relative to the root.
        """
        yield from self._below(os.path.join(self._root, below) if below else self._root)
        while self._links:
            links, self._links = sorted(self._links, key=os.fsencode), []
            for link in links:
                yield from self._below(link)

    def _below(self, top: str) -> Iterator[str | UnlistedPrefix | SkippedLink]:
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            try:
                if not self._enter(folder):
                    continue
                with os.scandir(folder) as listing:
                    entries = sorted(listing, key=lambda entry: os.fsencode(entry.name))
            except OSError as error:
                reason = f"it cannot be listed: {error.strerror or type(error).__name__}"
                problem = UnreadableItemError(reason, hint="check permissions")
                below = os.fsencode(folder[self._start :])
                yield UnlistedPrefix(printable(folder), problem, below)
                continue
            folders = []
            for entry in entries:
                if entry.is_symlink() and not self._may_follow(entry.path):
                    yield from self._not_followed(entry.path)
                elif not _is_folder(entry):
                    if entry.is_symlink() and self._hides_folder(entry.path):
                        yield _nowhere(entry.path, self._start)
                    yield entry.path
                elif not self._wanted(entry.path):
                    continue
                elif entry.is_symlink():
                    self._links.append(entry.path)
                else:
                    folders.append(entry.path)
            waiting.extend(reversed(folders))

    def _enter(self, folder: str) -> bool:
        status = os.stat(folder)
        identity = (status.st_dev, status.st_ino)
        is_new = identity not in self._entered
        self._entered.add(identity)
        return is_new

    def _may_follow(self, link: str) -> bool:
        target = os.path.realpath(link)
        if any(is_inside(target, folder) for folder in self._real_skip):
            return False
        return self._real_root is None or is_inside(target, self._real_root)

    def _not_followed(self, link: str) -> Iterator[SkippedLink]:
        """Yield a symlink that leads outside, unless nothing of it would be wanted in any case."""
        relative, target = link[self._start :], os.path.realpath(link)
        if any(is_inside(target, folder) for folder in self._real_skip):
            return
        may_be_folder = not os.path.isfile(target) and self._wanted(link)
        if may_be_folder or self._selection.wanted(relative):
            yield SkippedLink(os.fsencode(relative))

    def _hides_folder(self, link: str) -> bool:
        """Return whether a link leads nowhere and would not be read if it led to a file."""
        relative = link[self._start :]
        name = relative.rpartition("/")[2]
        if is_hidden(name) or self._selection.wanted(relative) or not self._wanted(link):
            return False
        return not os.path.exists(link)

    def _wanted(self, folder: str) -> bool:
        if folder in self._skip:
            return False
        return self._selection.folder(folder[self._start :]) is not Folder.HIDDEN


def _fingerprint(
    root: str, *, selection: FileSelection, skip: frozenset[str], chosen: bytes
) -> str | None:
    """Return a digest of the name, size and time of every file in the folders that a walk enters.

    `chosen` says which of these files are wanted; another choice gives another digest.
    None where there is a symlink, or folders so deep that they may go in a circle, as mounts can:
    a walk decides how they are handled.
    """
    digest = blake2b(chosen, digest_size=16)
    start = len(root.rstrip("/")) + 1
    waiting = [(root, Folder.PLAIN)]
    while waiting:
        folder, kind = waiting.pop()
        files, folders = [], []
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    return None
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    status = entry.stat(follow_symlinks=False)
                    files.append(f"{entry.name}\0{status.st_size}\0{status.st_mtime_ns}")
        relative = folder[start:]
        if relative.count("/") > _DEEPEST:
            return None
        files.sort()
        text = "/".join((relative, *files, "\0"))
        digest.update(text.encode("utf-8", "surrogateescape"))
        for each in sorted(folders):
            kind_below = selection.child(kind, each[start:])
            if kind_below is not Folder.HIDDEN and each not in skip:
                waiting.append((each, kind_below))
    return digest.hexdigest()


def leads_inside(path: str, real_root: str | None) -> bool:
    """Return whether a path, its links resolved, lies in a real folder; None allows any."""
    return real_root is None or is_inside(os.path.realpath(path), real_root)


def mode_of(path: str, *, source: str) -> int:
    """Return the mode of a folder or file.

    Raises:
        SourceError: there is nothing at the path, or it may not be looked at.
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a valid path"
        raise SourceError(
            f"source '{source}': cannot scan {printable(path)}: {reason}",
            hint="check the path of the source and its permissions",
        ) from error
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise SourceError(
            f"source '{source}': {printable(path)} is neither a folder nor a file",
            hint="give the path of a folder or of a file",
        )
    return mode


def unreadable(error: OSError) -> UnreadableItemError:
    """Return why a file or folder cannot be read, in words."""
    reason = error.strerror or type(error).__name__
    return UnreadableItemError(
        f"it cannot be read: {reason}", hint="check its permissions", retryable=True
    )


def _listed(path: str, relative: str) -> Iterator[ListedObject | UnlistedPrefix]:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        if os.path.islink(path):  # reading it gives the reason, and keeps what was read before
            yield ListedObject(os.fsencode(relative), 0, 0)
        return  # else gone between the listing and the look: it is not there
    except OSError as error:
        yield UnlistedPrefix(printable(path), unreadable(error), os.fsencode(relative))
        return
    yield ListedObject(os.fsencode(relative), status.st_size, status.st_mtime_ns // 1000)


def _nowhere(link: str, start: int) -> UnlistedPrefix:
    """Say that what a link led to is not there: a disk may be missing."""
    problem = UnreadableItemError("it cannot be listed: the link leads nowhere", retryable=True)
    return UnlistedPrefix(printable(link), problem, os.fsencode(link[start:]))


def _is_there(folder: str) -> bool:
    """Return whether there is a folder; one that may not be looked at is there."""
    try:
        return stat.S_ISDIR(os.stat(folder).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself; opening it will give the reason
        return False
