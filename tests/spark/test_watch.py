"""Watching as a user does it: what is written somewhere shows up in the catalog."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from command_line import ROOT, Lumos, Result, capturing, check_schema, run_in_child
from given_work import open_work
from lakes import write_lake, write_settings, write_table
from lumos.core.controllers.watch_controller import WatchController
from sqs_queue import Queue

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lumos.core.controllers.results import WatchRefresh
    from s3_server import Bucket


@pytest.fixture
def lumos(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Lumos:
    monkeypatch.chdir(tmp_path)
    return capturing(capfd)


def refreshes_of(result: Result) -> list[Any]:
    assert result.exit_code == 0, result.stderr
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    for line in lines:
        check_schema(line, "watch")
    return lines


def versions_of(lumos: Lumos, name: str) -> list[str]:
    history = lumos("history", name, "--json").json()["schema_history"]
    return [version["version"] for version in history]


def test_a_schema_change_in_a_watched_folder_appears_in_the_history(
    lumos: Lumos, tmp_path: Path
) -> None:
    lake = write_lake(tmp_path / "lake")
    write_settings(tmp_path, lake, watch="{quiet_seconds: 0.2}")
    stop = threading.Event()
    seen: list[WatchRefresh] = []

    def on_refresh(refresh: WatchRefresh) -> None:
        seen.append(refresh)
        if len(seen) == 1:
            write_table(lake / "customers" / "part-1.parquet", {"id": [2], "vat": ["x"]})
            return
        if any(change.path == "vat" for change in refresh.changes):
            stop.set()

    with open_work(environment=os.environ) as work:
        WatchController(work.project, work.spark_session).watch(
            stop=stop, on_refresh=on_refresh, tell=lambda _: None
        )

    assert seen[0].reason == "start"
    assert seen[0].folders == {"lake": ("/",)}
    last = seen[-1]
    assert last.reason == "events"
    assert last.folders == {"lake": ("customers",)}
    assert last.files is not None
    assert last.files.opened <= 2
    assert last.datasets is not None
    assert last.datasets.removed == 0
    assert last.snapshot is not None
    assert len(versions_of(lumos, "customers")) == 2
    assert versions_of(lumos, "orders") == ["1.0.0"]


def test_what_s3_tells_a_queue_appears_in_the_history_and_leaves_the_queue(
    lumos: Lumos, tmp_path: Path, s3_bucket: Bucket
) -> None:
    queue = Queue(s3_bucket.server)
    queue.get_notified_by(s3_bucket)
    s3_bucket.put("shop/orders/day=1/part-0.csv", b"id,total\n1,9.5\n")
    s3_bucket.put("shop/prices/part-0.csv", b"sku,price\nA,1\n")
    source = {
        "type": "s3", "name": "shop", **s3_bucket.settings(), "events": {"queue_url": queue.url},
    }  # fmt: skip
    (tmp_path / "lumos.yaml").write_text(json.dumps({"sources": [source]}))
    first = refreshes_of(lumos("watch", "--once", "--json"))
    s3_bucket.put("shop/orders/day=2/part-0.csv", b"id,total,coupon\n1,9.5,x\n")
    queue.send("no notification")

    second = refreshes_of(lumos("watch", "--once", "--no-listing", "--json"))

    assert first[0]["datasets"]["created"] == 2
    (refresh,) = second
    assert refresh["folders"] == {"shop": ["shop/orders/day=2"]}
    assert refresh["files"]["opened"] == 1
    assert [(change["path"], change["rule"]) for change in refresh["changes"]] == [
        ("coupon", "field.added.nullable")
    ]
    assert "cannot be used: it is no JSON" in refresh["warnings"][0]
    assert versions_of(lumos, "orders") == ["1.0.0", "1.1.0"]
    assert queue.counts() == (0, 1)  # the one that nobody understands stays


def test_a_removed_folder_retires_its_dataset_and_no_other(lumos: Lumos, tmp_path: Path) -> None:
    lake = write_lake(tmp_path / "lake")
    write_settings(tmp_path, lake, watch="{quiet_seconds: 0.2}")
    stop = threading.Event()
    seen: list[WatchRefresh] = []

    def on_refresh(refresh: WatchRefresh) -> None:
        seen.append(refresh)
        if len(seen) == 1:
            (lake / "customers" / "part-0.parquet").unlink()
            (lake / "customers").rmdir()
        elif refresh.datasets and refresh.datasets.removed:
            stop.set()

    with open_work(environment=os.environ) as work:
        WatchController(work.project, work.spark_session).watch(
            stop=stop, on_refresh=on_refresh, tell=lambda _: None
        )

    assert [change.rule for change in seen[-1].changes] == ["dataset.removed"]
    assert lumos("show", "customers").exit_code == 3
    assert lumos("show", "orders").exit_code == 0


def test_a_source_without_events_is_kept_current_by_listings_beside_a_watched_folder(
    lumos: Lumos, tmp_path: Path
) -> None:
    lake = write_lake(tmp_path / "lake")
    manifest = tmp_path / "manifest.json"
    text = (ROOT / "examples" / "dbt" / "target" / "manifest.json").read_text("utf-8")
    manifest.write_text(text)
    sources = [
        {"type": "local", "name": "lake", "path": str(lake)},
        {"type": "dbt", "name": "project", "manifest_path": str(manifest)},
    ]
    watch = {"quiet_seconds": 0.2, "list_minutes": 0.02}
    (tmp_path / "lumos.yaml").write_text(json.dumps({"sources": sources, "watch": watch}))
    stop = threading.Event()
    seen: list[WatchRefresh] = []

    def on_refresh(refresh: WatchRefresh) -> None:
        seen.append(refresh)
        if len(seen) == 1:
            write_table(lake / "customers" / "part-1.parquet", {"id": [2], "vat": ["x"]})
            nodes = json.loads(text)
            nodes["nodes"].pop("model.shop.daily_revenue")
            manifest.write_text(json.dumps(nodes))
        changed = {change.rule for each in seen for change in each.changes}
        if {"field.added.nullable", "dataset.removed"} <= changed:
            stop.set()

    with open_work(environment=os.environ) as work:
        WatchController(work.project, work.spark_session).watch(
            stop=stop, on_refresh=on_refresh, tell=lambda _: None
        )

    assert [refresh.error for refresh in seen] == [None] * len(seen)
    assert seen[0].folders == {"lake": ("/",), "project": ("/",)}
    removals = [each for each in seen if "dataset.removed" in {c.rule for c in each.changes}]
    assert [each.reason for each in removals] == ["listing"]
    assert lumos("show", "lumos://postgres/shop/public/orders").exit_code == 0


@pytest.mark.spark
def test_a_signal_ends_it_and_other_commands_work_meanwhile(tmp_path: Path) -> None:
    write_settings(tmp_path, write_lake(tmp_path / "lake"))
    with subprocess.Popen(
        [sys.executable, "-m", "lumos", "watch", "--json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as watch:
        assert watch.stdout is not None
        first = json.loads(watch.stdout.readline())
        shown = run_in_child("show", "orders", folder=tmp_path)
        stored = run_in_child("snapshot", "create", folder=tmp_path)
        watch.send_signal(signal.SIGTERM)
        out, err = watch.communicate()

    assert first["error"] is None
    assert shown.exit_code == stored.exit_code == 0
    assert watch.returncode == 0, err
    assert "SIGTERM: ending after the running refresh" in err
    assert out == ""
