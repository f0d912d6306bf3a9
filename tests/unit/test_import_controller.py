"""Imports on the real embedded catalog: faithful, repeatable, and safe to kill."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from given_work import open_work
from lumos.core.controllers.catalog_controller import CatalogController
from lumos.core.controllers.import_controller import ImportController
from lumos.core.controllers.snapshot_controller import SnapshotController
from lumos.core.models import Snapshot
from lumos.core.runtime.unit_of_work import UnitOfWork
from lumos.feature.importing.plan import ImportMode

FULL_SIZE = os.environ.get("LUMOS_TEST_FULL") == "1"
HEADER: dict[str, Any] = {
    "snapshot_schema_version": 1,
    "lumos_version": "0",
    "export_timestamp": "2026-01-01T00:00:00Z",
    "source_platform": "x",
}
A, B, C = (f"lumos://s3/{name}" for name in "abc")
JOB = "lumos://airflow/dag/job"


def document(*datasets: dict[str, Any], **sections: Any) -> dict[str, Any]:
    return {**HEADER, "datasets": list(datasets), **sections}


def dataset(urn: str, **parts: Any) -> dict[str, Any]:
    return {"urn": urn, "name": urn.rsplit("/", 1)[1], "platform": "s3", **parts}


@pytest.fixture
def work(tmp_path: Path) -> Iterator[UnitOfWork]:
    with open_work(state_dir=tmp_path / "state", environment={}) as work:
        yield work


class Catalog:
    """A catalog that documents are imported into and exported from."""

    def __init__(self, work: UnitOfWork, folder: Path) -> None:
        self._work = work
        self._folder = folder

    def take(self, content: dict[str, Any], mode: ImportMode = ImportMode.UPDATE) -> Any:
        (self._folder / "in.json").write_text(json.dumps(content))
        return ImportController(self._work).run(str(self._folder / "in.json"), mode=mode)

    def export(self) -> Snapshot:
        return SnapshotController(self._work).opened("embedded").load()

    def versions(self, urn: str) -> list[str]:
        history = CatalogController(self._work).history(urn).schema_history
        return [version.version for version in history]


@pytest.fixture
def catalog(work: UnitOfWork, tmp_path: Path) -> Catalog:
    return Catalog(work, tmp_path)


def test_an_edge_with_a_job_gets_no_twin(catalog: Catalog) -> None:
    edge = {"upstream_urn": A, "downstream_urn": B, "job_urn": JOB, "lineage_type": "COPIED"}
    content = document(dataset(A), dataset(B), lineage_edges=[edge])

    for _ in range(2):
        catalog.take(content)

    (only,) = catalog.export().lineage_edges
    assert (only.job_urn, only.lineage_type) == (JOB, "COPIED")
    assert catalog.versions(B) == ["1.0.0"]


def test_a_dataset_that_comes_with_a_version_goes_on_from_it(catalog: Catalog) -> None:
    field = {"name": "id", "type": "INT64"}
    catalog.take(document(dataset(A, version="3.2.1", schema={"fields": [field]})))
    catalog.take(document(dataset(A, version="1.0.0", schema={"fields": []}), dataset(B)))
    assert catalog.versions(A) == ["3.2.1"]  # no columns said, none removed

    other = {"name": "other", "type": "INT64"}
    catalog.take(document(dataset(A, version="1.0.0", schema={"fields": [other]})))

    assert catalog.versions(A) == ["3.2.1", "4.0.0"]
    assert catalog.versions(B) == ["1.0.0"]


def test_a_new_edge_into_a_dataset_that_the_snapshot_lacks_makes_a_version(
    catalog: Catalog,
) -> None:
    catalog.take(document(dataset(A), dataset(B)))
    edge = {"upstream_urn": A, "downstream_urn": B}
    result = catalog.take(document(dataset(C), lineage_edges=[edge]))

    assert result.lineage_edges == 1
    assert catalog.versions(B) == ["1.0.0", "1.0.1"]


@pytest.mark.parametrize("mode", [ImportMode.UPDATE, ImportMode.MERGE, ImportMode.SKIP_EXISTING])
def test_people_keep_what_a_snapshot_does_not_say(catalog: Catalog, mode: ImportMode) -> None:
    catalog.take(document(users=[{"username": "ada", "email": "ada@shop.example"}]))
    catalog.take(document(users=[{"username": "ada"}]), mode)

    (ada,) = catalog.export().users
    assert ada.email == "ada@shop.example"


def test_what_cannot_be_stored_is_named_and_the_rest_is_imported(catalog: Catalog) -> None:
    long = "lumos://s3/" + "x" * 3_000
    result = catalog.take(
        document(
            dataset(A),
            dataset(long),
            dataset(B),
            lineage_edges=[
                {"upstream_urn": long, "downstream_urn": C},
                {"upstream_urn": A, "downstream_urn": B},
            ],
            identity_map={long: {"datahub": "x"}, A: {"datahub": "y"}},
        )
    )

    assert result.created == (A, B)
    assert len(result.report.failed) == 3
    exported = catalog.export()
    assert [each.urn for each in exported.datasets] == [A, B]
    assert [edge.key[:2] for edge in exported.lineage_edges] == [(A, B)]
    assert exported.identity_map == {A: {"datahub": "y"}}


def test_a_dry_run_and_a_wrong_input_leave_no_trace(work: UnitOfWork, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text(json.dumps(document(dataset(A))))

    planned = ImportController(work).run(str(tmp_path / "in.json"), dry_run=True)

    assert planned.created == (A,)
    assert not (tmp_path / "state").exists()


def test_an_import_killed_at_any_moment_is_finished_by_the_next(tmp_path: Path) -> None:
    edges = [
        {"upstream_urn": f"lumos://s3/d{i}", "downstream_urn": f"lumos://s3/d{i + 1}"}
        for i in range(599)
    ]
    content = document(
        *(dataset(f"lumos://s3/d{number}") for number in range(600)),
        lineage_edges=[{**edge, "job_urn": JOB} for edge in edges],
        users=[{"username": "ada"}],
    )
    (tmp_path / "in.json").write_text(json.dumps(content))
    command = [sys.executable, "-m", "lumos", "import", "--input", "in.json", "--batch-size", "50"]
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    for _ in range(40 if FULL_SIZE else 8):
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL) as child:
            time.sleep(chance.uniform(0.3, 1.6))
            child.send_signal(signal.SIGKILL)

    subprocess.run(command, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)

    with open_work(state_dir=tmp_path / ".lumos", environment={}) as work:
        catalog = Catalog(work, tmp_path)
        exported = catalog.export()
        assert len(exported.datasets) == 600, seed
        assert len(exported.lineage_edges) == 599, seed
        assert len(exported.users) == 1, seed
        for number in range(0, 600, 37):
            versions = catalog.versions(f"lumos://s3/d{number}")
            assert versions == ["1.0.0"], seed
