from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.core.errors import ConfigurationError
from lumos.feature.discovery.assembling import FilePlace, path_place
from lumos.feature.discovery.path_specs import PathSpecs


def placed(path: str, *specs: str) -> FilePlace:
    place = PathSpecs.of(specs).place(path)
    assert place is not None
    return place


def name_of(path: str, *specs: str) -> str:
    return "/".join(placed(path, *specs).dataset)


@pytest.mark.parametrize(
    ("spec", "path", "dataset", "prefix"),
    [
        ("crm/{table}/*", "crm/orders/north.csv", "crm/orders", "/crm/orders/"),
        ("/crm/{table}/**", "crm/orders/eu/de/x.csv", "crm/orders", "/crm/orders/"),
        ("{table}/*.csv", "orders/north.csv", "orders", "/orders/"),
        ("in/{table}_*.csv", "in/big_orders_1.csv", "in/big_orders", "/in/"),
        ("in/{table}.csv", "in/orders_2024-01-31.csv", "in/orders_2024-01-31", "/in/"),
        ("*/{table}/*", "crm/orders/north.csv", "crm/orders", "/crm/orders/"),
        ("**/{table}/final/*", "a/b/orders/final/x.csv", "a/b/orders", "/a/b/orders/"),
        ("**/{table}/final/*", "orders/final/x.csv", "orders", "/orders/"),
        ("db/{table}/{table}/*", "db/sales/orders/x.csv", "db/sales/orders", "/db/sales/orders/"),
        ("files/*.csv", "files/orders_001.csv", "files/orders_001", "/files/orders_001.csv"),
        ("in/{table}", "in/orders.csv.gz", "in/orders", "/in/"),
    ],
)
def test_a_spec_says_the_name_and_place_of_a_dataset(
    spec: str, path: str, dataset: str, prefix: str
) -> None:
    place = placed(path, spec)
    assert ("/".join(place.dataset), place.prefix) == (dataset, prefix)
    assert place.partitioning is None


@pytest.mark.parametrize(
    ("spec", "path", "template", "values", "types"),
    [
        (
            "{table}/year={yyyy}/month={mm}/*",
            "orders/year=2024/month=1/x.csv",
            "year={yyyy}/month={mm}",
            {"year": "2024", "month": "1"},
            ("INT32", "INT32"),
        ),
        (
            "{table}/dt={yyyy-MM-dd}/*",
            "orders/dt=2024-01-15/north.csv",
            "dt={yyyy-mm-dd}",
            {"dt": "2024-01-15"},
            ("DATE",),
        ),
        (
            "{table}/{yyyy}{mm}/*",
            "orders/202401/x.csv",
            None,
            {},
            (),
        ),
        (
            "{table}/{yyyy}-{mm}/*",
            "orders/2024-01/x.csv",
            "{yyyy}-{mm}",
            {"year": "2024", "month": "01"},
            ("INT32", "INT32"),
        ),
        (
            "{table}/{partition_key[0]}={partition[0]}/{partition_key[1]}={partition[1]}/*",
            "orders/country=DE/shop=7/x.csv",
            "country={country}/shop={shop}",
            {"country": "DE", "shop": "7"},
            ("STRING", "INT32"),
        ),
        (
            "{tenant}/{table}/{partition[0]}/*",
            "acme/orders/eu/x.csv",
            "{tenant}/orders/{partition_0}",
            {"tenant": "acme", "partition_0": "eu"},
            ("STRING", "STRING"),
        ),
        (
            "{table}/day={yyyymmdd}/*",
            "orders/day=__HIVE_DEFAULT_PARTITION__/x.csv",
            "day={yyyymmdd}",
            {"day": None},
            ("",),
        ),
        (
            "{table}/city={city}/*",
            "orders/city=S%C3%A3o%20Paulo/x.csv",
            "city={city}",
            {"city": "São Paulo"},
            ("STRING",),
        ),
        (
            "in/{table}_{yyyymmdd}.csv",
            "in/orders_20240115.csv",
            "orders_{yyyymmdd}.csv",
            {"date": "20240115"},
            ("INT32",),
        ),
    ],
)
def test_a_spec_says_the_partitions(
    spec: str,
    path: str,
    template: str | None,
    values: dict[str, str | None],
    types: tuple[str, ...],
) -> None:
    if template is None:
        with pytest.raises(ConfigurationError, match="two slots need some text between them"):
            PathSpecs.of([spec])
        return
    place = placed(path, spec)
    found = dict(zip(place.partition_keys, place.partition_values, strict=True))
    assert (place.partitioning, found, place.partition_types) == (template, values, types)
    assert place.dataset[-1] == "orders"


