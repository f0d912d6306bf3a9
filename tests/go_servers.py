"""Storage servers that are built from Go modules, for tests of the service tier.

versitygw is a full S3 server that checks every signature; fake-gcs-server stands in for Google.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fetching import fetched
from ports import free_port
from s3_server import ACCESS_KEY, REGION, SECRET_KEY, S3Server, proxied, wait_for

VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
FAKE_GCS = "github.com/fsouza/fake-gcs-server@v1.56.1"


@contextmanager
def running_versitygw(folder: Path) -> Iterator[S3Server]:
    """Serve a folder, whose folders are the buckets, behind the proxy that counts."""
    port = free_port()
    keys = ["--access", ACCESS_KEY, "--secret", SECRET_KEY, "--region", REGION]
    command = [_built(VERSITYGW), "--port", f"127.0.0.1:{port}", *keys, "--quiet"]
    started = _running([*command, "posix", "--nometa", str(folder)], port)
    with started, proxied(f"http://127.0.0.1:{port}") as server:
        yield server


@contextmanager
def running_fake_gcs(folder: Path) -> Iterator[str]:
    """Serve a folder, whose folders are the buckets; yields the address."""
    port = free_port()
    address = f"127.0.0.1:{port}"
    where = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-public-host", address]
    with _running([_built(FAKE_GCS), *where, "-backend", "memory", "-data", str(folder)], port):
        yield f"http://{address}"


@contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port, process)
        yield
    finally:
        process.kill()
        process.wait()


def _built(module: str) -> str:
    """Return the program of a module; it is built once for each machine."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("Go is not installed")
    place = Path.home() / ".cache" / "lumos-tests" / "go"
    program = place / module.partition("@")[0].rpartition("/")[2]
    if not program.exists():
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "GOBIN": str(place), "GOFLAGS": "-mod=mod"}
            fetched([go, "install", module], cwd=folder, env=environment, timeout=1200)
    return str(program)
