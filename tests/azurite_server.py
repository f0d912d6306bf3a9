"""Azurite, Microsoft's own emulator of Azure Blob Storage, for tests of the service tier."""

from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fetching import fetched, kept_folder
from ports import free_port
from s3_server import wait_for

ACCOUNT = "devstoreaccount1"
# The key that Azurite documents for everybody.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_PACKAGE = "azurite@3.37.0"
_VERSION = "2021-08-06"


class AzuriteServer(NamedTuple):
    url: str

    def settings(self, container: str, **more: Any) -> dict[str, Any]:
        return {
            "account": ACCOUNT,
            "container": container,
            "account_key": KEY,
            "endpoint_url": self.url,
            **more,
        }

    def create(self, container: str) -> None:
        """Make a container; obstore can only fill one."""
        now = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
        said = (
            "PUT" + "\n" * 12 + f"x-ms-date:{now}\nx-ms-version:{_VERSION}\n"
            f"/{ACCOUNT}/{ACCOUNT}/{container}\nrestype:container"
        )
        signed = hmac.new(base64.b64decode(KEY), said.encode(), hashlib.sha256).digest()
        headers = {
            "x-ms-date": now,
            "x-ms-version": _VERSION,
            "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(signed).decode()}",
            "Content-Length": "0",
        }
        where = f"{self.url}/{container}?restype=container"
        request = urllib.request.Request(where, method="PUT", headers=headers)  # noqa: S310
        urllib.request.urlopen(request, timeout=30).close()  # noqa: S310

    def put_folder(self, container: str, folder: Path) -> None:
        from obstore.store import AzureStore

        store = AzureStore(
            container,
            account_name=ACCOUNT,
            account_key=KEY,
            endpoint=self.url,
            client_options={"allow_http": True},
        )
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                store.put(path.relative_to(folder).as_posix(), path.read_bytes())


@contextmanager
def running_azurite() -> Iterator[AzuriteServer]:
    """Run Azurite from npm, which is fetched once for each machine."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.fail("npm is not installed; run: make services")
    install = [npm, "install", "--silent", "--no-audit", "--no-fund", _PACKAGE]
    program = kept_folder(_PACKAGE, lambda place: fetched(install, cwd=place, timeout=600))
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        command = [
            str(program / "node_modules" / ".bin" / "azurite-blob"), "--disableTelemetry",
            "--inMemoryPersistence", "--silent", "--blobHost", "127.0.0.1", "--blobPort", str(port),
        ]  # fmt: skip
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
        try:
            wait_for(port, process)
            yield AzuriteServer(f"http://127.0.0.1:{port}/{ACCOUNT}")
        finally:
            process.kill()
            process.wait()
