"""What every storage can do: be checked, divided, listed and read in parts.

A source is a small description of a storage; opening it gives the storage. One with credentials
travels to executors as a reference, see `lumos.core.storage.sealed`. Paths are bytes relative to
the storage's root, with `/` between the parts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from pydantic import Field

from lumos.core.settings.confidential import ConfidentialSettings

if TYPE_CHECKING:
    from lumos.core.errors import UnreadableItemError

_USUAL_PORTS: Final = {"http": ":80", "https": ":443"}


class ListedObject(NamedTuple):
    """A file as a listing sees it; nothing was opened for it."""

    path: bytes
    size: int
    mtime_us: int
    etag: str | None = None


class UnlistedPrefix(NamedTuple):
    """A part of a storage that could not be listed, so nobody knows what lies in it."""

    shown: str
    """Which part, as reports show it."""
    error: UnreadableItemError
    path: bytes = b""
    """The same below the root; the root itself where it is unknown."""


class SkippedLink(NamedTuple):
    """A symlink that leads outside of the source and was therefore not followed."""

    path: bytes
    """Relative to the root."""


Listed = ListedObject | UnlistedPrefix | SkippedLink


class Storage(ABC):
    """An open storage; it may be shared by threads, not by processes."""

    local_folder: str | None = None
    """The folder of the root where it lies on this machine, so that others may open its files."""
    is_confined: bool = False
    """Whether readers must refuse files of `local_folder` that lie outside of it."""
    bucket: str | None = None

    @abstractmethod
    def check(self) -> None:
        """Make sure that the storage is there and answers.

        Raises:
            SourceError: it is not there, or it does not let us in; says which of both.
        """

    @abstractmethod
    def units(self, wanted: int) -> Sequence[str]:
        """Divide the storage into parts that can be listed at once, about as many as wanted.

        Small storages are one part. What cannot be divided is still listed, with its error.

        Raises:
            SourceError: as of `check`.
        """

    @abstractmethod
    def list(self, unit: str) -> Iterator[Listed]:
        """Yield the wanted files of a part, what could not be listed, and links not followed."""

    def fingerprint(self, unit: str) -> str | None:
        """Return a digest that differs whenever a listing of the part would; None if unknown.

        It may also differ where a listing would not. Only a storage that computes it in much less
        time than it lists needs one.
        """
        return None

    @abstractmethod
    def below(self, folder: bytes) -> str:
        """Return the part that is all below one folder; one that is gone has no files."""

    @abstractmethod
    def children(self, folder: bytes) -> Sequence[ListedObject]:
        """Return the files directly in a folder, hidden ones too, by name.

        Raises:
            UnreadableItemError: it cannot be listed; an empty or missing folder has no files.
        """

    @abstractmethod
    def read(self, path: bytes, *, start: int, length: int) -> bytes:
        """Return bytes of a file; fewer only where it ends before.

        Raises:
            UnreadableItemError: it is gone, or there is no permission, or nobody answers; always
                worth another try, because nothing was seen of the file itself.
        """

    @abstractmethod
    def shown(self, path: bytes) -> str:
        """Return where a file lies, as reports show it; with an empty path, the root."""

    @abstractmethod
    def urn_parts(self) -> tuple[str, ...]:
        """Return what stands before the parts of a dataset's path in every URN."""


class StorageSource(ConfidentialSettings, ABC):
    """Where files lie and which of them are wanted; small and frozen."""

    name: str = Field(min_length=1, description="How errors and reports call the source.")
    patterns: tuple[str, ...] = Field(
        default=("*",), description="Names of files; one with a slash fits the whole path."
    )
    exclude: tuple[str, ...] = Field(
        default=(), description="Names or paths, of files or folders, to leave out."
    )

    @property
    @abstractmethod
    def platform(self) -> str:
        """The first part of every URN of this source."""

    @property
    def server(self) -> str:
        """Where the files lie, without credentials: `minio:9000`; empty for this machine."""
        return ""

    @property
    def is_one_file(self) -> bool:
        """Whether it is a single file, which says nothing of its folder."""
        return False

    def chosen_folders(self) -> tuple[str, ...]:
        """Return the only folders below the root that are looked into; none stands for all."""
        return ()

    def without_folder(self, folder: str) -> Self:
        """Return the source less a folder of this machine, such as the state folder."""
        return self

    def unsealed(self) -> StorageSource:
        """Return the source with its credentials; see `lumos.core.storage.sealed`."""
        return self

    @abstractmethod
    def open(self) -> Storage:
        """Return the storage; nothing is asked of it yet.

        Raises:
            SourceError: the settings cannot be used on this machine.
            MissingExtraError: the packages that this storage needs are not installed.
        """


def server_at(url: str) -> str:
    """Return the server of an HTTP address: host, port unless it is the usual one, and path."""
    scheme, found, rest = url.partition("://")
    place = (rest if found else url).rpartition("@")[2]  # no credentials
    host, slash, path = place.partition("/")
    usual = _USUAL_PORTS.get(scheme.lower(), "")
    return f"{host.lower().removesuffix(usual)}{slash}{path}".rstrip("/")


def printable(name: str) -> str:
    r"""Return a name as text that JSON can carry; undecodable bytes are written as `\xe9`."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
