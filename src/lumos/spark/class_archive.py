"""An archive of Spark's classes that makes the driver start in less than half the time.

A JVM that finds its classes parsed and linked in one file starts Spark more than twice as fast.
The archive belongs to one Java and one Spark, so its name is made from both. Nobody waits for it:
the first session goes without, and leaves behind a process of low priority that starts a Spark of
its own, lets the JVM write the archive at its end and moves it into place. Where that fails, a
note beside it says so, and Lumos goes on without.

A JVM trusts what it maps: an archive with damage in its middle can keep it busy for ever. So a
checksum lies beside the archive. It is held against the file once after every start of the machine,
and whenever size or time of the file are not those that were checked. An archive that another user
could have written is removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.core.errors import NotPrivateError
from lumos.core.private_files import make_trusted_folder

if TYPE_CHECKING:
    from lumos.spark.java import JavaRuntime

SWITCH = "LUMOS_SPARK_ARCHIVE"
_OFF = {"off", "0", "false", "no"}
_EXISTING = "existing"
TRAINER = "lumos.spark.archive_trainer"

# From here on the JVM makes whole archives at exit, without one of the JDK to build upon, which
# small runtimes lack.
_FIRST_JAVA_WITH_CACHE = 25

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BLOCK_BYTES = 1 << 20
_WRITABLE = 0o022  # by the group or by others

# Python warns about a child that runs on when its handle is dropped.
_BACKGROUND: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class ClassArchive:
    """The archive of one Java and one Spark, which may not exist yet.

    Attributes:
        path: where it is, or will be.
        java_major: decides which flags the JVM knows.
    """

    path: Path
    java_major: int

    @property
    def is_there(self) -> bool:
        """Return whether it was made; see `is_whole` for whether it can be used."""
        return self.path.is_file() and self.seal.is_file()

    @property
    def seal(self) -> Path:
        """The file with the checksum, and what the archive looked like when that was checked."""
        return self.path.with_suffix(".seal")

    @property
    def note(self) -> Path:
        """The file that says that making it failed, so that nobody tries again."""
        return self.path.with_suffix(".failed")

    @property
    def lock(self) -> Path:
        """The file that the one process holds which makes it."""
        return self.path.with_suffix(".lock")

    def discard(self) -> None:
        """Remove it where that is allowed, so that a new one is made."""
        for path in (self.seal, self.path):
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def is_whole(self) -> bool:
        """Return whether it is there and what it was when it was made; remove it if it is not."""
        if not self.is_there:
            return False
        if not self._is_trusted():
            self.discard()
            return False
        try:
            sealed = json.loads(self.seal.read_bytes())
            now = _look_of(self.path)
            if sealed.get("look") == now:
                return True
            if sealed.get("checksum") == _checksum(self.path):
                self._write_seal(now, checksum=sealed["checksum"])
                return True
        except (OSError, ValueError, AttributeError):  # no archive is worse than a doubtful one
            pass
        self.discard()
        return False

    def _is_trusted(self) -> bool:
        """Return whether only this user and root could write it: a JVM runs what is in it."""
        try:
            found = [path.stat() for path in (self.path, self.path.parent)]
        except OSError:
            return False
        trusted = {0, os.geteuid()}
        return all(each.st_uid in trusted and not each.st_mode & _WRITABLE for each in found)

    def prepare_folder(self) -> None:
        """Make its folder, for this user alone.

        Raises:
            NotPrivateError: it is a symlink, or another user's.
            OSError: it cannot be made.
        """
        make_trusted_folder(self.path.parent, hint="set XDG_CACHE_HOME to a folder of your own")

    def put(self, made: Path) -> None:
        """Take a file as the archive, once all of it is on the disk."""
        with made.open("rb") as file:
            os.fsync(file.fileno())
        look, checksum = _look_of(made), _checksum(made)
        made.replace(self.path)
        self._write_seal(look, checksum=checksum)

    def _write_seal(self, look: str, *, checksum: int) -> None:
        with suppress(OSError):  # a folder for reading only: it is checked again the next time
            handle, name = tempfile.mkstemp(prefix=".seal-", dir=self.path.parent)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"look": look, "checksum": checksum}, file)
            Path(name).replace(self.seal)

    def using_options(self) -> tuple[str, ...]:
        """Return the flags that use it, and ignore it where it does not fit."""
        if self.java_major >= _FIRST_JAVA_WITH_CACHE:
            return (_flag("-XX:AOTCache=", self.path), "-XX:AOTMode=auto")
        return (_flag("-XX:SharedArchiveFile=", self.path), "-Xshare:auto")

    def making_options(self, target: Path) -> tuple[str, ...]:
        """Return the flags that write an archive to `target` when the JVM ends."""
        if self.java_major >= _FIRST_JAVA_WITH_CACHE:
            return (_flag("-XX:AOTCacheOutput=", target),)
        return (_flag("-XX:ArchiveClassesAtExit=", target),)


def class_archive(runtime: JavaRuntime, *, spark_home: Path, cache_dir: Path) -> ClassArchive:
    """Return the archive that belongs to a Java runtime and the Spark of a folder."""
    # The JVM compares the paths, sizes and times of all archives of its class path and ignores an
    # archive that does not match; with the same facts in the name a new one is made instead.
    facts = [str(runtime.home), runtime.version]
    for jar in sorted((spark_home / "jars").glob("*.jar")):
        status = jar.stat()
        facts.append(f"{jar}\0{status.st_size}\0{status.st_mtime_ns}")
    digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    name = f"java-{runtime.version}-{digest}.jsa".replace("+", "_")
    return ClassArchive(cache_dir / "spark" / name, java_major=runtime.major)


def may_use(environment: Mapping[str, str]) -> bool:
    """Return whether an archive may be used; `LUMOS_SPARK_ARCHIVE=off` says no."""
    return environment.get(SWITCH, "").lower() not in _OFF


def may_make(environment: Mapping[str, str]) -> bool:
    """Return whether a missing archive may be made; `off` and `existing` say no."""
    return may_use(environment) and environment.get(SWITCH, "").lower() != _EXISTING


def make_in_background(archive: ClassArchive, *, runtime: JavaRuntime, cache_dir: Path) -> bool:
    """Start a process that makes the archive and outlives this one, unless it is of no use.

    Returns:
        False where the archive is there, was tried before, or cannot be written.
    """
    if archive.is_there or archive.note.exists():
        return False
    command = trainer_command(runtime, cache_dir=cache_dir)
    try:
        archive.prepare_folder()
        if not os.access(archive.path.parent, os.W_OK):
            return False
        process = subprocess.Popen(
            command,
            cwd="/",  # a folder in use could not be unmounted, or removed on some systems
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, NotPrivateError):  # the archive only saves time
        return False
    _BACKGROUND.append(process)
    return True


def trainer_command(runtime: JavaRuntime, *, cache_dir: Path) -> list[str]:
    """Return the command that makes the archive and ends when it is made."""
    places = [str(runtime.home), runtime.version, str(runtime.major), str(cache_dir)]
    return [sys.executable, "-m", TRAINER, *places]


def _look_of(path: Path) -> str:
    """Return what changes when a file is written, or when the machine went down while it was."""
    status = path.stat()
    try:
        boot = _BOOT_ID.read_text("ascii").strip()
    except OSError:  # not Linux
        boot = ""
    return f"{status.st_size} {status.st_mtime_ns} {boot}"


def _checksum(path: Path) -> int:
    """Return a checksum that finds damage, not intent: who may write here may do anything."""
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _flag(name: str, path: Path) -> str:
    return shlex.quote(f"{name}{path}")
