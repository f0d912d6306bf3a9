"""The stages on small frames, with plain functions in the place of readers."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from typing_extensions import override

from lumos.core.progress import SILENT
from lumos.spark import driver_listing
from lumos.spark.driver_listing import DriverListing
from lumos.spark.failures import SparkRunError
from lumos.spark.file_index import FileIndex, KnownUnits, Origin, Session
from lumos.spark.parquet_rows import count_rows, scan_rows
from lumos.spark.pipeline import FileCounts, Pipeline
from lumos.spark.stages.arrow_rows import names_of
from lumos.spark.stages.datasets import DatasetPieces
from lumos.spark.stages.part_files import Part, PartWriter, take_over
from lumos.spark.stages.rows import (
    ITEMS,
    BuiltDataset,
    FileRow,
    ItemToRead,
    ListedFile,
    ReadOutcome,
    RowPlace,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORIGIN = Origin("1", {"lake": "/lake"})
UNITS: dict[Path, KnownUnits] = {}
"""What the listings of runs were, by the folders that the runs wrote to."""
FILES = [
    ("orders/day=1/part-0.parquet", 10, 1),
    ("orders/day=2/part-0.parquet", 20, 2),
    ("orders/day=2/broken.parquet", 5, 2),
    ("orders/day=2/closed.parquet", 5, 2),
    ("customers/all.csv", 7, 3),
    ("_SUCCESS", 0, 3),
]


class Sizes:
    """Adds up the sizes of the files of a dataset."""

    def __init__(self, state: bytes = b"0") -> None:
        self.total = int(state)

    def add(self, file: FileRow) -> None:
        if file.reason is None:  # a file that cannot be read is only there
            self.total += file.size

    def merge(self, other: Sizes) -> None:
        self.total += other.total

    def to_bytes(self) -> bytes:
        return str(self.total).encode()


@dataclass(frozen=True)
class Functions:
    files: list[tuple[str, int, int]] = field(default_factory=lambda: FILES)
    table_formats: tuple[str, ...] = ("delta", "iceberg")

    def fingerprint_unit(self, source: str, unit: str) -> str | None:
        return None

    def list_unit(self, source: str, unit: str) -> Iterator[ListedFile]:
        for path, size, mtime in self.files:
            if "_log/" in path:
                root = path.split("/")[0].encode()
                yield ListedFile(source, root, size, mtime, None, "delta", True)
            else:
                yield ListedFile(source, path.encode(), size, mtime)
        if unit == "closed":
            yield ListedFile(source, b"secret", None, None, error="it cannot be listed")

    def in_tables(self, tables: Iterable[tuple[str, bytes, str]]) -> Callable[[str, bytes], bool]:
        roots = {(source, root) for source, root, _ in tables}
        return lambda source, path: (source, path.split(b"/")[0]) in roots

    def read_items(self, items: Iterable[ItemToRead]) -> Iterator[tuple[ItemToRead, ReadOutcome]]:
        for item in items:
            name, _, rest = item.path.decode().partition("/")
            place = RowPlace(name, f"/{name}/", rest.split("/")[0])
            if item.kind:
                yield item, ReadOutcome(place=place, format=item.kind, fingerprint="t", schema="{}")
            elif name.startswith("_"):
                yield item, ReadOutcome(skipped="")
            elif "broken" in rest:
                yield item, ReadOutcome(place=place, reason="it is cut off")
            elif "closed" in rest:
                yield item, ReadOutcome(place=place, reason="no permission", retry=True)
            else:
                kind, print_ = rest.rsplit(".", 1)[1], str(item.size % 3)
                yield (
                    item,
                    ReadOutcome(
                        place=place, format=kind, fingerprint=print_, rows=item.size, schema="{}"
                    ),
                )

    def new_fold(self) -> Sizes:
        return Sizes()

    def build_datasets(self, pieces: DatasetPieces) -> Iterator[BuiltDataset]:
        total = sum(Sizes(state).total for state in pieces.states)
        text = f"{pieces.dataset} {total} {sorted(pieces.schemas)}"
        urn = f"lumos://local/{pieces.dataset}"
        yield BuiltDataset(pieces.source, pieces.dataset, urn, text, "any", text, None)


def run_of(
    spark: SparkSession, tmp_path: Path, *, files: list[tuple[str, int, int]], unit: str = "open"
) -> tuple[Pipeline, FileCounts]:
    """Run the pipeline over the files; what it wrote is kept when the next one begins."""
    index = FileIndex(tmp_path / "index")
    for work in sorted(tmp_path.glob("work*")):
        if (work / "items").exists():
            index.replace(work, ORIGIN, run=work.name, units=UNITS[work])
    number = len(list(tmp_path.glob("work*")))
    work = tmp_path / f"work{number}"
    pipeline = Pipeline(lambda: spark, Functions(files), work=work, progress=SILENT)
    counts = pipeline.run([("lake", unit)], index.read(lambda: spark, ORIGIN))
    UNITS[work] = pipeline.units
    return pipeline, counts


def documents(pipeline: Pipeline) -> list[str]:
    return [built.document for built in pipeline.found()]


def test_files_become_datasets_and_problems_are_named(spark: SparkSession, tmp_path: Path) -> None:
    pipeline, counts = run_of(spark, tmp_path, files=FILES, unit="closed")

    assert counts == FileCounts(listed=5, opened=5, unchanged=0)
    assert documents(pipeline) == ["customers 7 ['1']", "orders 30 ['1', '2']"]
    assert [(each.path, each.reason) for each in pipeline.unreadable()] == [
        (b"orders/day=2/broken.parquet", "it is cut off"),
        (b"orders/day=2/closed.parquet", "no permission"),
    ]
    assert [each.path for each in pipeline.unlisted()] == [b"secret"]
    assert {each.dataset for each in pipeline.unreadable()} == {"orders"}
    assert pipeline.sources_with_files() == {"lake"}


def test_the_second_run_opens_only_what_may_have_become_readable(
    spark: SparkSession, tmp_path: Path
) -> None:
    first, _ = run_of(spark, tmp_path, files=FILES)
    found = documents(first)
    second, counts = run_of(spark, tmp_path, files=FILES)

    assert counts == FileCounts(listed=5, opened=1, unchanged=4)
    assert documents(second) == found
    assert second.written == tmp_path / "work1"


def test_a_run_without_news_writes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    files = [file for file in FILES if "closed" not in file[0]]
    first, _ = run_of(spark, tmp_path, files=files)
    found = documents(first)
    second, counts = run_of(spark, tmp_path, files=files)

    assert counts == FileCounts(listed=4, opened=0, unchanged=4)
    assert second.written is None
    assert documents(second) == found
    assert [each.reason for each in second.unreadable()] == ["it is cut off"]


def test_files_that_come_change_and_go_move_only_their_datasets(
    spark: SparkSession, tmp_path: Path
) -> None:
    before = [("a/1.csv", 1, 1), ("a/2.csv", 2, 1), ("b/1.csv", 4, 1), ("c/1.csv", 8, 1)]
    after = [("a/1.csv", 1, 1), ("a/2.csv", 5, 2), ("c/1.csv", 8, 1), ("d/1.csv", 16, 1)]
    first, _ = run_of(spark, tmp_path, files=before)
    states = [(built.urn, built.hash) for built in first.found()]

    second, counts = run_of(spark, tmp_path, files=after)

    assert counts == FileCounts(listed=4, opened=2, unchanged=2)
    assert documents(second) == ["a 6 ['1', '2']", "c 8 ['2']", "d 16 ['1']"]
    differing = list(second.differing(states))
    assert [getattr(each, "urn", each) for each in differing] == [
        "lumos://local/a",
        "lumos://local/b",
        "lumos://local/d",
    ]
    assert [each for each in differing if isinstance(each, str)] == ["lumos://local/b"]


def test_what_was_read_before_stays_while_a_file_cannot_be_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    run_of(spark, tmp_path, files=[("a/day=1/closed.csv", 1, 1)])
    whole = [("a/day=1/x.csv", 3, 1), ("a/day=2/x.csv", 4, 1)]
    run_of(spark, tmp_path, files=whole)
    index = FileIndex(tmp_path / "index")
    index.replace(tmp_path / "work1", ORIGIN, run="whole")

    class Closing(Functions):
        @override
        def read_items(
            self, items: Iterable[ItemToRead]
        ) -> Iterator[tuple[ItemToRead, ReadOutcome]]:
            for item in items:
                yield item, ReadOutcome(place=RowPlace("a", "/a/", ""), reason="no", retry=True)

    changed = [("a/day=1/x.csv", 3, 1), ("a/day=2/x.csv", 9, 2)]
    for number in ("one", "two"):  # once is not enough: it must also be carried on
        again = Pipeline(lambda: spark, Closing(changed), work=tmp_path / number, progress=SILENT)
        again.run([("lake", "open")], index.read(lambda: spark, ORIGIN))

        assert documents(again) == ["a 7 ['0', '1']"]
        assert again.written is not None
        index.replace(again.written, ORIGIN, run=number)


def test_a_table_is_one_item_and_its_files_are_its_own(spark: SparkSession, tmp_path: Path) -> None:
    files = [("t/_log/0.json", 3, 1), ("t/_log/1.json", 4, 2), ("t/x.csv", 9, 1), ("b/1.csv", 1, 1)]
    pipeline, counts = run_of(spark, tmp_path, files=files)
    assert counts == FileCounts(listed=2, opened=2)
    assert documents(pipeline) == ["b 1 ['1']", "t 7 ['t']"]

    _, counts = run_of(spark, tmp_path, files=[*files, ("t/y.csv", 9, 9)])
    assert counts == FileCounts(listed=2, unchanged=2)
    _, counts = run_of(spark, tmp_path, files=[*files, ("t/_log/2.json", 0, 0)])
    assert counts == FileCounts(listed=2, opened=1, unchanged=1)


def test_a_look_at_some_folders_leaves_all_others_as_they_were(
    spark: SparkSession, tmp_path: Path
) -> None:
    before = [("a/1.csv", 1, 1), ("ab/1.csv", 2, 1), ("t/_log/0.json", 3, 1), ("t/x.csv", 9, 1)]
    run_of(spark, tmp_path, files=before)
    index = FileIndex(tmp_path / "index")
    index.replace(tmp_path / "work0", ORIGIN, run="whole")
    now = Functions([("a/2.csv", 4, 1), ("t/part/y.csv", 9, 9)])
    pipeline = Pipeline(lambda: spark, now, work=tmp_path / "work1", progress=SILENT)

    counts = pipeline.run(
        [("lake", "any")], index.read(lambda: spark, ORIGIN), scope={"lake": (b"a", b"t/part")}
    )

    assert counts == FileCounts(listed=1, opened=1)
    assert documents(pipeline) == ["a 4 ['1']", "ab 2 ['2']", "t 3 ['t']"]


def test_an_index_of_other_readers_or_another_root_is_not_used(
    spark: SparkSession, tmp_path: Path
) -> None:
    run_of(spark, tmp_path, files=FILES)
    index = FileIndex(tmp_path / "index")
    index.replace(tmp_path / "work0", ORIGIN, run="one")

    assert index.read(lambda: spark, Origin("2", ORIGIN.sources)) is None
    moved = index.read(lambda: spark, Origin("1", {"lake": "/elsewhere"}))
    assert moved is not None
    assert moved.items.count() == moved.datasets.count() == 0


def test_a_row_of_what_was_read_is_an_item_its_place_and_the_outcome() -> None:
    assert names_of(ITEMS) == (
        *ItemToRead._fields,
        "part",
        *RowPlace._fields,
        *ReadOutcome._fields[2:-1],
    )


def rerun(
    spark: SparkSession, tmp_path: Path, functions: Functions, *, unit: str = "open"
) -> Pipeline:
    """Run other functions after `run_of`, and keep what they wrote for the next."""
    index = FileIndex(tmp_path / "index")
    if index.read(lambda: spark, ORIGIN) is None:
        index.replace(tmp_path / "work0", ORIGIN, run="first")
    number = len(list(tmp_path.glob("again*")))
    pipeline = Pipeline(lambda: spark, functions, work=tmp_path / f"again{number}", progress=SILENT)
    pipeline.run([("lake", unit)], index.read(lambda: spark, ORIGIN))
    return pipeline


class Sheets(Functions):
    """Reads a workbook: each sheet is a dataset of its own."""

    @override
    def read_items(self, items: Iterable[ItemToRead]) -> Iterator[tuple[ItemToRead, ReadOutcome]]:
        for item in items:
            for part in range(item.size):
                place = RowPlace(f"sheet{part}", "/", "")
                yield (
                    item,
                    ReadOutcome(part, place, format="xlsx", fingerprint="s", schema="{}"),
                )


def test_sheets_go_with_their_workbook(spark: SparkSession, tmp_path: Path) -> None:
    others = [("b/1.csv", 1, 1)]
    first = Pipeline(
        lambda: spark,
        Sheets([("book.xlsx", 3, 1), *others]),
        work=tmp_path / "work0",
        progress=SILENT,
    )
    first.run([("lake", "open")], None)
    assert {built.dataset for built in first.found()} == {"sheet0", "sheet1", "sheet2"}

    fewer = rerun(spark, tmp_path, Sheets([("book.xlsx", 2, 2), *others]))
    assert {built.dataset for built in fewer.found()} == {"sheet0", "sheet1"}
    gone = rerun(spark, tmp_path, Sheets(others))
    assert {built.dataset for built in gone.found()} == {"sheet0"}


def test_what_lies_where_nobody_could_look_stays_known(spark: SparkSession, tmp_path: Path) -> None:
    whole = [
        ("secret/1.csv", 1, 1),
        ("secrets/1.csv", 2, 1),
        ("open/1.csv", 4, 1),
        ("open/2.csv", 4, 1),
    ]
    run_of(spark, tmp_path, files=whole)

    hidden = rerun(spark, tmp_path, Functions([("open/1.csv", 4, 1)]), unit="closed")

    assert documents(hidden) == ["open 4 ['1']", "secret 1 ['1']"]


def test_a_table_with_a_log_that_nobody_could_look_at_stays_a_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    run_of(spark, tmp_path, files=[("secret/_log/0.json", 3, 1), ("secret/x.csv", 9, 1)])

    class ClosedLog(Functions):
        @override
        def list_unit(self, source: str, unit: str) -> Iterator[ListedFile]:
            yield ListedFile(source, b"secret/x.csv", 9, 1)
            yield ListedFile(source, b"secret/_log", None, None, error="it cannot be listed")

    assert documents(rerun(spark, tmp_path, ClosedLog())) == ["secret 3 ['t']"]


def test_a_source_without_any_file_stays_known_unless_everything_is_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    first, _ = run_of(spark, tmp_path, files=FILES)
    known = documents(first)

    assert documents(rerun(spark, tmp_path, Functions([]))) == known


def test_a_log_that_is_gone_no_longer_hides_its_files(spark: SparkSession, tmp_path: Path) -> None:
    run_of(spark, tmp_path, files=[("t/_log/0.json", 3, 1), ("t/x.csv", 9, 1), ("b/1.csv", 1, 1)])
    index = FileIndex(tmp_path / "index")
    index.replace(tmp_path / "work0", ORIGIN, run="whole")
    now = Functions([("t/x.csv", 9, 1)])
    pipeline = Pipeline(lambda: spark, now, work=tmp_path / "work1", progress=SILENT)

    pipeline.run([("lake", "any")], index.read(lambda: spark, ORIGIN), scope={"lake": (b"t",)})

    assert documents(pipeline) == ["b 1 ['1']", "t 9 ['0']"]


def test_only_parts_that_a_task_told_of_are_taken_over(tmp_path: Path) -> None:
    tables = {"a": "name string", "b": "name string"}
    parts = []
    for task in range(2):
        writer = PartWriter(tmp_path / "aside", tables, task=task)
        for number in range(3):
            writer.add("a", (f"{task}.{number}",), counts=number > 0)
        parts.append(list(writer.close()))
    failed = PartWriter(tmp_path / "aside", tables, task=0)
    failed.add("a", ("never told",))
    list(failed.close())
    (tmp_path / "a").mkdir()

    missing = take_over([*parts[0], *parts[1]], tmp_path / "aside", {"a": tmp_path / "a"})

    assert missing == []
    assert [part.counted for part in (*parts[0], *parts[1])] == [2, 2]
    assert [row[0] for row in scan_rows(tmp_path / "a", ["name"])] == [
        f"{task}.{number}" for task in range(2) for number in range(3)
    ]


def test_parts_that_executors_wrote_elsewhere_are_missed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_shared(parts: Sequence[Part], aside: Path, folders: Mapping[str, Path]) -> object:
        shutil.rmtree(aside)
        return take_over(parts, aside, folders)

    monkeypatch.setattr("lumos.spark.work_tables.take_over", not_shared)
    pipeline = Pipeline(lambda: spark, Functions(FILES), work=tmp_path / "work", progress=SILENT)

    with pytest.raises(SparkRunError, match="is not the same folder"):
        pipeline.run([("lake", "open")], None)


def test_rows_that_executors_wrote_elsewhere_are_missed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import DataFrameWriter

    write = DataFrameWriter.parquet

    def as_if_not_shared(self: DataFrameWriter, path: str) -> None:
        write(self, path)
        for part in (tmp_path / "work" / "listed").rglob("*.parquet"):
            part.unlink()

    monkeypatch.setattr(driver_listing, "MOST_FILES", -1)
    monkeypatch.setattr(DriverListing, "is_in_one_piece", False)
    monkeypatch.setattr(DataFrameWriter, "parquet", as_if_not_shared)
    pipeline = Pipeline(lambda: spark, Functions(FILES), work=tmp_path / "work", progress=SILENT)

    with pytest.raises(SparkRunError, match="is not the same folder"):
        pipeline.run([("lake", "open")], None)


def test_the_name_of_the_state_folder_is_no_pattern(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "my [data] {1} 100%20"
    pipeline, _ = run_of(spark, folder, files=[("a/1.csv", 1, 1)])
    known = documents(pipeline)
    again, counts = run_of(spark, folder, files=[("a/1.csv", 1, 1)])

    assert documents(again) == known == ["a 1 ['1']"]
    assert counts == FileCounts(listed=1, opened=0, unchanged=1)


class WithFingerprints(Functions):
    """Files in a folder that can tell at once whether anything in it changed."""

    @override
    def fingerprint_unit(self, source: str, unit: str) -> str | None:
        return str(self.files)


class Unlistable(WithFingerprints):
    @override
    def list_unit(self, source: str, unit: str) -> Iterator[ListedFile]:
        raise AssertionError("a folder is listed that is as it was")


def no_session() -> SparkSession:
    raise AssertionError("Spark is started though nothing is new")


def test_a_folder_with_the_fingerprint_of_the_last_run_is_not_listed(
    spark: SparkSession, tmp_path: Path
) -> None:
    def run(functions: Functions, *, number: int, session: Session = lambda: spark) -> FileCounts:
        work = tmp_path / f"run{number}"
        pipeline = Pipeline(session, functions, work=work, progress=SILENT)
        counts = pipeline.run([("lake", "")], index.read(session, ORIGIN))
        keep(pipeline, index, run=f"kept{number}")
        return counts

    index = FileIndex(tmp_path / "index")
    files = PREFIXED[:3]
    run(Functions(files), number=0)  # by a Lumos that knew no fingerprints
    same = FileCounts(listed=3, opened=0, unchanged=3)
    assert run(WithFingerprints(files), number=1, session=no_session) == same
    assert run(Unlistable(files), number=2, session=no_session) == same
    changed = run(WithFingerprints([*files[:2], ("b/1.csv", 5, 2)]), number=3)
    assert changed == FileCounts(listed=3, opened=1, unchanged=2)
    doubtful = PREFIXED  # with a file that may become readable
    run(WithFingerprints(doubtful), number=4)
    from pyspark.errors import PythonException

    with pytest.raises(PythonException, match="a folder is listed"):
        run(Unlistable(doubtful), number=5)


class Prefixes(Functions):
    """Lists the files of a prefix."""

    @override
    def list_unit(self, source: str, unit: str) -> Iterator[ListedFile]:
        return Functions([file for file in self.files if file[0].startswith(unit)]).list_unit(
            source, ""
        )


def keep(pipeline: Pipeline, index: FileIndex, *, run: str) -> None:
    """Do what ingestion does with what a run saw."""
    if pipeline.written is not None:
        index.replace(pipeline.written, ORIGIN, run=run, units=pipeline.units)
    elif pipeline.has_new_units:
        index.keep_units(pipeline.units)


class Seen(NamedTuple):
    """What a run did."""

    counts: FileCounts
    documents: list[str]
    told: set[object]
    """The files that the listing told one by one."""


@pytest.fixture(params=["here", "on executors"])
def listed_somewhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """List in this process, as small sources are, and where large ones are."""
    if request.param != "here":
        monkeypatch.setattr(driver_listing, "MOST_FILES", -1)
        monkeypatch.setattr(DriverListing, "is_in_one_piece", False)


def prefixed(
    spark: SparkSession, tmp_path: Path, files: list[tuple[str, int, int]], *units: str
) -> Seen:
    """Run over units that are prefixes, after and before others of their kind."""
    index = FileIndex(tmp_path / "index")
    number = len(list(tmp_path.glob("run*")))
    work = tmp_path / f"run{number}"
    pipeline = Pipeline(lambda: spark, Prefixes(files), work=work, progress=SILENT)
    counts = pipeline.run([("lake", unit) for unit in units], index.read(lambda: spark, ORIGIN))
    found = documents(pipeline)
    keep(pipeline, index, run=f"kept{number}")
    rows = scan_rows(work / "listed" / "row=file", ["path"])
    return Seen(counts, found, {path for (path,) in rows})


PREFIXED = [("a/1.csv", 1, 1), ("a/2.csv", 2, 1), ("b/1.csv", 4, 1), ("c/closed.csv", 1, 1)]


@pytest.mark.usefixtures("listed_somewhere")
def test_a_unit_that_is_as_it_was_is_told_in_one_row(spark: SparkSession, tmp_path: Path) -> None:
    files = PREFIXED[:3]
    first = prefixed(spark, tmp_path, files, "a/", "b/")
    same = prefixed(spark, tmp_path, files, "a/", "b/")
    changed = prefixed(spark, tmp_path, [*files[:2], ("b/1.csv", 5, 2)], "a/", "b/")
    gone = prefixed(spark, tmp_path, files[:2], "a/", "b/")

    assert same == (FileCounts(listed=3, opened=0, unchanged=3), first.documents, set())
    assert changed.counts == FileCounts(listed=3, opened=1, unchanged=2)
    assert changed.told == {b"b/1.csv"}
    assert gone.counts == FileCounts(listed=2, opened=0, unchanged=2)
    assert gone.documents == ["a 3 ['1', '2']"]


def test_a_large_unit_in_one_piece_goes_to_disk_in_parts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_listing, "MOST_FILES", 10)
    monkeypatch.setattr(driver_listing, "MOST_FILES_PER_PART", 4)
    files = [(f"a/{number:02}.csv", 1, 1) for number in range(23)]

    first = prefixed(spark, tmp_path, files, "a/")
    same = prefixed(spark, tmp_path, files, "a/")

    parts = sorted((tmp_path / "run0" / "listed" / "row=file").glob("*.parquet"))
    assert len(parts) == 6
    assert count_rows(parts[0].parent) == 23
    assert first.counts == FileCounts(listed=23, opened=23, unchanged=0)
    assert same == (FileCounts(listed=23, opened=0, unchanged=23), first.documents, set())


def test_a_unit_with_a_file_to_try_again_is_looked_at_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    prefixed(spark, tmp_path, PREFIXED, "a/", "b/", "c/")
    again = prefixed(spark, tmp_path, PREFIXED, "a/", "b/", "c/")

    assert again.counts == FileCounts(listed=4, opened=1, unchanged=3)
    assert again.told == {b"c/closed.csv"}


def test_a_source_that_is_divided_otherwise_is_compared_file_by_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    prefixed(spark, tmp_path, PREFIXED[:3], "a/", "b/")
    other = prefixed(spark, tmp_path, PREFIXED[:3], "")
    same = prefixed(spark, tmp_path, PREFIXED[:3], "")
    gone = prefixed(spark, tmp_path, PREFIXED[1:3], "")

    assert other.counts == same.counts == FileCounts(listed=3, opened=0, unchanged=3)
    assert (len(other.told), len(same.told)) == (3, 0)
    assert gone.documents == ["a 2 ['2']", "b 4 ['1']"]


@pytest.mark.usefixtures("listed_somewhere")
def test_a_table_that_appears_takes_the_files_of_units_that_are_as_they_were(
    spark: SparkSession, tmp_path: Path
) -> None:
    units = ("t/part", "t/_log", "u/")
    files = [("t/part/1.csv", 1, 1), ("u/1.csv", 2, 1)]
    prefixed(spark, tmp_path, files, *units)
    table = prefixed(spark, tmp_path, [*files, ("t/_log/0.json", 3, 1)], *units)
    more = [*files, ("t/_log/0.json", 3, 1), ("t/_log/1.json", 4, 2)]
    log = prefixed(spark, tmp_path, more, *units)

    assert table.documents == ["t 3 ['t']", "u 2 ['2']"]
    assert log.documents == ["t 7 ['t']", "u 2 ['2']"]
    assert table.counts == log.counts == FileCounts(listed=2, opened=1, unchanged=1)
    assert log.told == set()


def test_a_look_at_some_folders_forgets_what_the_listing_was(
    spark: SparkSession, tmp_path: Path
) -> None:
    prefixed(spark, tmp_path, PREFIXED[:3], "a/", "b/")
    index = FileIndex(tmp_path / "index")
    between = Pipeline(
        lambda: spark, Prefixes([("b/1.csv", 9, 9)]), work=tmp_path / "between", progress=SILENT
    )
    between.run([("lake", "b/")], index.read(lambda: spark, ORIGIN), scope={"lake": (b"b",)})
    keep(between, index, run="between")

    back = prefixed(spark, tmp_path, PREFIXED[:3], "a/", "b/")

    assert back.counts == FileCounts(listed=3, opened=1, unchanged=2)
    assert back.documents == ["a 3 ['1', '2']", "b 4 ['1']"]
