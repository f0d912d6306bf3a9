"""Snapshots on the workers of a real cluster, with `lumos` as a process of its own."""

from __future__ import annotations

from pathlib import Path

from command_line import run_in_child
from lumos.core.store.snapshot_store import SnapshotStore
from snapshot_samples import AT, sample_snapshot


def test_workers_compare_what_one_process_compares(tmp_path: Path, spark_cluster_url: str) -> None:
    options = '{"spark.executor.memory": "512m", "spark.cores.max": 2}'
    settings = f'spark: {{master: "{spark_cluster_url}", conf: {options}}}\n'
    (tmp_path / "lumos.yaml").write_text(settings)
    store = SnapshotStore(tmp_path / ".lumos" / "snapshots", part_bytes=4_000)
    old = store.write(sample_snapshot(40), at=AT).id
    new = store.write(sample_snapshot(50, note="edited"), at=AT).id
    command = ("diff", "--source", old, "--target", new, "--json")

    here, there = (
        run_in_child(*command, "--engine", engine, folder=tmp_path) for engine in ("local", "spark")
    )

    assert there.exit_code == 0, there.stderr
    assert there.stdout == here.stdout
    assert here.json()["summary"]["changes"]
