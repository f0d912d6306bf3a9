from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from lumos.feature.discovery.assembling import FilePlace, dataset_names, path_place

FOLDER = Path(__file__).parents[1] / "golden" / "layouts"


def layouts() -> dict[str, dict[str, dict[str, Any] | None]]:
    found: dict[str, dict[str, dict[str, Any] | None]] = {}
    for path in sorted(FOLDER.glob("*.yaml")):
        found |= YAML(typ="safe", pure=True).load(path.read_text("utf-8"))
    return found


LAYOUTS = layouts()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_files_of_a_layout_are_placed_as_written_down(layout: str) -> None:
    found = {path: described(path_place(path)) for path in LAYOUTS[layout]}
    expected = {
        path: None if place is None else expectation(place, found[path])
        for path, place in LAYOUTS[layout].items()
    }
    assert found == expected


def test_there_are_layouts_enough_to_call_it_a_list() -> None:
    assert len(LAYOUTS) >= 40


def described(place: FilePlace | None) -> dict[str, Any] | None:
    if place is None:
        return None
    return {
        "dataset": "/".join(place.dataset),
        "prefix": place.prefix,
        "partitioning": place.partitioning,
        "keys": list(place.partition_keys),
        "values": list(place.partition_values),
        "types": list(place.partition_types),
        "format": place.format,
        "compression": place.compression,
        "shard": place.shard,
    }


def expectation(written: dict[str, Any], found: dict[str, Any] | None) -> dict[str, Any]:
    """Complete what a layout says; prefix, keys and types are only checked where it gives them."""
    absent: dict[str, Any] = {
        "partitioning": None,
        "values": [],
        "format": None,
        "compression": None,
        "shard": False,
    }
    unsaid = {name: (found or {}).get(name) for name in ("prefix", "keys", "types")}
    return {**unsaid, **absent, **written}


odd_parts = st.one_of(
    st.sampled_from(
        [
            "2024",
            "01",
            "15",
            "2024-01-15",
            "20240115",
            "dt=2024-01-15",
            "year=2024",
            "=",
            "a=",
            "part-0.csv",
            "_x",
            ".x",
            "..",
            "",
            "%zz",
            "{yyyy}",
            "orders",
            "orders.parquet",
            "-.csv",
            "x.csv.gz",
            "١٢",
            "٢٠٢٤",
            "metadata",
            "k=__HIVE_DEFAULT_PARTITION__",
        ]
    ),
    st.text(max_size=12),
)
odd_paths = st.lists(odd_parts, max_size=8).map("/".join)


@given(odd_paths)
@example("\udce9/\ud800.csv")
@example("a/" + "1-" * 500 + "!.csv")
@example("a/" + "12345678-" * 100 + "!.csv")
@example("a/data" + "-0123456789abcdef" * 50 + "!.csv")
@example("a/" + "a1" * 300 + "!.csv")
@example("a/" + "_1" * 300 + "!.csv")
@example("a/" + "2024-01-15T10:11:12-" * 50 + "!.csv")
@example("a/" + ".1" * 300 + "x/" + "2024-01-15_" * 50 + "b/part-0.csv")
def test_any_text_is_placed_and_always_the_same_way(path: str) -> None:
    place = path_place(path)
    assert place == path_place(path)
    if place is not None:
        sizes = (place.partition_keys, place.partition_values, place.partition_types)
        assert len({len(part) for part in sizes}) == 1
        assert (place.partitioning is None) == (not place.partition_keys)
        assert all(place.dataset)
        assert all(place.partition_keys)
        assert place.prefix.startswith("/")


@given(odd_paths, odd_paths)
def test_a_place_does_not_depend_on_what_was_placed_before(path: str, other: str) -> None:
    before = path_place(path)
    path_place(other)
    assert path_place(path) == before


def is_plain(name: str) -> bool:
    place = path_place(f"{name}.csv")
    return place is not None and place.dataset == (name,)


plain_names = st.from_regex(r"[a-z]{3,8}(_[a-z]{2,6})?", fullmatch=True).filter(is_plain)
DATE_FOLDERS = [
    "year={0:%Y}/month={0:%m}/day={0:%d}",
    "dt={0:%Y-%m-%d}",
    "ds={0:%Y%m%d}",
    "{0:%Y/%m/%d}",
    "{0:%Y-%m-%d}",
    "{0:%Y%m%d}",
    "{0:%Y/%m}",
    "{0:%Y/%m/%d}/07",
    "country={1}",
    "country={1}/{0:%Y/%m/%d}",
    "",
]
FILE_NAMES = [
    "part-{2:05}.parquet",
    "part-{2:05}-3f1e2d3c-1a2b-4c5d-8e9f-0a1b2c3d4e5f-c000.snappy.parquet",
    "{2:06}_0",
    "data_{2}.csv",
    "{table}.csv",
    "{table}_{0:%Y-%m-%d}.csv.gz",
    "{table}_{0:%Y%m%d}_{2:04}.json",
    "{table}-{2:05}-of-99999.avro",
]


@given(
    root=st.lists(plain_names, max_size=2),
    table=plain_names,
    folders=st.sampled_from(DATE_FOLDERS),
    file=st.sampled_from(FILE_NAMES),
    files=st.lists(
        st.tuples(
            st.dates(min_value=date(1990, 1, 1), max_value=date(2090, 1, 1)),
            st.sampled_from(["DE", "x y", "é", "1", "__HIVE_DEFAULT_PARTITION__"]),
            st.integers(0, 99_999),
        ),
        min_size=1,
        max_size=5,
    ),
)
def test_every_file_of_a_partitioned_table_lands_in_one_dataset(
    root: list[str], table: str, folders: str, file: str, files: list[tuple[Any, str, int]]
) -> None:
    places = [
        path_place("/".join([*root, table, (folders + "/" + file).format(*each, table=table)]))
        for each in files
    ]
    assert {place and place.dataset for place in places} == {(*root, table)}
    assert len({place and place.format for place in places}) == 1


@given(
    plain_names,
    st.sets(st.sampled_from(["parquet", "csv", "json", "avro", "orc", "text", None]), min_size=1),
)
def test_the_formats_of_one_dataset_have_names_that_no_other_dataset_has(
    name: str, formats: set[str | None]
) -> None:
    names = dataset_names(("crm", name), formats)
    assert set(names) == formats
    assert len(set(names.values())) == len(formats)
    assert ("crm", name) in names.values()
    for parts in set(names.values()) - {("crm", name)}:
        place = path_place("/".join(parts))
        assert place is not None
        assert place.dataset == ("crm", name)


def test_a_second_format_does_not_rename_the_table_it_lies_beside() -> None:
    assert dataset_names(("orders",), ["parquet"]) == {"parquet": ("orders",)}
    assert dataset_names(("orders",), ["csv", "parquet", None, "csv"]) == {
        "parquet": ("orders",),
        "csv": ("orders.csv",),
        None: ("orders.unknown",),
    }
    assert dataset_names((), ["csv", "json"]) == {"json": (), "csv": (".csv",)}
