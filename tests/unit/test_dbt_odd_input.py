"""The dbt source on artifacts that dbt would never write."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt_artifacts import (
    NEWEST,
    ORDERS,
    SHOP,
    Document,
    changed,
    datasets,
    handler,
    loaded,
    of,
    scanned,
    written,
)
from lumos.core.errors import LumosError, SourceError
from lumos.core.models import (
    LineageEdge,
    LumosDataset,
)
from lumos.core.models.base import CanonicalModel
from lumos.feature.ingestion.handlers.dbt import artifacts
from lumos.feature.ingestion.records import (
    ScannedScope,
    ScanWarning,
    SkippedItem,
    UnreadableItem,
)

# Files that are not what they should be


def refused(folder: Path, **settings: Any) -> SourceError:
    with pytest.raises(SourceError) as raised:
        scanned(handler(folder, **settings))
    assert raised.value.hint
    assert "\n" not in raised.value.message
    return raised.value


@pytest.mark.parametrize("name", ["manifest", "catalog", "run_results"])
def test_a_missing_file_is_named_with_the_command_that_writes_it(tmp_path: Path, name: str) -> None:
    error = refused(NEWEST, **{f"{name}_path": tmp_path / "none.json"})
    assert f"{tmp_path}/none.json: no such file" in error.message
    assert error.hint is not None
    assert ("dbt build" if name == "run_results" else "dbt docs generate") in error.hint


@pytest.mark.parametrize(
    ("version", "words"),
    [("v8", "is of version v8; Lumos reads v9 and newer"), ("x", "it is not a manifest of dbt")],
)
def test_an_older_or_unknown_version_is_refused(tmp_path: Path, version: str, words: str) -> None:
    manifest = loaded("manifest.json")
    manifest["metadata"]["dbt_schema_version"] = (
        f"https://schemas.getdbt.com/dbt/manifest/{version}.json"
    )
    assert words in refused(written(tmp_path, manifest)).message


def test_a_newer_version_is_read_with_a_warning(tmp_path: Path) -> None:
    def renew(manifest: Document) -> None:
        manifest["metadata"]["dbt_schema_version"] = (
            "https://schemas.getdbt.com/dbt/manifest/v20.json"
        )

    found = changed(tmp_path, renew)
    assert len(datasets(found)) == 10
    (warning,) = of(ScanWarning, found)
    assert "version v20, newer than v12" in warning.text


def test_one_artifact_in_place_of_another_is_refused(tmp_path: Path) -> None:
    error = refused(NEWEST, manifest_path=NEWEST / "catalog.json")
    assert "it is not a manifest of dbt" in error.message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON at line 1, column 1"),
        (b'{"metadata": {"dbt', "not JSON at line 1"),
        (b"[]", "not a JSON object"),
        (b'{"nodes": {}, "nodes": {}}', 'the key "nodes" is there twice'),
        (b'{"metadata": {"a": 1, "a": 2}}', 'the key "a" is there twice'),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 200_000, "nested too deeply"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "digits"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b'{"metadata": []}', '"metadata" is not an object'),
        (b'{"metadata": {"dbt_schema_version": 12}}', '"dbt_schema_version" is not text'),
        (b"{}", "not a manifest of dbt"),
    ],
)
def test_bad_content_is_refused_in_one_line(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    error = refused(tmp_path)
    assert words in error.message
    assert "manifest.json of source 'shop'" in error.message


def test_every_cut_of_a_manifest_is_refused(tmp_path: Path) -> None:
    whole = (NEWEST / "manifest.json").read_bytes().rstrip()
    for size in range(0, len(whole), len(whole) // 40):
        (tmp_path / "manifest.json").write_bytes(whole[:size])
        refused(tmp_path)


@pytest.mark.parametrize("section", ["nodes", "sources", "exposures", "groups", "parent_map"])
def test_a_section_that_is_no_object_is_refused(tmp_path: Path, section: str) -> None:
    manifest = loaded("manifest.json")
    manifest[section] = ["x"]
    assert f'"{section}" is not an object' in refused(written(tmp_path, manifest)).message


def test_a_manifest_without_an_adapter_is_refused(tmp_path: Path) -> None:
    for adapter in (None, "", "Post gres", 7):
        manifest = loaded("manifest.json")
        manifest["metadata"]["adapter_type"] = adapter
        assert "which adapter" in refused(written(tmp_path, manifest)).message


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "manifest.json")
    assert "a pipe, not a regular file" in refused(tmp_path).message


def test_a_file_beyond_the_limits_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, loaded("manifest.json"))
    monkeypatch.setattr(artifacts, "MOST_VALUES", 100)
    assert "more than 100 values" in refused(tmp_path).message
    monkeypatch.setattr(artifacts, "LARGEST_ARTIFACT", 1_000)
    assert "larger than 1,000 bytes" in refused(tmp_path).message


# Nodes that are not what they should be


def break_orders(**parts: Any) -> Callable[[Document], None]:
    return lambda manifest: manifest["nodes"]["model.shop.orders"].update(parts)


@pytest.mark.parametrize(
    "change",
    [
        break_orders(columns=["a"]),
        break_orders(columns={"a": 7}),
        break_orders(columns={"a": {"name": "a", "constraints": [7]}}),
        break_orders(tags=[7]),
        break_orders(description={"x": 1}),
        break_orders(meta="x"),
        break_orders(config=[]),
        break_orders(contract={"enforced": "yes"}),
        break_orders(depends_on={"nodes": 7}),
        break_orders(group=7),
        break_orders(relation_name=7),
        break_orders(description="\ud800"),
        break_orders(columns={"": {"name": ""}}),
    ],
)
def test_one_odd_node_is_named_and_costs_no_other(
    tmp_path: Path, change: Callable[[Document], None]
) -> None:
    found = changed(tmp_path, change)
    items = [item for item in of(UnreadableItem, found) if item.item == "model.shop.orders"]
    assert items
    assert items[0].urn == ORDERS
    assert len(datasets(found)) >= 9
    assert isinstance(found[-1], ScannedScope), "the dataset is known, so it is not removed"


@pytest.mark.parametrize("parts", [{"schema": None}, {"schema": 7}, {"alias": 7}, {"name": []}])
def test_without_the_name_of_a_dataset_nothing_is_taken_as_removed(
    tmp_path: Path, parts: Document
) -> None:
    found = changed(tmp_path, break_orders(**{"alias": None, **parts}))
    assert [item.item for item in of(UnreadableItem, found)] == ["model.shop.orders"]
    assert not of(ScannedScope, found)


@pytest.mark.parametrize(
    "name",
    ["<script>alert(1)</script>", "a\nb\r\x00c", "../../etc/passwd", "..", "ünï köd", "x" * 5_000],
)
def test_hostile_names_are_names(tmp_path: Path, name: str) -> None:
    found = changed(tmp_path, break_orders(alias=name, schema=name))
    (orders,) = [
        dataset
        for dataset in of(LumosDataset, found)
        if "model.shop.orders" in json.dumps(dataset.to_json()["extensions"])
    ]
    assert orders.name == name
    assert "\n" not in orders.urn
    assert "<" not in orders.urn
    assert not {".", ".."} & set(orders.urn.split("/"))


def test_a_broken_test_or_exposure_costs_only_itself(tmp_path: Path) -> None:
    def damage(manifest: Document) -> None:
        manifest["nodes"]["test.shop.unique_orders_order_id.fed79b3a6e"]["test_metadata"] = 7
        manifest["exposures"]["exposure.shop.revenue_dashboard"]["owner"] = "jane"

    found = changed(tmp_path, damage)
    assert [item.item for item in of(UnreadableItem, found)] == [
        "test.shop.unique_orders_order_id.fed79b3a6e",
        "exposure.shop.revenue_dashboard",
    ]
    assert of(UnreadableItem, found)[1].urn == "lumos://dbt/shop/exposures/revenue_dashboard"
    assert len(datasets(found)) == 10
    assert isinstance(found[-1], ScannedScope)


def test_an_odd_table_of_the_catalog_costs_only_itself(tmp_path: Path) -> None:
    catalog = loaded("catalog.json")
    catalog["nodes"]["model.shop.orders"] = []
    catalog["nodes"]["model.shop.stg_orders"]["columns"]["status"] = 7
    folder = written(tmp_path / "t", loaded("manifest.json"), catalog=catalog)
    found = scanned(handler(folder))
    assert [item.item for item in of(UnreadableItem, found)] == [
        "catalog.json: model.shop.orders",
        "model.shop.stg_orders",
    ]
    assert len(datasets(found)) == 8, "fewer columns would look like removed ones"
    assert {item.urn for item in of(UnreadableItem, found)} == {ORDERS, f"{SHOP}/public/stg_orders"}
    assert len(of(LineageEdge, found)) == 8


ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**70, 1.5, "", "x", "\ud800", "\udc80", "a\nb", "<b>", "../x"),
    *([], [None], ["x"], [["x"]], {}, {"x": None}, {"": ""}, {"x": {"x": 1}}),
    *({"name": 7}, [{"type": "primary_key"}], "ephemeral", "source", "test", "model.shop.orders"),
)
DEEP: Any = None
for _ in range(300):
    DEEP = {"x": [DEEP]}


def spots(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value within a document."""
    items: Any = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        yield (*path, key)
        yield from spots(item, (*path, key))


