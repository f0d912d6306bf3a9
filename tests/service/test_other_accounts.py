"""Another account of the machine finds the secrets of a running command nowhere.

Runs as root, because only root can take the place of another account.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from command_line import run_in_child
from held_ingest import SECRETS, held_ingest, write_bucket_project
from lumos.core.store.state_folder import RUN_PREFIX
from lumos.spark.engine_record import FOLDER_VARIABLE, EngineFolder
from open_ports import descendants, greeted, listening
from s3_server import Bucket
from spark_wire import REFUSED, blocks

pytestmark = [pytest.mark.service, pytest.mark.spark]
OF_PROCESSES = ("cmdline", "environ", "status", "maps", "mountinfo")


class Place(NamedTuple):
    """A project at a place where every account can look."""

    root: Path

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def engine(self) -> EngineFolder:
        return EngineFolder(self.root / "cache" / "engine")

    @property
    def environment(self) -> dict[str, str]:
        return {
            "TMPDIR": str(self.root / "tmp"),
            "XDG_CACHE_HOME": str(self.root / "cache"),
            FOLDER_VARIABLE: str(self.engine.folder),
        }


@pytest.fixture
def place(s3_bucket: Bucket) -> Iterator[Place]:
    assert os.geteuid() == 0, "this test takes the place of another account, which needs root"
    before = os.umask(0o022)
    root = Path(tempfile.mkdtemp(prefix="lumos-accounts-", dir=os.path.join(os.sep, "tmp")))
    try:
        root.chmod(0o755)
        (root / "tmp").mkdir()
        (root / "tmp").chmod(0o1777)
        (root / "cache").mkdir()
        place = Place(root)
        place.project.mkdir()
        write_bucket_project(place.project, s3_bucket)
        yield place
    finally:
        os.umask(before)
        shutil.rmtree(root, ignore_errors=True)


def as_nobody(look: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what a function finds in a process of another account."""
    account = pwd.getpwnam("nobody")
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads play no part in it
        child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            os.setgroups([])
            os.setgid(account.pw_gid)
            os.setuid(account.pw_uid)
            with os.fdopen(writing, "w") as pipe:
                json.dump(look(), pipe)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        found: dict[str, Any] = json.load(pipe)
    os.waitpid(child, 0)
    return found


def look_around(
    place: Place, pids: Sequence[int], *, ports: Sequence[int], secrets: Sequence[bytes]
) -> dict[str, Any]:
    """Look for secrets in all files, processes and ports; say where, and how much was seen."""
    leaks: list[str] = []
    seen = {"files": 0, "processes": 0, "spark ports": 0, "environments": 0}

    def note(where: str, content: bytes) -> None:
        if any(secret in content for secret in secrets):
            leaks.append(where)

    for path in _files([place.root, Path(os.sep, "dev", "shm"), *_of_java()]):
        with suppress(OSError):
            note(str(path), path.read_bytes())
            seen["files"] += 1
    for pid in pids:
        for name in OF_PROCESSES:
            with suppress(OSError):
                note(f"/proc/{pid}/{name}", Path(f"/proc/{pid}/{name}").read_bytes())
                seen["processes"] += name == "cmdline"
                seen["environments"] += name == "environ"
    for port in ports:
        answers = list(blocks(port))
        seen["spark ports"] += answers[0] != REFUSED
        leaks += [f"port {port} gave a block" for answer in answers if answer.granted]
        for content in [*(answer.content for answer in answers), *greeted(port)]:
            note(f"port {port}", content)
    runs = [name for name in os.listdir(place.root / "tmp") if name.startswith(RUN_PREFIX)]
    opened = [name for name in runs if os.access(place.root / "tmp" / name, os.R_OK | os.X_OK)]
    return {"leaks": leaks, "seen": seen, "runs": runs, "opened": opened}


def _files(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        for root, _, names in os.walk(folder):
            for name in names:
                path = Path(root, name)
                with suppress(OSError):
                    if path.is_file():
                        yield path


def _of_java() -> list[Path]:
    return list(Path(os.sep, "tmp").glob("hsperfdata_*"))


@pytest.mark.parametrize("through_engine", [False, True], ids=["own Spark", "engine"])
def test_another_account_finds_the_secrets_of_a_running_ingest_nowhere(
    s3_bucket: Bucket, place: Place, through_engine: bool
) -> None:
    with ExitStack() as stack:
        secrets = list(SECRETS)
        pids: set[int] = set()
        if through_engine:
            started = run_in_child(
                "engine", "start", folder=place.project, environment=place.environment
            )
            assert started.exit_code == 0, started.stderr
            stack.callback(
                run_in_child,
                "engine", "stop", folder=place.project, environment=place.environment,
            )  # fmt: skip
            record = place.engine.read()
            assert record is not None
            secrets.append(record.token.encode())
            pids |= descendants(record.pid)
        with held_ingest(place.project, s3_bucket, place.environment) as process:
            pids |= descendants(process.pid)
            ports = sorted(listening(pids))
            found = as_nobody(
                lambda: look_around(place, sorted(pids), ports=ports, secrets=secrets)
            )

    assert found["leaks"] == []
    assert found["seen"]["files"] > 0, "it could look into the project"
    assert found["seen"]["processes"] >= 2, "it saw the command and the JVM"
    assert found["seen"]["environments"] == 0
    assert found["seen"]["spark ports"] == 2
    assert len(found["runs"]) == 1
    assert found["opened"] == []
