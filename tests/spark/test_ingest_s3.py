"""Ingestion of a bucket as a user runs it, with every request counted by the server."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_line import run_here
from s3_server import ACCESS_KEY, REGION, SECRET_KEY, Answer, Bucket, Request

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS = 5
SETTINGS = """
sources:
  - type: s3
    name: lake
    bucket: {bucket}
    prefixes: [raw, other]
    endpoint_url: {url}
    region: {region}
    access_key_id: {key}
    secret_access_key: {secret}
    retries: 1
    retry_seconds: 2
"""


@pytest.fixture
def bucket(
    spark: SparkSession, s3_bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Bucket:
    content = io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2], "amount": [1.5, 2.5]}), content)
    for day in range(1, DAYS + 1):
        s3_bucket.put(f"raw/orders/dt=2026-03-0{day}/part-0.parquet", content.getvalue())
    s3_bucket.put("other/people.csv", b"id,name\n1,Ada\n")
    s3_bucket.put("elsewhere/x.csv", b"a\n1\n")
    written = SETTINGS.format(
        bucket=s3_bucket.name,
        url=s3_bucket.server.url,
        region=REGION,
        key=ACCESS_KEY,
        secret=SECRET_KEY,
    )
    (tmp_path / "lumos.yaml").write_text(written)
    monkeypatch.chdir(tmp_path)
    return s3_bucket


def ingested(capfd: pytest.CaptureFixture[str], *options: str) -> Any:
    capfd.readouterr()
    run_here("ingest", *options, "--json")
    out, _ = capfd.readouterr()
    assert SECRET_KEY not in out
    return json.loads(out)


def test_each_object_takes_one_request_and_none_the_second_time(
    bucket: Bucket, capfd: pytest.CaptureFixture[str]
) -> None:
    first = ingested(capfd)
    assert first["datasets"]["created"] == 2
    paths = sorted(request.path for request in bucket.server.reads())
    orders = [f"/{bucket.name}/raw/orders/dt=2026-03-0{day}/part-0.parquet" for day in range(1, 6)]
    assert paths == sorted([*orders, f"/{bucket.name}/other/people.csv"])
    bucket.server.requests.clear()
    second = ingested(capfd)
    assert second["datasets"]["unchanged"] == 2
    assert bucket.server.reads() == []
    assert {request.prefix for request in bucket.server.listings()} == {"raw/", "other/"}


def test_keys_of_the_greatest_length_are_stored_under_shortened_urns(
    bucket: Bucket, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        key = f"raw/{'表' * 250}/{'表' * 80}/{name}.csv"
        assert len(key.encode()) <= 1024
        bucket.put(key, b"id\n1\n")

    first = ingested(capfd)
    second = ingested(capfd)

    assert first["datasets"]["created"] == 4, first["items"]
    assert second["datasets"]["unchanged"] == 4


FAULTS: dict[str, Callable[[Request], Answer | None]] = {
    "a forbidden prefix": lambda it: Answer(403, "AccessDenied") if it.prefix == "raw/" else None,
    "throttling": lambda it: Answer(503, "SlowDown") if it.prefix == "raw/" else None,
    "a bucket gone": lambda it: Answer(404, "NoSuchBucket"),
    "clock skew": lambda it: Answer(403, "RequestTimeTooSkewed"),
    "bad credentials": lambda it: Answer(403, "InvalidAccessKeyId"),
    "a bucket that vanishes": lambda it: None if it.is_listing else Answer(404, "NoSuchBucket"),
}


def test_whatever_goes_wrong_is_named_and_nothing_is_removed(
    bucket: Bucket, capfd: pytest.CaptureFixture[str]
) -> None:
    ingested(capfd)
    for name, fault in FAULTS.items():
        bucket.server.faults[:] = [fault]
        capfd.readouterr()
        vanishes = name == "a bucket that vanishes"
        run_here("ingest", *(["--full", "--json"] if vanishes else []))
        printed, errors = capfd.readouterr()
        said = printed + errors
        if vanishes:
            failed = [item for item in json.loads(printed)["items"] if item["status"] == "failed"]
            assert failed
            assert all(item["retryable"] for item in failed), "another run may read them"
        assert f"s3://{bucket.name}" in said, name
        assert not re.search("[1-9][0-9]* removed", said), name
        assert SECRET_KEY not in said
    bucket.server.faults.clear()
    again = ingested(capfd)
    assert again["files"]["unreadable"] == 0, "what could not be read is tried again"
    counts = again["datasets"]
    assert (counts["created"], counts["removed"]) == (0, 0)
    assert counts["updated"] == 2, "the marks of files that could not be read are gone"
    assert counts["found"] == 2