FILES = ("manifest", "catalog", "run_results")
DOCUMENTS = {name: loaded(f"{name}.json") for name in FILES}
SPOTS = {name: list(spots(document)) for name, document in DOCUMENTS.items()}
MUTATIONS = st.lists(
    st.tuples(
        st.sampled_from(("manifest", *FILES)),
        st.integers(min_value=0, max_value=2**32),
        st.one_of(st.sampled_from((*ODD, DEEP)), st.just(...)),
    ),
    min_size=1,
    max_size=5,
)
WHOLE = datasets(scanned(handler(NEWEST, catalog_path=None, run_results_path=None))).keys()


@given(mutations=MUTATIONS)
def test_whatever_a_file_holds_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, mutations: list[tuple[str, int, Any]]
) -> None:
    documents = copy.deepcopy(DOCUMENTS)
    for name, number, value in mutations:
        _mutate(documents[name], SPOTS[name][number % len(SPOTS[name])], value)
    folder = written(tmp_path_factory.mktemp("odd"), **documents)
    try:
        found = scanned(handler(folder))
    except SourceError as error:
        f"{error} {error.hint}".encode()
        return
    urns = [record.urn for record in of(LumosDataset, found)]
    assert len(urns) == len(set(urns))
    for record in found:
        if isinstance(record, CanonicalModel):
            orjson.dumps(record.to_json())
        elif isinstance(record, UnreadableItem):
            assert isinstance(record.error, LumosError)
            f"{record.item} {record.error}".encode()
        elif isinstance(record, ScanWarning | SkippedItem):
            str(record).encode()


