from __future__ import annotations

import random
from itertools import permutations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.feature.discovery import fold as fold_module
from lumos.feature.discovery.distinct import KEPT, DistinctSketch
from lumos.feature.discovery.fold import DatasetFold, FileRow


def layout(partitioning: str | None = None, keys: tuple[str, ...] = (), prefix: str = "/t/") -> str:
    return orjson.dumps(
        {
            "prefix": prefix,
            "partitioning": partitioning,
            "partition_keys": keys,
            "partition_types": ["INT32"] * len(keys),
        }
    ).decode()


PLAIN = layout()
BY_DAY = layout("year={yyyy}/month={mm}/day={dd}", ("year", "month", "day"))
BY_COUNTRY = layout("country={country}/dt={yyyy-mm-dd}", ("country", "dt"))


def partition(*values: str | None) -> str:
    return orjson.dumps(values).decode()


def file(where: str = PLAIN, values: str = "[]", **parts: object) -> FileRow:
    known: dict[str, object] = {
        "size": 10,
        "mtime_us": 1,
        "layout": where,
        "partition": values,
        "format": "parquet",
        "fingerprint": "one",
    }
    return FileRow(**{**known, **parts})  # type: ignore[arg-type]


def folded(*files: FileRow) -> DatasetFold:
    fold = DatasetFold()
    for each in files:
        fold.add(each)
    return fold


values = st.none() | st.sampled_from(["1", "2", "10", "01", "x", "", "DE"])
days = st.tuples(
    st.sampled_from(["2023", "2024"]), st.sampled_from(["1", "01", "12"]), st.sampled_from("129")
)
counts = st.none() | st.integers(0, 9)
statistics = st.lists(counts, min_size=4, max_size=4) | st.tuples(
    counts, counts, counts, counts, st.integers(-5, 5), st.integers(-5, 5)
).map(list)
bonds = st.sampled_from(
    ['["numbered","a-101"]', '["numbered","a-99"]', *(f'["partition","t","{n}"]' for n in "abcd")]
)
files = st.builds(
    FileRow,
    size=st.integers(0, 5),
    mtime_us=st.integers(-5, 5),
    layout=st.just(PLAIN),
    partition=st.just("[]"),
    format=st.sampled_from(["parquet", "csv"]),
    fingerprint=st.sampled_from("ab"),
    rows=counts,
    rows_estimate=counts,
    columns=st.none()
    | st.dictionaries(st.sampled_from("xy"), statistics, max_size=2).map(orjson.dumps),
    path=st.sampled_from([b"a", b"b", b"c"]),
    bond=st.none() | bonds,
    dialect=st.none() | st.sampled_from(['{"delimiter":","}', '{"delimiter":";"}']),
) | st.builds(
    lambda place, mtime, schema: file(*place, mtime_us=mtime, fingerprint=schema),
    st.tuples(st.just(BY_DAY), days.map(lambda day: partition(*day)))
    | st.tuples(st.just(BY_COUNTRY), st.tuples(values, values).map(lambda pair: partition(*pair))),
    st.integers(0, 5),
    st.sampled_from("ab"),
)
some_files = st.lists(files, max_size=8)


@given(some_files, st.randoms())
def test_a_fold_does_not_depend_on_the_order_of_the_files(
    found: list[FileRow], random: object
) -> None:
    shuffled = [*found]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert folded(*found).to_bytes() == folded(*shuffled).to_bytes()


@given(st.lists(files, max_size=6), st.randoms(use_true_random=False))
def test_many_plain_names_are_given_up_in_any_order(
    found: list[FileRow], rng: random.Random
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold_module, "MOST_STEMS", 2)
        whole = folded(*found).to_bytes()
        rng.shuffle(found)
        cut = rng.randint(0, len(found))
        assert folded(*found[:cut]).merged(folded(*found[cut:])).to_bytes() == whole


@given(some_files, some_files, some_files)
def test_folds_are_merged_in_any_order_and_grouping(
    one: list[FileRow], two: list[FileRow], three: list[FileRow]
) -> None:
    whole = folded(*one, *two, *three).to_bytes()
    parts = [folded(*each) for each in (one, two, three)]
    for a, b, c in permutations(parts):
        assert a.merged(b).merged(c).to_bytes() == whole
        assert a.merged(b.merged(c)).to_bytes() == whole
    assert parts[0].merged(DatasetFold()).to_bytes() == parts[0].to_bytes()


