from __future__ import annotations

import gzip
import hashlib
import io
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from lumos.core.changes import RULES_BY_ID, diff_datasets
from lumos.core.errors import UnreadableItemError
from lumos.core.formats.reader import read_file
from lumos.core.models import LumosDataset
from lumos.feature.demo.lake import (
    CUT_OFF,
    DISGUISED,
    EMPTY,
    EXPECTED_CHANGES,
    EXPECTED_UNREADABLE,
    ExpectedChange,
    evolve_lake,
    expected_datasets,
    write_lake,
)
from lumos.feature.discovery.assembling import FilePlace, dataset_names, path_place
from lumos.feature.discovery.datasets import FileTotals, Layout, SourceRoot, files_dataset
from lumos.feature.discovery.merging import SchemaVariant, merge_schemas


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("first")
    write_lake(root)
    return root


@pytest.fixture(scope="module")
def evolved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("evolved")
    write_lake(root)
    evolve_lake(root)
    return root


def files_of(root: Path) -> dict[str, tuple[str, int]]:
    return {
        path.relative_to(root).as_posix(): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mtime_ns,
        )
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def placed(root: Path) -> dict[tuple[str, ...], list[tuple[str, FilePlace]]]:
    """Group the readable files as the pipeline does: by dataset, then by what the bytes are."""
    found: dict[tuple[str, ...], dict[str | None, list[tuple[str, FilePlace]]]] = defaultdict(dict)
    for path in files_of(root):
        place = path_place(path)
        if place is not None and path not in EXPECTED_UNREADABLE:
            format_ = "csv" if path == DISGUISED else place.format
            found[place.dataset].setdefault(format_, []).append((path, place))
    return {
        dataset_names(dataset, formats)[format_]: files
        for dataset, formats in found.items()
        for format_, files in formats.items()
    }


@pytest.mark.parametrize("state", ["first", "evolved"])
def test_the_files_on_disk_are_the_datasets_that_the_manifest_promises(
    state: str, request: pytest.FixtureRequest
) -> None:
    root: Path = request.getfixturevalue(state)
    found = {
        "/".join(name): (len(files), {place.partitioning for _, place in files})
        for name, files in placed(root).items()
    }
    expected = {
        dataset.name: (dataset.files, {dataset.partitioning})
        for dataset in expected_datasets(evolved=state == "evolved")
    }
    assert found == expected


@pytest.mark.parametrize("state", ["first", "evolved"])
def test_rows_and_columns_are_those_of_the_manifest(
    state: str, request: pytest.FixtureRequest
) -> None:
    root: Path = request.getfixturevalue(state)
    files = placed(root)
    for dataset in expected_datasets(evolved=state == "evolved"):
        rows, columns = 0, set[str]()
        for path, place in files[tuple(dataset.name.split("/"))]:
            count, names = content_of(root / path, dataset.format)
            rows += count
            columns |= names | {
                key for key in place.partition_keys if f"{key}=" in (place.partitioning or "")
            }
        assert (rows, columns) == (dataset.rows, set(dataset.columns)), dataset.name


def content_of(path: Path, format_: str) -> tuple[int, set[str]]:
    import fastavro

    if format_ == "parquet":
        parquet = pq.ParquetFile(path)
        return parquet.metadata.num_rows, set(parquet.schema_arrow.names)
    if format_ == "orc":
        file = orc.ORCFile(path)
        return file.nrows, set(file.schema.names)
    if format_ == "avro":
        with path.open("rb") as stream:
            rows = [row for row in fastavro.reader(stream) if isinstance(row, dict)]
        return len(rows), {str(name) for name in rows[0]}
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    if format_ == "json":
        import json

        records = [json.loads(line) for line in text.splitlines()]
        return len(records), set(records[0])
    header, *lines = text.splitlines()
    return len(lines), set(header.split("\t" if ".tsv" in path.name else ","))


def test_there_are_about_thirty_datasets_in_all_formats_and_a_few_megabytes_at_most(
    first: Path,
) -> None:
    datasets = expected_datasets()
    assert 30 <= len(datasets) <= 40
    assert {dataset.format for dataset in datasets} == {"parquet", "csv", "json", "avro", "orc"}
    assert sum(path.stat().st_size for path in first.rglob("*") if path.is_file()) < 3_000_000


def test_the_lake_is_the_same_to_the_last_byte_and_second(first: Path, tmp_path: Path) -> None:
    write_lake(tmp_path)
    assert files_of(tmp_path) == files_of(first)


