"""Which files are one dataset: paths propose it, columns decide, and names stay as they are."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.feature.discovery.fold import MOST_STEMS
from lumos.feature.discovery.grouping import are_alike
from messy_groups import GroupedFile, MessyFolder, datasets_of, messy_folder
from property_seed import chosen_seed

ONE, TWO, THREE = ("id", "city", "price"), ("id", "doctor", "room"), ("isbn", "author")


def names_of(*files: tuple[str, tuple[str, ...]]) -> dict[str, int]:
    found, _ = datasets_of(GroupedFile(*file) for file in files)
    return {name.rpartition(" ")[0]: len(paths) for name, paths in found.items()}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a/ticket-101.csv", "a/ticket-212.csv"),
        ("a/data.csv", "a/data2.csv"),
        ("a/sheet_1.xlsx", "a/sheet_10.xlsx"),
        ("a/orders.csv", "a/orders (1).csv"),
        ("a/1.csv", "a/2.csv"),
        ("a/orders_2023.csv", "a/orders_2024.csv"),
    ],
)
def test_files_with_a_number_are_one_dataset_only_where_their_columns_are_alike(
    one: str, other: str
) -> None:
    assert list(names_of((one, ONE), (other, (*ONE, "extra"))).values()) == [2]
    assert list(names_of((one, ONE), (other, TWO)).values()) == [1, 1]


def test_a_lone_file_is_called_as_before() -> None:
    assert names_of(("a/orders_1.csv", ONE)) == {"a/orders_1": 1}
    assert names_of(("a/orders_101.csv", ONE)) == {"a/orders": 1}
    assert names_of(("a/data.csv", ONE)) == {"a": 1}
    assert names_of(("a/users_v1.csv", ONE), ("a/users_v2.csv", ONE)) == {
        "a/users_v1": 1,
        "a/users_v2": 1,
    }


def test_most_files_keep_the_name_and_others_are_called_by_their_own() -> None:
    files = [(f"a/ticket-{n}.csv", ONE) for n in range(101, 106)]
    assert names_of(*files, ("a/ticket-212.csv", TWO)) == {"a/ticket": 5, "a/ticket-212": 1}


def test_what_a_writer_numbers_is_never_taken_apart() -> None:
    assert names_of(("a/part-00001.csv", ONE), ("a/part-00002.csv", TWO)) == {"a": 2}
    assert names_of(("a/x-00001-of-00002.csv", ONE), ("a/x-00002-of-00002.csv", TWO)) == {"a/x": 2}


def test_below_key_value_folders_the_table_is_the_folder_above() -> None:
    assert names_of(
        ("sales/year=2023/north.csv", ONE), ("sales/year=2024/report-final.csv", TWO)
    ) == {"sales": 2}


def test_names_that_partitions_repeat_with_other_columns_are_tables() -> None:
    files = [
        (f"in/dt=2024-01-0{day}/{name}.csv", columns)
        for day in range(1, 4)
        for name, columns in (("orders", ONE), ("visits", TWO))
    ]
    assert names_of(*files) == {"in/orders": 3, "in/visits": 3}


def test_many_names_below_key_value_folders_are_no_tables() -> None:
    files = [
        (f"in/dt=2024-01-01/name{'abcdefghijklmnop'[n % 16]}{'xyz'[n // 16]}.csv", (f"c{n}", "id"))
        for n in range(MOST_STEMS + 1)
    ]
    assert list(names_of(*files)) == ["in"]


def test_files_without_names_of_columns_are_compared_by_places_and_types() -> None:
    assert are_alike(frozenset({"0:INT64", "1:STRING"}), frozenset({"0:INT64", "1:STRING"}))
    assert not are_alike(frozenset({"0:INT64", "1:STRING"}), frozenset({"0:DATE", "1:DATE"}))


def test_a_file_that_comes_later_renames_nothing() -> None:
    first = [GroupedFile("a/ticket-101.csv", ONE)]
    found, marks = datasets_of(first)
    assert list(found) == ["a/ticket csv"]

    later = [*first, GroupedFile("a/ticket-212.csv", TWO), GroupedFile("a/ticket-100.csv", THREE)]
    found, marks = datasets_of(later, marks=marks)
    assert sorted(found) == ["a/ticket csv", "a/ticket-100 csv", "a/ticket-212 csv"]
    assert found["a/ticket csv"] == {"a/ticket-101.csv"}

    last = [*later, *(GroupedFile(f"a/ticket-{n}.csv", TWO) for n in range(300, 309))]
    found, _ = datasets_of(last, marks=marks)
    assert sorted(found) == ["a/ticket csv", "a/ticket-100 csv", "a/ticket-212 csv"]
    assert len(found["a/ticket-212 csv"]) == 10


folders = st.integers(0, 2**32).map(lambda seed: messy_folder(random.Random(seed)))


@given(folders, st.randoms(use_true_random=False), st.integers(1, 3))
def test_neither_order_nor_tasks_change_the_datasets(
    folder: MessyFolder, rng: random.Random, pieces: int
) -> None:
    files = list(folder.files)
    rng.shuffle(files)
    assert datasets_of(files, pieces=pieces) == datasets_of(folder.files)


@given(folders, st.randoms(use_true_random=False))
def test_a_run_after_another_finds_the_same_as_it_did(
    folder: MessyFolder, rng: random.Random
) -> None:
    first, marks = datasets_of(folder.files)
    assert datasets_of(folder.files, marks=marks) == (first, marks)
    some = [file for file in folder.files if rng.random() < 0.7]
    before, kept = datasets_of(some)
    after, again = datasets_of(folder.files, marks=kept)
    assert datasets_of(folder.files, marks=again) == (after, again)
    paths = {file.path for file in some}
    for name, files in before.items():
        renamed = [n for n, now in after.items() if now & files & paths and n != name]
        assert name in after or renamed, "a dataset whose files are all there is still found"


def test_most_messy_folders_are_put_together_right() -> None:
    seed = chosen_seed(is_full=False)
    rng = random.Random(seed)
    every = [messy_folder(rng, number=number) for number in range(150)]
    wrong = [each for each in every if frozenset(datasets_of(each.files)[0].values()) != each.truth]
    assert len(wrong) <= 0.05 * len(every), (seed, wrong)
