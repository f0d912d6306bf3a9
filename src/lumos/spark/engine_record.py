"""What is known of the engine of this user: a file that only the user can read, and two locks.

The engine holds the lock `engine.lock` as long as it lives, so nobody takes another process with
its number for it. A client holds a shared lock on `engine.use`; the engine ends itself only while
nobody does.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, ValidationError

import lumos
from lumos.core.errors import NotPrivateError, StateReadOnlyError
from lumos.core.private_files import make_trusted_folder, open_trusted_file
from lumos.spark.java import cache_folder
from lumos.spark.options import user_options

if TYPE_CHECKING:
    from lumos.spark.settings import SparkSettings

FOLDER_VARIABLE = "LUMOS_ENGINE_DIR"
_OTHER_FOLDER = f"set {FOLDER_VARIABLE} to a folder of your own"
_LARGEST_RECORD = 64 * 1024
_TRIES = 5
_SECONDS_BETWEEN_TRIES = 0.05


class EngineRecord(BaseModel):
    """An engine: how to reach it and what it is.

    Attributes:
        token: what a session must show; it is in no text form of the record.
        software: stands for the Lumos, Spark and Python that it runs.
        settings: stands for the `spark` settings that it was started with.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    pid: int
    port: int
    token: str = Field(repr=False)
    host: str
    software: str
    settings: str
    lumos: str
    spark: str
    java: str
    master: str
    started_at: datetime
    idle_minutes: float
    log: str


class EngineFolder:
    """The folder in which the engine of a user is found."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.record = folder / "engine.json"
        self.log = folder / "engine.log"
        self._life = folder / "engine.lock"
        self._use = folder / "engine.use"

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> EngineFolder:
        """Return the folder of this user: one in the cache, or the one of `LUMOS_ENGINE_DIR`."""
        if given := environment.get(FOLDER_VARIABLE):
            return cls(Path(given).absolute())
        return cls(cache_folder(environment).absolute() / "engine")

    def prepare(self) -> None:
        """Make the folder, for its owner alone.

        Raises:
            StateReadOnlyError: it cannot be made.
            NotPrivateError: it is a symlink, or another user's.
        """
        try:
            make_trusted_folder(self.folder, hint=_OTHER_FOLDER)
            for path in (self._life, self._use, self.log):
                os.close(open_trusted_file(path, os.O_RDWR | os.O_CREAT, hint=_OTHER_FOLDER))
        except OSError as error:
            raise StateReadOnlyError(
                f"cannot write to the folder of the engine {self.folder}: {error.strerror}",
                hint=_OTHER_FOLDER,
            ) from None

    def read(self) -> EngineRecord | None:
        """Return the engine that was last started on this machine and has not taken its leave.

        A record that another user wrote, or could have written, is not trusted: a command would
        send its work to their Spark.
        """
        try:
            handle = open_trusted_file(self.record, os.O_RDONLY, hint=_OTHER_FOLDER)
            with os.fdopen(handle, "rb") as file:
                record = EngineRecord.model_validate_json(file.read(_LARGEST_RECORD))
        except (OSError, NotPrivateError, ValidationError):
            return None
        return record if record.host == socket.gethostname() else None

    def write(self, record: EngineRecord) -> None:
        """Make an engine known."""
        handle, name = tempfile.mkstemp(prefix=".engine-", dir=self.folder)  # of mode 0600
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(record.model_dump_json())
        Path(name).replace(self.record)

    def forget(self) -> None:
        """Make no engine known any more."""
        with suppress(OSError):
            self.record.unlink(missing_ok=True)

    def is_alive(self) -> bool:
        """Return whether the process of an engine is there, whatever state it is in."""
        with _locked(self._life, fcntl.LOCK_SH) as got:
            return got is False

    @contextmanager
    def life(self) -> Iterator[bool]:
        """Hold what only one engine can hold, or yield False."""
        with _insisted(self._life, fcntl.LOCK_EX) as got:
            yield got

    @contextmanager
    def use(self) -> Iterator[bool]:
        """Keep the engine from ending itself, or yield False where it is about to."""
        with _insisted(self._use, fcntl.LOCK_SH) as got:
            yield got and self.record.exists()

    @contextmanager
    def disuse(self) -> Iterator[bool]:
        """Keep everybody from using the engine, or yield False where somebody does."""
        with _locked(self._use, fcntl.LOCK_EX) as got:
            yield bool(got)


def software_mark() -> str:
    """Return what stands for the Lumos, Spark and Python that run here.

    An engine keeps what it has loaded, so a file of Lumos that was written since makes another.
    """
    root = Path(lumos.__file__).parent
    facts = [sys.executable, lumos.__version__, metadata.version("pyspark")]
    for path in sorted(root.rglob("*.py")):
        status = path.stat()
        facts.append(f"{path}\0{status.st_size}\0{status.st_mtime_ns}")
    return _hash(facts)


def settings_mark(settings: SparkSettings) -> str:
    """Return what stands for the settings that a running engine cannot change."""
    return _hash([settings.master, settings.driver_memory, sorted(user_options(settings).items())])


def _hash(facts: object) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


@contextmanager
def _insisted(path: Path, kind: int) -> Iterator[bool]:
    """Yield whether the lock was free, also for somebody who only looks at it for a moment."""
    with ExitStack() as stack:
        got = stack.enter_context(_locked(path, kind))
        for _ in range(_TRIES):
            if got is not False:
                break
            time.sleep(_SECONDS_BETWEEN_TRIES)
            got = stack.enter_context(_locked(path, kind))
        yield bool(got)


@contextmanager
def _locked(path: Path, kind: int) -> Iterator[bool | None]:
    """Yield whether the lock was free; None where there is no lock to ask for."""
    try:
        handle = os.open(path, os.O_RDWR)
    except OSError:
        yield None
        return
    try:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        except OSError:  # a file system without locks
            yield None
        else:
            yield True
    finally:
        os.close(handle)