def test_evolving_twice_is_evolving_once_and_writing_takes_it_back(
    first: Path, evolved: Path, tmp_path: Path
) -> None:
    write_lake(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    evolve_lake(tmp_path)
    evolve_lake(tmp_path)
    (tmp_path / "notes.txt").rename(tmp_path.parent / "notes.txt")
    assert files_of(tmp_path) == files_of(evolved)
    (tmp_path.parent / "notes.txt").rename(tmp_path / "notes.txt")
    write_lake(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    (tmp_path / "notes.txt").unlink()
    assert files_of(tmp_path) == files_of(first)


def test_files_that_evolve_show_it_in_their_time(first: Path, evolved: Path) -> None:
    before, after = files_of(first), files_of(evolved)
    for path in before.keys() & after.keys():
        content_changed = before[path][0] != after[path][0]
        assert content_changed == (before[path][1] != after[path][1]), path
    assert before.keys() - after.keys() == {"legacy/fax_orders.csv"}
    assert {path.split("/")[1] for path in after.keys() - before.keys()} == {
        "orders",
        "clickstream",
        "influencers.jsonl",
    }


def test_the_damaged_files_are_damaged_as_promised(first: Path) -> None:
    cut_off = (first / CUT_OFF).read_bytes()
    assert cut_off.startswith(b"PAR1")
    assert not cut_off.endswith(b"PAR1")
    assert (first / EMPTY).read_bytes() == b""
    assert (first / DISGUISED).read_text().startswith("return_id,returned_on,resaleable\n")


def test_every_promised_change_names_a_rule_that_exists_and_a_dataset_of_the_lake() -> None:
    before = {dataset.name: dataset for dataset in expected_datasets()}
    after = {dataset.name: dataset for dataset in expected_datasets(evolved=True)}
    changed = {
        name
        for name in before.keys() | after.keys()
        if name not in before or name not in after or before[name].columns != after[name].columns
    }
    assert {change.rule for change in EXPECTED_CHANGES} <= RULES_BY_ID.keys()
    assert changed == {
        change.dataset for change in EXPECTED_CHANGES if change.rule != "type.changed"
    }


def test_reading_and_merging_the_files_finds_exactly_the_promised_changes(
    first: Path, evolved: Path
) -> None:
    before, after = catalog_of(first), catalog_of(evolved)
    found = [
        ExpectedChange("/".join(name), change.rule, change.path or None)
        for name in sorted(before.keys() | after.keys())
        for change in diff_datasets(before.get(name), after.get(name))
    ]
    assert found == list(EXPECTED_CHANGES)


def catalog_of(root: Path) -> dict[tuple[str, ...], LumosDataset]:
    """Build the datasets as the pipeline does, without the pipeline."""
    return {name: built(root, name, files=files) for name, files in placed(root).items()}


def built(root: Path, name: tuple[str, ...], *, files: list[tuple[str, FilePlace]]) -> LumosDataset:
    variants, layouts, formats = [], [], set()
    for path, place in files:
        content = (root / path).read_bytes()
        facts = read_file(io.BytesIO(content), size=len(content), name=path)
        formats.add(facts.format)
        variants.append(SchemaVariant(facts.schema, newest=(root / path).stat().st_mtime_ns))
        layouts.append(
            Layout(place.prefix, place.partitioning, place.partition_keys, place.partition_types)
        )
    (format_,) = formats
    return files_dataset(
        SourceRoot("local", ("lake",), path="/lake"),
        name,
        merged=merge_schemas(variants),
        layouts=layouts,
        totals=FileTotals(files=len(files), size_bytes=0),
        format=format_,
    )


@pytest.mark.parametrize("state", ["first", "evolved"])
def test_what_is_read_has_the_format_and_columns_of_the_manifest(
    state: str, request: pytest.FixtureRequest
) -> None:
    found = catalog_of(request.getfixturevalue(state))
    for expected in expected_datasets(evolved=state == "evolved"):
        dataset = found[tuple(expected.name.split("/"))]
        assert dataset.format == expected.format
        assert tuple(field.name for field in dataset.schema.fields) == expected.columns
        assert dataset.location is not None
        assert dataset.location.partitioning == expected.partitioning


@pytest.mark.parametrize("path", EXPECTED_UNREADABLE)
def test_a_damaged_file_is_refused(path: str, first: Path) -> None:
    content = (first / path).read_bytes()
    with pytest.raises(UnreadableItemError):
        read_file(io.BytesIO(content), size=len(content), name=path)
