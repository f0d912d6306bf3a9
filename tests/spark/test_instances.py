"""Two servers with a bucket of one name, told apart by `instance`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from command_line import Lumos, capturing
from lakes import write_lake
from s3_server import SECRET_KEY, Bucket, S3Server, running_s3
from sqs_queue import Queue

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY = "raw/orders/day=2026-03-0{}/part-0.csv"


@pytest.fixture(scope="module")
def other_server() -> Iterator[S3Server]:
    with running_s3() as server:
        yield server


@pytest.fixture
def other_bucket(s3_bucket: Bucket, other_server: S3Server) -> Bucket:
    """A bucket of the same name on another server."""
    return Bucket(other_server, s3_bucket.name)


@pytest.fixture
def buckets(s3_bucket: Bucket, other_bucket: Bucket) -> dict[str, Bucket]:
    s3_bucket.put(KEY.format(1), b"id,total\n1,9.5\n")
    other_bucket.put(KEY.format(1), b"id,total,tax\n1,9.5,0.5\n")
    return {"eu": s3_bucket, "us": other_bucket}


@pytest.fixture
def lumos(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Lumos:
    monkeypatch.chdir(tmp_path)
    return capturing(capfd)


def write_sources(buckets: dict[str, Bucket], *, with_instance: bool = True, **more: Any) -> None:
    """Write settings of a source for each bucket, whose instance is its own name."""
    sources = []
    for name, bucket in buckets.items():
        named = {"instance": name} if with_instance else {}
        sources.append({"type": "s3", "name": name, **bucket.settings(), **named, **more})
    Path("lumos.yaml").write_text(json.dumps({"sources": sources}))


def ingested(lumos: Lumos, *options: str) -> Any:
    result = lumos("ingest", *options, "--json")
    assert result.exit_code == 0, result.stderr
    return result.json()


def columns_of(lumos: Lumos, urn: str) -> list[str]:
    shown = lumos("show", urn, "--json")
    assert shown.exit_code == 0, shown.stderr
    return [field["name"] for field in shown.json()["schema"]["fields"]]


def orders_of(bucket: Bucket, instance: str | None = None) -> str:
    return f"lumos://s3/{f'{instance}/' if instance else ''}{bucket.name}/raw/orders"


def test_two_servers_with_one_bucket_name_need_an_instance(
    lumos: Lumos, buckets: dict[str, Bucket]
) -> None:
    write_sources(buckets, with_instance=False)

    refused = lumos("ingest")

    assert refused.exit_code == 2
    assert "different servers" in refused.error_line
    assert "instance: us" in refused.error_line
    assert SECRET_KEY not in refused.error_line

    write_sources(buckets)
    first = ingested(lumos)
    second = ingested(lumos)

    assert first["datasets"]["created"] == second["datasets"]["unchanged"] == 2
    eu, us = (orders_of(bucket, name) for name, bucket in buckets.items())
    assert columns_of(lumos, eu) == ["id", "total", "day"]
    assert columns_of(lumos, us) == ["id", "total", "tax", "day"]
    location = lumos("show", eu, "--json").json()["location"]
    assert location["bucket"] == buckets["eu"].name
    assert location["prefix"] == "/raw/orders/"

    profiled = lumos("profile", us, "--json")
    assert profiled.exit_code == 0, profiled.stderr
    assert profiled.json()["profiles"][0]["dataset"] == us

    buckets["us"].remove_object(KEY.format(1))
    buckets["us"].put("raw/other.csv", b"a\n1\n")
    third = ingested(lumos)
    assert third["datasets"]["removed"] == 1
    removals = [each for each in third["changes"] if each["rule"] == "dataset.removed"]
    assert [each["dataset"] for each in removals] == [us]
    assert columns_of(lumos, eu) == ["id", "total", "day"]


def test_a_new_instance_gives_datasets_new_names_and_removes_the_old_ones(
    lumos: Lumos, buckets: dict[str, Bucket]
) -> None:
    bucket = buckets["eu"]
    write_sources({"eu": bucket}, with_instance=False)
    ingested(lumos)
    for instance in ("eu", "west"):
        write_sources({"eu": bucket}, with_instance=False, instance=instance)
        renamed = ingested(lumos)["datasets"]
        assert (renamed["created"], renamed["removed"]) == (1, 1)

    write_sources({"eu": bucket}, with_instance=False)
    back = ingested(lumos)["datasets"]
    listed = lumos("search", "orders", "--json").json()["hits"]

    assert (back["created"], back["removed"]) == (1, 1)
    assert [hit["urn"] for hit in listed] == [orders_of(bucket)]


def test_events_and_run_timestamps_reach_the_source_with_an_instance(
    lumos: Lumos, buckets: dict[str, Bucket]
) -> None:
    queue = Queue(buckets["us"].server)
    queue.get_notified_by(buckets["us"])
    settings = {
        name: {"type": "s3", "name": name, "instance": name, **bucket.settings()}
        for name, bucket in buckets.items()
    }
    settings["us"] |= {"events": {"queue_url": queue.url}, "partitioning_format": "day=%Y-%m-%d"}
    Path("lumos.yaml").write_text(json.dumps({"sources": list(settings.values())}))
    ingested(lumos)
    buckets["us"].put(KEY.format(2), b"id,total,tax,coupon\n1,9.5,0.5,x\n")
    us = orders_of(buckets["us"], "us")

    watched = lumos("watch", "--once", "--no-listing", "--json")
    at_once = lumos("ingest", "--run-timestamp", "2026-03-02", "--json")

    assert watched.exit_code == at_once.exit_code == 0, watched.stderr + at_once.stderr
    (refresh,) = [json.loads(line) for line in watched.stdout.splitlines()]
    assert refresh["folders"] == {"us": ["raw/orders/day=2026-03-02"]}
    assert [(each["dataset"], each["path"]) for each in refresh["changes"]] == [(us, "coupon")]
    (partition,) = at_once.json()["partitions"]
    assert (partition["dataset"], partition["state"]) == (us, "on_time")
    assert at_once.json()["files"]["listed"] == 1


def test_a_discovery_with_an_instance_writes_settings_that_find_the_same(
    lumos: Lumos, tmp_path: Path
) -> None:
    lake = write_lake(tmp_path / "lake")

    found = lumos("discover", str(lake), "--instance", "host-1", "--write-config", "--json")
    run = lumos("ingest", "--config", "sources.yaml", "--dry-run", "--json")

    assert found.exit_code == run.exit_code == 0, found.stderr + run.stderr
    assert 'instance: "host-1"' in Path("sources.yaml").read_text()
    urns = [each["urn"] for each in run.json()["found"]]
    assert urns == [each["urn"] for each in found.json()["found"]]
    assert f"lumos://local/host-1/{lake.name}/orders" in urns
