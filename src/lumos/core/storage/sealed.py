"""Sources with credentials, as they travel to Spark's tasks: the credentials stay behind.

Spark hands the code of a task, and every value in it, to any connected executor, and keeps
it in files and in memory for as long as the session lives. So a task gets a reference: a file that
only the user can read, in the folder of the run, and a random key. The file holds the source
combined with the key (XOR, a one-time pad), so neither of the two says anything without the other.
"""

from __future__ import annotations

import os
import pickle
import secrets
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from lumos.core.errors import SourceError
from lumos.core.settings.confidential import pickle_with_credentials

if TYPE_CHECKING:
    from lumos.core.storage.port import Storage, StorageSource

_PREFIX = "source-"
T = TypeVar("T")


@dataclass(frozen=True)
class Sealed(Generic[T]):
    """Where a value with credentials is found, for the tasks of one run.

    Attributes:
        name: the name of the source, for errors.
        file: the file that holds the value, combined with the key.
        key: as long as the file.
    """

    name: str
    file: str
    key: bytes = field(repr=False)

    def unsealed(self) -> T:
        """Return the value, with its credentials.

        Raises:
            SourceError: the file cannot be read here.
        """
        # The user's own file, and useless to others that could change it: the key is elsewhere.
        value: T = pickle.loads(self.content())  # noqa: S301
        return value

    def content(self) -> bytes:
        """Return the value as a pickle, with its credentials.

        Raises:
            SourceError: the file cannot be read here.
        """
        try:
            content = Path(self.file).read_bytes()
        except OSError as error:
            raise SourceError(
                f"source '{self.name}': its credentials cannot be read on a worker of Spark: "
                f"{error.strerror}",
                hint="let the workers run as the same user and see the same state folder, or leave"
                " the credentials out of lumos.yaml and give the workers their own",
            ) from None
        return _combined(content, self.key)


class SealedSource(Sealed["StorageSource"]):
    """Where a source of files is found, for the tasks of one run."""

    has_credentials: ClassVar = False
    """It holds a reference and no credentials, so it is not sealed again."""

    def open(self) -> Storage:
        """Return the storage; see `StorageSource.open`."""
        return self.unsealed().open()


def sealed(source: StorageSource | SealedSource, folder: Path) -> StorageSource | SealedSource:
    """Return what may travel to tasks in place of a source; itself where it holds no credentials.

    Args:
        source: the source.
        folder: a private folder of the run that the workers of Spark see too.

    Raises:
        OSError: the folder cannot be written.
    """
    if not source.has_credentials:
        return source
    reference = seal(source.unsealed(), name=source.name, folder=folder)
    return SealedSource(reference.name, reference.file, reference.key)


def seal(value: T, *, name: str, folder: Path) -> Sealed[T]:
    """Put a value with credentials into a private file, and return the reference for tasks.

    Args:
        value: anything that can be pickled, such as a source handler with its settings.
        name: the name of the source, for errors.
        folder: a private folder of the run that the workers of Spark see too.

    Raises:
        OSError: the folder cannot be written.
    """
    content = pickle_with_credentials(value)
    key = secrets.token_bytes(len(content))
    handle, path = tempfile.mkstemp(prefix=_PREFIX, dir=folder)  # of mode 0600
    with os.fdopen(handle, "wb") as file:
        file.write(_combined(content, key))
    return Sealed(name, os.path.abspath(path), key)


def _combined(content: bytes, key: bytes) -> bytes:
    number = int.from_bytes(content, "big") ^ int.from_bytes(key, "big")
    return number.to_bytes(len(key), "big")
