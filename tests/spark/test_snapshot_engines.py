"""Diff, validate, export and import give the same on Spark as in one process, byte for byte."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from command_line import FEBRUARY, JANUARY, run_here
from lumos.bootstrap import Application
from lumos.core.changes import diff_datasets
from lumos.core.errors import CorruptSnapshotError, StateError
from lumos.core.models import Snapshot
from lumos.core.store.snapshot_parts import UnseenFolderError
from lumos.core.store.snapshot_store import SnapshotStore
from lumos.feature.snapshot.bucket_work import LOCAL, BucketEngine
from lumos.feature.snapshot.diff import diff_snapshots
from lumos.feature.snapshot.engine_choice import Engine
from lumos.feature.snapshot.engines import SparkEngine
from lumos.feature.snapshot.export import document_chunks, export_document
from lumos.feature.snapshot.import_plan import ImportMode
from lumos.feature.snapshot.source import LoadedSource, SnapshotSource, StoredSource, open_source
from lumos.feature.snapshot.validation import validate, validate_document
from snapshot_samples import AT, sample_dataset, sample_snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FULL_SIZE = os.environ.get("LUMOS_TEST_FULL") == "1"
NOTES = st.dictionaries(st.integers(0, 60), st.sampled_from(["", "a", "b"]), max_size=40)
LATER = AT + timedelta(days=1)


@pytest.fixture
def on_spark(spark: SparkSession) -> SparkEngine:
    return SparkEngine(spark)


def stored(folder: Path, snapshot: Snapshot, *, part_bytes: int = 4_000) -> StoredSource:
    store = SnapshotStore(folder, part_bytes=part_bytes)
    return StoredSource(store.open(store.write(snapshot, at=AT).id))


def changed_snapshot(*, complete: bool = True) -> Snapshot:
    """The sample with datasets added, removed and edited, an edge less and a user more."""
    before = sample_snapshot(120, complete=complete)
    datasets = [
        sample_dataset(number, note="edited" if number % 7 == 0 else "")
        for number in range(5, 130)
        if number % 11
    ]
    return before.model_copy(
        update={
            "datasets": tuple(datasets),
            "lineage_edges": before.lineage_edges[3:],
            "users": (*before.users, before.users[0].model_copy(update={"username": "grace"})),
        }
    ).with_derived_parts()


def diff_text(old: SnapshotSource, new: SnapshotSource, engine: BucketEngine) -> bytes:
    found = diff_snapshots(old, new, diff_datasets=diff_datasets, engine=engine)
    return orjson.dumps(found.as_json())


@pytest.mark.parametrize(
    ("part_bytes", "complete"),
    [((4_000, 4_000), True), ((2_000, 16_000), False), ((1 << 20, 2_000), True)],
    ids=["as many parts", "fewer parts, incomplete", "one part and many"],
)
def test_a_diff_is_the_same(
    on_spark: SparkEngine, tmp_path: Path, *, part_bytes: tuple[int, int], complete: bool
) -> None:
    old = stored(tmp_path / "old", sample_snapshot(120), part_bytes=part_bytes[0])
    new = stored(tmp_path / "new", changed_snapshot(complete=complete), part_bytes=part_bytes[1])

    found = diff_text(old, new, on_spark)

    assert found == diff_text(old, new, LOCAL)
    assert b"edited" in found
    assert diff_text(new, old, on_spark) == diff_text(new, old, LOCAL)


def test_snapshots_without_parts_are_put_into_parts(on_spark: SparkEngine, tmp_path: Path) -> None:
    old = LoadedSource(sample_snapshot(20), "january.json")
    new = stored(tmp_path / "new", changed_snapshot())

    assert diff_text(old, new, on_spark) == diff_text(old, new, LOCAL)


def _flip(part: Path) -> None:
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "error"),
    [(_flip, CorruptSnapshotError), (Path.unlink, CorruptSnapshotError)],
    ids=["flipped bit", "missing part"],
)
def test_damage_is_the_same_error(
    on_spark: SparkEngine,
    tmp_path: Path,
    *,
    damage: Callable[[Path], None],
    error: type[StateError],
) -> None:
    old = stored(tmp_path / "old", sample_snapshot(120))
    new = stored(tmp_path / "new", changed_snapshot())
    for part in sorted(new.stored.folder.glob("datasets-*"))[2:5:2]:
        damage(part)
    told = []

    for engine in (LOCAL, on_spark):
        with pytest.raises(error) as raised:
            diff_text(old, new, engine)
        told.append(raised.value.as_json())

    assert told[0] == told[1]


def test_a_folder_that_workers_do_not_see_is_named(on_spark: SparkEngine, tmp_path: Path) -> None:
    old = stored(tmp_path / "old", sample_snapshot(20))
    new = stored(tmp_path / "new", changed_snapshot())
    new.stored.folder.rename(tmp_path / "elsewhere")

    with pytest.raises(UnseenFolderError, match=r"new/.* is not there") as raised:
        diff_text(old, new, on_spark)

    assert "every worker" in str(raised.value.hint)


@pytest.mark.parametrize("pretty", [True, False])
def test_an_export_is_the_same(on_spark: SparkEngine, tmp_path: Path, *, pretty: bool) -> None:
    source = stored(tmp_path / "store", changed_snapshot())

    texts = [
        b"".join(document_chunks(source, tmp_path, pretty=pretty, engine=engine))
        for engine in (LOCAL, on_spark)
    ]

    assert texts[0] == texts[1]


def _broken(document: dict[str, Any]) -> dict[str, Any]:
    """Put one of each problem into a document."""
    datasets = document["datasets"]
    for number in range(0, 60, 2):
        datasets[number]["schema"]["fields"][0]["type"] = "no type"
    datasets[61] = "nonsense"
    datasets.append(datasets[63])
    datasets[65]["ownership"]["owners"].append({"user": "nobody"})
    datasets[67]["schema"]["foreign_keys"] = [
        {"columns": ["id"], "references": "public.table_00001"},
        {"columns": ["id"], "references": "public.nowhere"},
    ]
    datasets[69]["lineage"] = {"upstream": ["lumos://s3/unknown"]}
    datasets[71]["properties"] = {"password": "hunter2"}
    document["lineage_edges"][0]["upstream_urn"] = "lumos://kafka/orders"
    document["lineage_edges"][1]["job_urn"] = "lumos://airflow/no/job"
    document["statistics"]["datasets"] = 7
    document["tags"].append(document["tags"][0])
    return document


def test_the_validation_of_a_document_is_the_same(on_spark: SparkEngine) -> None:
    content = orjson.dumps(sample_snapshot(120).to_json())
    document = _broken(orjson.loads(content))

    reports = [
        validate_document(document, "sample", engine=engine).as_json()
        for engine in (LOCAL, on_spark)
    ]

    assert orjson.dumps(reports[0]) == orjson.dumps(reports[1])
    checks = {check["check"] for check in reports[0]["checks"]}  # type: ignore[index,union-attr,call-overload]
    assert {
        "datasets",
        "duplicates.datasets",
        "duplicates.tags",
        "references.lineage",
        "references.listed_lineage",
        "references.edge_jobs",
        "references.owners",
        "references.foreign_keys",
        "secrets",
        "statistics",
    } <= checks


@pytest.mark.parametrize("damage", [None, _flip, Path.unlink], ids=["whole", "bit", "missing"])
def test_the_validation_of_a_stored_snapshot_is_the_same(
    on_spark: SparkEngine, tmp_path: Path, *, damage: Callable[[Path], None] | None
) -> None:
    store = SnapshotStore(tmp_path / "store", part_bytes=4_000)
    info = store.write(changed_snapshot(), at=AT)
    if damage:
        damage(sorted((store.root / info.id).glob("lineage_edges-*"))[0])

    reports = [
        orjson.dumps(validate("latest", store=store, engine=engine).as_json())
        for engine in (LOCAL, on_spark)
    ]

    assert reports[0] == reports[1]
    assert (b'"status":"fail"' in reports[0]) == (damage is not None)


def test_an_exported_document_validates_on_spark(on_spark: SparkEngine, tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path / "store", part_bytes=4_000)
    store.write(sample_snapshot(), at=AT)
    export_document(open_source("latest", store=store), tmp_path / "out.json", engine=on_spark)

    assert validate(str(tmp_path / "out.json"), store=store, engine=on_spark).ok


@pytest.mark.usefixtures("spark")
def test_the_commands_answer_the_same_on_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lumos.yaml").write_text("spark: {master: 'local[2]'}\n")
    commands = (
        ("diff", "--source", JANUARY, "--target", FEBRUARY, "--json"),
        ("validate", FEBRUARY, "--json"),
        ("export", "--snapshot", FEBRUARY, "--output", "-"),
    )
    for command in commands:
        answers = []
        for engine in ("local", "spark"):
            assert run_here(*command, "--engine", engine) == 0
            answers.append(capfd.readouterr().out)
        assert answers[0] == answers[1]
        assert answers[0]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("mode", list(ImportMode))
def test_an_import_is_the_same(tmp_path: Path, mode: ImportMode) -> None:
    store = SnapshotStore(tmp_path / "given", part_bytes=4_000)
    first = store.write(sample_snapshot(60), at=AT)
    second = store.write(changed_snapshot(), at=LATER)
    told = []
    for engine in (Engine.LOCAL, Engine.SPARK):
        state = tmp_path / engine
        with Application(
            state_dir=state, environment=os.environ, clock=lambda: LATER
        ) as application:
            application.importer().run(str(store.root / first.id))
            for dry_run in (True, False):
                result = application.importer().run(
                    str(store.root / second.id), mode=mode, dry_run=dry_run, engine=engine
                )
                told.append(result.as_json())
            application.snapshots.export(state / "out.json")
        told.append(orjson.loads((state / "out.json").read_bytes()))

    assert told[:3] == told[3:]


@settings(
    max_examples=20 if FULL_SIZE else 3,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    notes=st.tuples(NOTES, NOTES),
    sizes=st.tuples(st.sampled_from([1_000, 4_000, 1 << 20]), st.sampled_from([1_000, 4_000])),
    complete=st.booleans(),
)
def test_any_two_snapshots_differ_alike_on_both_engines(
    on_spark: SparkEngine,
    tmp_path_factory: pytest.TempPathFactory,
    notes: tuple[dict[int, str], dict[int, str]],
    sizes: tuple[int, int],
    complete: bool,
) -> None:
    base = sample_snapshot(0, complete=complete)
    old, new = (
        stored(
            tmp_path_factory.mktemp("any"),
            base.model_copy(
                update={
                    "datasets": tuple(
                        sample_dataset(number, note=note) for number, note in side.items()
                    )
                }
            ),
            part_bytes=size,
        )
        for side, size in zip(notes, sizes, strict=True)
    )

    assert diff_text(old, new, on_spark) == diff_text(old, new, LOCAL)
