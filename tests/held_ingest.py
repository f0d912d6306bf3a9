"""A real ingest of a bucket that waits in the middle of its work, while a test looks at it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from s3_server import REGION, Bucket, Outcome, Request

ACCESS_KEY = "AKIAPLANTEDACCESSKEY"
SECRET_KEY = "planted-secret-4f9d1c7be2a84f06"
SECRETS = (ACCESS_KEY.encode(), SECRET_KEY.encode())
_SECONDS = 300
SETTINGS = """
sources:
  - type: s3
    name: lake
    bucket: {bucket}
    endpoint_url: {url}
    region: {region}
    access_key_id: {key}
    secret_access_key: {secret}
"""


class Hold:
    """Lets the server answer reads only when the test says so."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.released = threading.Event()

    def __call__(self, request: Request) -> Outcome:
        if not request.is_listing and request.method == "GET":
            self.reached.set()
            self.released.wait(_SECONDS)
        return None


def write_bucket_project(folder: Path, bucket: Bucket) -> None:
    """Put a file into the bucket, and write the settings of a project that ingests it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2], "amount": [1.5, 2.5]}), content)
    bucket.put("orders/part-0.parquet", content.getvalue())
    settings = SETTINGS.format(
        bucket=bucket.name,
        url=bucket.server.url,
        region=REGION,
        key=ACCESS_KEY,
        secret=SECRET_KEY,
    )
    file = folder / "lumos.yaml"
    file.touch(mode=0o600)
    file.write_text(settings)


@contextmanager
def held_ingest(
    folder: Path,
    bucket: Bucket,
    environment: Mapping[str, str] | None = None,
    *,
    exit_code: int = 0,
) -> Iterator[subprocess.Popen[str]]:
    """Yield an ingest that reads a file on Spark; afterwards it goes on and must end so."""
    hold = Hold()
    bucket.server.faults.append(hold)
    process = subprocess.Popen(
        [sys.executable, "-m", "lumos", "ingest"],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while not hold.reached.wait(0.2):
            assert process.poll() is None, process.communicate()
        yield process
        hold.released.set()
        _, errors = process.communicate(timeout=_SECONDS)
        assert process.returncode == exit_code, errors
    finally:
        hold.released.set()
        process.kill()
        process.communicate()
