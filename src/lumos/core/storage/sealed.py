"""Sources with credentials, as they travel to Spark's tasks: the credentials stay behind.

Spark hands the code of a task, and every value in it, to whoever connects as an executor, and keeps
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
from typing import TYPE_CHECKING, Any

from lumos.core.errors import SourceError

if TYPE_CHECKING:
    from lumos.core.storage.port import Storage, StorageSource

_PREFIX = "source-"


@dataclass(frozen=True)
class SealedSource:
    """Where a source is found, for the tasks of one run.

    Attributes:
        name: the name of the source, for errors.
        file: the file that holds the source, combined with the key.
        key: as long as the file.
    """

    name: str
    file: str
    key: bytes = field(repr=False)

    def open(self) -> Storage:
        """Return the storage; see `StorageSource.open`."""
        return self.unsealed().open()

    def unsealed(self) -> StorageSource:
        """Return the source, with its credentials.

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
        # The user's own file, and useless to whoever could change it: the key is elsewhere.
        kind, values = pickle.loads(_combined(content, self.key))  # noqa: S301
        source: StorageSource = kind.model_validate(values)
        return source


def sealed(source: StorageSource, folder: Path) -> StorageSource | SealedSource:
    """Return what may travel to tasks in place of a source; itself where it holds no credentials.

    Args:
        source: the source.
        folder: a private folder of the run that the workers of Spark see too.

    Raises:
        OSError: the folder cannot be written.
    """
    if not source.has_credentials:
        return source
    values: dict[str, Any] = dict(source)
    content = pickle.dumps((type(source), values))
    key = secrets.token_bytes(len(content))
    handle, name = tempfile.mkstemp(prefix=_PREFIX, dir=folder)  # of mode 0600
    with os.fdopen(handle, "wb") as file:
        file.write(_combined(content, key))
    return SealedSource(source.name, os.path.abspath(name), key)


def _combined(content: bytes, key: bytes) -> bytes:
    number = int.from_bytes(content, "big") ^ int.from_bytes(key, "big")
    return number.to_bytes(len(key), "big")