def test_a_file_in_a_date_that_is_none_does_not_fit() -> None:
    spec = "{table}/dt={yyyy-mm-dd}/*"
    path = "orders/dt=soon/north.csv"
    assert placed(path, spec) == path_place(path)


def test_the_first_spec_that_fits_decides_and_others_are_placed_by_the_rules() -> None:
    specs = ("crm/{table}/*", "crm/orders/*", "**/{table}.json")
    assert name_of("crm/orders/north.csv", *specs) == "crm/orders"
    assert name_of("x/y/north_1.json", *specs) == "x/y/north_1"
    path = "web/2024-01-15/clicks.csv"
    assert placed(path, *specs) == path_place(path)


def test_no_spec_leaves_everything_to_the_rules() -> None:
    path = "crm/orders/part-0.csv"
    assert PathSpecs.of([]).place(path) == path_place(path)


def test_hidden_files_stay_hidden_unless_a_spec_names_their_folder() -> None:
    specs = PathSpecs.of(["crm/{table}/*", "_raw/{table}/*"])
    assert specs.place("crm/orders/_SUCCESS") is None
    assert specs.place("_tmp/orders/x.csv") is None
    assert specs.place("_raw/orders/_SUCCESS") is None
    place = specs.place("_raw/orders/x.csv")
    assert place is not None
    assert place.dataset == ("_raw", "orders")


def test_specs_travel_to_executors() -> None:
    specs = PathSpecs.of(["crm/{table}/dt={yyyy-mm-dd}/*"])
    again = pickle.loads(pickle.dumps(specs))
    path = "crm/orders/dt=2024-01-15/north.csv"
    assert again.place(path) == specs.place(path)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("", "path_specs[1] '', character 1: is empty"),
        ("/", "path_specs[1] '/', character 1: is empty"),
        ("a//b", "path_specs[1] 'a//b', character 3: a folder must have a name"),
        ("a/../b", "path_specs[1] 'a/../b', character 3: a folder must have a name"),
        ("a/{}/x", "path_specs[1] 'a/{}/x', character 3: a slot is written {name}"),
        ("a/{table", "path_specs[1] 'a/{table', character 3: a slot is written {name}"),
        ("/a/b}/x", "path_specs[1] '/a/b}/x', character 5: a slot is written {name}"),
        (
            "a/**/**/x",
            "path_specs[1] 'a/**/**/x', character 6: one ** stands for any number of folders",
        ),
        ("a/x**", "path_specs[1] 'a/x**', character 4: ** stands for folders and must stand alone"),
        (
            "a={x}/a={y}/*",
            "path_specs[1] 'a={x}/a={y}/*', character 9: the partition key a is there twice",
        ),
        (
            "s3://b/{table}",
            "path_specs[1] 's3://b/{table}', character 3: "
            "a path below the source's root has no scheme",
        ),
        ("{a,b}/*", "path_specs[1] '{a,b}/*', character 1: a slot is written {name}"),
    ],
)
def test_an_invalid_spec_is_named_with_the_place_of_the_mistake(spec: str, problem: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        PathSpecs.of(["{table}/*", spec])
    assert error.value.message == problem
    assert error.value.hint


pieces = st.sampled_from(
    ["{table}", "{yyyy}", "{x}", "*", "**", "a", "a=", "/", "-", "{partition[0]}", "{", "_b", "."]
)


@given(st.lists(pieces, max_size=8).map("".join), st.text("ab=/2041-_.c{}", max_size=20))
def test_any_text_is_a_spec_or_an_error_that_tells_where(spec: str, path: str) -> None:
    specs, told = PathSpecs(), ""
    try:
        specs = PathSpecs.of([spec])
    except ConfigurationError as error:
        told = error.message
    assert not told or told.startswith(f"path_specs[0] '{spec}', character ")
    place = specs.place(path)
    assert place == specs.place(path)
    if place is not None:
        assert len(place.partition_keys) == len(place.partition_values)
        assert place.prefix.startswith("/")