@given(
    number=st.integers(min_value=0, max_value=2**32),
    value=st.one_of(st.sampled_from((*ODD, DEEP)), st.just(...)),
)
def test_whatever_one_node_holds_costs_no_other(
    tmp_path_factory: pytest.TempPathFactory, number: int, value: Any
) -> None:
    inside = [path for path in SPOTS["manifest"] if path[0] in ("nodes", "sources") and path[2:]]
    manifest = copy.deepcopy(DOCUMENTS["manifest"])
    path = inside[number % len(inside)]
    _mutate(manifest, path, value)
    found = datasets(scanned(handler(written(tmp_path_factory.mktemp("odd"), manifest))))
    assert len(found.keys() & WHOLE) >= len(WHOLE) - 1


def _mutate(document: Any, path: tuple[Any, ...], value: Any) -> None:
    """Replace or remove what is at a path, if an earlier mutation left it there."""
    for key in path[:-1]:
        if not isinstance(document, dict | list) or (
            isinstance(document, dict) and key not in document
        ):
            return
        if isinstance(document, list) and not (isinstance(key, int) and key < len(document)):
            return
        document = document[key]
    if isinstance(document, dict) and path[-1] in document:
        if value is ...:
            del document[path[-1]]
        else:
            document[path[-1]] = copy.deepcopy(value)


def test_a_freshness_that_is_no_text_is_named_and_costs_no_other(tmp_path: Path) -> None:
    def spoil(manifest: Document) -> None:
        for source in manifest["sources"].values():
            source["freshness"] = {"warn_after": {"count": 1, "period": "\ud800"}}

    found = changed(tmp_path, spoil)
    assert len(datasets(found)) == 10
    problems = of(UnreadableItem, found)
    assert len(problems) == len(loaded("manifest.json")["sources"])
    assert all("not a valid DQAssertion" in problem.error.message for problem in problems)