@given(some_files, some_files)
def test_a_state_goes_through_bytes_and_can_be_added_to(
    before: list[FileRow], after: list[FileRow]
) -> None:
    state = folded(*before).to_bytes()
    again = DatasetFold.from_bytes(state)
    assert again.to_bytes() == state
    for each in after:
        again.add(each)
    assert again.to_bytes() == folded(*before, *after).to_bytes()


@given(some_files, some_files)
def test_merging_leaves_the_other_fold_as_it_was(one: list[FileRow], two: list[FileRow]) -> None:
    other = folded(*two)
    before = other.to_bytes()
    fold = folded(*one)
    fold.merge(other)
    for each in one:
        fold.add(each)
    assert other.to_bytes() == before


def test_rows_sizes_and_times_are_added_up_by_schema() -> None:
    fold = folded(
        file(size=1, rows=5, mtime_us=7),
        file(size=2, rows=6, rows_estimate=6, mtime_us=3),
        file(size=4, rows_estimate=8, mtime_us=5),
        file(size=8, fingerprint="two"),
    )
    schemas = fold.formats["parquet"].schemas
    one = schemas["one"]
    assert (one.files, one.bytes, one.exact_rows, one.exact_files) == (3, 7, 11, 2)
    assert (one.estimated_rows, one.estimated_files) == (8, 1)
    assert (one.oldest_us, one.newest_us) == (3, 7)
    assert schemas["two"].files == 1


def test_partitions_are_ordered_by_time_and_number_not_by_text() -> None:
    fold = folded(
        *(file(BY_DAY, partition("2024", month, "5")) for month in ("2", "10", "9")),
        file(BY_COUNTRY, partition("US", "2024-01-01"), fingerprint="two"),
        file(BY_COUNTRY, partition("DE", "2024-02-01"), fingerprint="two"),
    )
    parquet = fold.formats["parquet"]
    one, two = parquet.schemas["one"], parquet.schemas["two"]
    assert one.first is not None
    assert one.last is not None
    assert (one.first.shown, one.last.shown) == (
        "year=2024/month=2/day=5",
        "year=2024/month=10/day=5",
    )
    assert two.last is not None
    assert two.last.shown == "country=DE/dt=2024-02-01"


def test_a_partition_without_a_value_is_counted_but_no_end_of_a_range() -> None:
    fold = folded(
        file(BY_COUNTRY, partition(None, "2024-01-01")),
        file(BY_COUNTRY, partition("DE", "2024-01-02")),
        file(BY_COUNTRY, partition("AT", "2024-01-02")),
    )
    totals = fold.formats["parquet"].layouts[BY_COUNTRY]
    assert len(totals.known) == 3
    assert [rank[2] for rank in totals.low] == ["AT", "2024-01-01"]
    assert [rank[2] for rank in totals.high] == ["DE", "2024-01-02"]


def test_many_partitions_are_counted_about_right_and_the_same_in_every_grouping(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fold_module, "MOST_PARTITIONS", 1000)
    rows = [file(BY_COUNTRY, partition(str(n), "2024-01-01")) for n in range(12_000)]
    whole = folded(*rows, *rows[:50])
    halves = [folded(*rows[:900]), folded(*rows[900:1100]), folded(*rows[500:])]
    merged = DatasetFold()
    for half in halves:
        merged.merge(DatasetFold.from_bytes(half.to_bytes()))
    one, other = (fold.formats["parquet"].layouts[BY_COUNTRY] for fold in (whole, merged))
    assert one.sketch is not None
    assert other.sketch is not None
    assert one.sketch.hashes() == other.sketch.hashes()
    assert one.sketch.count() == pytest.approx(12_000, rel=0.05)
    assert (one.low, one.high) == (other.low, other.high)
    assert len(whole.to_bytes()) < 200_000


def test_a_sketch_is_exact_while_it_keeps_everything() -> None:
    sketch = DistinctSketch()
    for number in range(KEPT - 1):
        sketch.add(str(number))
        sketch.add(str(number))
    assert sketch.count() == KEPT - 1


def test_column_statistics_are_told_only_where_every_file_tells_them() -> None:
    columns = orjson.dumps({"a": [10, 1, 100, 200]})
    both = folded(file(columns=columns), file(columns=columns)).formats["parquet"]
    assert both.column_statistics()["a"].null_count == 2
    one = folded(file(columns=columns), file()).formats["parquet"]
    assert one.column_statistics() == {}
