"""Which files of a storage are wanted, and how a storage is divided for listing."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.core.formats.reader import PATTERNS
from lumos.core.storage.object_units import FolderLevel, ListUnit, distinct, divided
from lumos.core.storage.selection import FileSelection, Folder

ALL = FileSelection(patterns=["*"])


@pytest.mark.parametrize(
    "path",
    [
        "_SUCCESS",
        "t/_SUCCESS",
        "t/.part-0.parquet.crc",
        "t/part-0.parquet.crc",
        "t/_temporary/0/part-0.parquet",
        "t/._x.csv",
        "t/.hidden/x.csv",
        "t/x.csv.tmp",
        "t/x.csv~",
        "t/~$orders.xlsx",
        "t_$folder$",
        "t/_started_123",
        "t/_committed_123",
        ".hoodie/metadata/files/x.parquet",
        ".hoodie/.temp/x.parquet",
        "t/_delta_log/0.crc",
        "t/_delta_log/_staged/x.json",
    ],
)
def test_hidden_and_temporary_files_are_not_wanted_whatever_is_asked(path: str) -> None:
    assert not ALL.wanted(path)


@pytest.mark.parametrize(
    "path",
    [
        "t/_delta_log/00000000000000000000.json",
        "t/_delta_log/_last_checkpoint",
        "t/_delta_log/_sidecars/x.parquet",
        "_delta_log/00000000000000000000.json",
        "t/.hoodie/hoodie.properties",
        "t/.hoodie/20240101000000000.commit",
        "t/.hoodie/timeline/20240101000000000.commit",
        "t/metadata/v3.metadata.json",
        "t/metadata/version-hint.text",
    ],
)
def test_logs_of_tables_are_wanted_although_they_are_hidden(path: str) -> None:
    assert FileSelection(patterns=["*.parquet"]).wanted(path)
    assert not FileSelection(patterns=["*.parquet"], logs=False).wanted(path)
    assert not FileSelection(patterns=["*.parquet"], exclude=["t", "_delta_log"]).wanted(path)


def test_an_excluded_folder_takes_all_below_with_it() -> None:
    selection = FileSelection(patterns=["*.csv"], exclude=["Old", "raw/drafts/", "raw/*/x.csv"])
    assert not selection.wanted("a/old/b/c.csv")
    assert not selection.wanted("raw/drafts/x/c.csv")
    assert not selection.wanted("raw/q/x.csv")
    assert selection.wanted("drafts/c.csv")
    assert selection.wanted("raw/q/y.CSV")
    assert selection.folder("a/old") is Folder.HIDDEN
    assert selection.folder("a") is Folder.PLAIN


NAMES = st.text(st.sampled_from("ab.xcsvgzpq"), min_size=1, max_size=14)


@given(name=NAMES, patterns=st.lists(NAMES.map(lambda text: f"*{text}"), min_size=1, max_size=5))
def test_fast_patterns_say_what_slow_ones_say(name: str, patterns: list[str]) -> None:
    hidden = name.startswith(".")
    expected = not hidden and any(fnmatchcase(name, pattern) for pattern in patterns)
    assert FileSelection(patterns=patterns, logs=False).wanted(name) == expected


@pytest.mark.parametrize("name", ["a.csv", "a.b.csv.gz", "A.PARQUET", "x.json.zst"])
def test_known_formats_are_wanted_by_default(name: str) -> None:
    assert FileSelection(patterns=PATTERNS).wanted(f"t/{name}")
    assert not FileSelection(patterns=PATTERNS).wanted(f"t/{name}.png")


KEYS = st.lists(
    st.lists(st.sampled_from(["a", "a-", "b", "c=1", "ü", "z"]), min_size=1, max_size=5).map(
        "/".join
    ),
    max_size=60,
    unique=True,
)


@given(keys=KEYS, wanted=st.integers(1, 12), ranges=st.booleans())
def test_a_divided_storage_is_covered_exactly_once(
    keys: list[str], wanted: int, ranges: bool
) -> None:
    objects = sorted(f"{key}.csv" for key in keys)
    calls: list[str] = []

    def level_of(prefix: str) -> FolderLevel | None:
        calls.append(prefix)
        below = [key[len(prefix) :].lstrip("/") for key in objects if _is_below(key, prefix)]
        folders = sorted({each.partition("/")[0] for each in below if "/" in each})
        whole = tuple(f"{prefix}/{each}".lstrip("/") for each in folders)
        return FolderLevel(whole, any("/" not in each for each in below))

    units = divided("", wanted=wanted, level_of=level_of, ranges=ranges)
    found = [key for unit in units for key in _of(ListUnit.of_text(unit.text()), objects)]
    assert sorted(found) == objects
    assert len(calls) <= 4 * wanted


def _is_below(key: str, prefix: str) -> bool:
    return not prefix or key.startswith(f"{prefix}/")


def _of(unit: ListUnit, objects: list[str]) -> list[str]:
    """Return what a storage lists for a unit."""
    found = []
    for prefix in unit.prefixes:
        for key in objects:
            if not _is_below(key, prefix):
                continue
            name, slash, _ = key[len(prefix) :].lstrip("/").partition("/")
            after = unit.after is None or f"{name}/" > f"{unit.after}/"
            until = unit.until is None or f"{name}/" <= f"{unit.until}/"
            in_range = bool(slash) and after and until
            if {"all": True, "direct": not slash, "folders": in_range}[unit.kind]:
                found.append(key)
    return found


def test_a_level_that_cannot_be_looked_at_stays_one_unit() -> None:
    def level_of(prefix: str) -> FolderLevel | None:
        return (
            None
            if prefix == "locked"
            else FolderLevel(("locked", "open"), False)
            if not prefix
            else FolderLevel((), True)
        )

    units = divided("", wanted=4, level_of=level_of, ranges=True)
    assert set(units) == {ListUnit(("locked",)), ListUnit(("open",), "direct")}


def test_prefixes_in_others_are_left_out() -> None:
    assert distinct(["/raw/", "raw/events", "rawer", "raw"]) == ("raw", "rawer")
    assert distinct(["a", ""]) == ("",)
    assert distinct([]) == ("",)
