"""Whatever a server answers of one thing: all else is read, and that one is read or named."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doubles.atlas_server import AtlasServer, atlas_at
from doubles.datahub_server import datahub_double
from doubles.openmetadata_server import openmetadata_at, openmetadata_server
from lumos.core.errors import LumosError
from lumos.core.models import DatasetLineage, LumosDataset, with_parts
from lumos.core.platform.batches import found_together
from lumos.core.platform.http import CatalogHttp
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.interface import ENTITY_KINDS, MetadataPlatformInterface
from lumos.testing.platform_samples import ENTITY_MAKERS, dataset, edge, rich_dataset

EXAMPLES = 1_000 if os.environ.get("LUMOS_TEST_FULL") == "1" else 12
NAMES = ("above", "below", "victim")
ODD_VALUES: tuple[Any, ...] = (
    None, "", " ", 0, -1, 10**17, 10**300, 1.5, True, [], {}, [None], [[]], [{}], {"": None}, "x",
    "urn:li:", "lumos://", "\x00",
)  # fmt: skip
Path = tuple[str | int, ...]


@dataclass(frozen=True, repr=False)
class Catalog:
    """A catalog with three datasets, and what tells one thing in its answers from others."""

    platform: MetadataPlatformInterface
    is_victim: Callable[[dict[str, Any]], bool]
    fixed: frozenset[str]
    """What the server makes sure of by itself, or that says whether there is a dataset at all."""
    own_name: str


class Wire:
    """What passes from servers to adapters, with one thing altered on its way."""

    def __init__(self) -> None:
        self.catalog: Catalog | None = None
        self.path: Path = ()
        self.value: Any = None
        self.drops = False
        self.seen: list[dict[str, Any]] = []

    def passed(self, answer: Any) -> Any:
        """Return an answer in which every mention of the victim is altered."""
        if isinstance(answer, list):
            return [self.passed(each) for each in answer]
        if not isinstance(answer, dict):
            return answer
        if self.catalog is not None and self.catalog.is_victim(answer):
            self.seen.append(answer)
            return self._altered(answer)
        return {name: self.passed(value) for name, value in answer.items()}

    def _altered(self, victim: dict[str, Any]) -> dict[str, Any]:
        whole = copy.deepcopy(victim)
        place: Any = whole
        for step in self.path[:-1]:
            if not _has(place, step):
                return whole
            place = place[step]
        if self.path and _has(place, self.path[-1]):
            if self.drops:
                del place[self.path[-1]]
            else:
                place[self.path[-1]] = copy.deepcopy(self.value)
        return whole


def _has(place: Any, step: str | int) -> bool:
    if isinstance(place, dict):
        return step in place
    return isinstance(place, list) and isinstance(step, int) and step < len(place)


def _paths(value: Any, above: Path = ()) -> Iterator[Path]:
    if above:
        yield above
    steps: Iterator[tuple[str | int, Any]] = iter(())
    if isinstance(value, dict):
        steps = iter(value.items())
    elif isinstance(value, list):
        steps = iter(enumerate(value))
    for step, each in steps:
        yield from _paths(each, (*above, step))


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    wire = Wire()
    untouched = CatalogHttp._content

    def content(self: CatalogHttp, call: Any, answer: Any) -> Any:
        return wire.passed(untouched(self, call, answer))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CatalogHttp, "_content", content)
        yield wire


def _filled(platform: MetadataPlatformInterface) -> None:
    for kind in ENTITY_KINDS:
        platform.emit_entity(ENTITY_MAKERS[kind](f"some {kind}"))
    datasets = [rich_dataset(name) for name in NAMES]
    platform.emit_datasets(datasets)
    above, below, victim = datasets
    columns = ({"upstream_column": "email", "downstream_column": "email"},)
    platform.emit_edge(edge(above, victim, column_mappings=columns))
    platform.emit_edge(edge(victim, below))
    platform.emit_extension("other", {"kept": True})


def _datahub(stack: ExitStack) -> Catalog:
    url, _ = stack.enter_context(datahub_double())
    platform = stack.enter_context(DataHubHandler.from_config({"gms_server": url}))
    _filled(platform)
    urn = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/victim,PROD)"
    fixed = frozenset({"urn", "status", "datasetKey"})
    return Catalog(platform, lambda document: document.get("urn") == urn, fixed, urn)


def _openmetadata(stack: ExitStack) -> Catalog:
    url, _ = stack.enter_context(openmetadata_server())
    platform = stack.enter_context(openmetadata_at(url))
    _filled(platform)
    name = "s3.lake.victim"

    def is_victim(document: dict[str, Any]) -> bool:
        return document.get("fullyQualifiedName") == name and "service" in document

    return Catalog(platform, is_victim, frozenset({"id", "deleted", "version"}), name)


def _atlas(stack: ExitStack) -> Catalog:
    server = stack.enter_context(AtlasServer())
    platform = stack.enter_context(atlas_at(server))
    _filled(platform)
    name = str(rich_dataset("victim").urn)

    def is_victim(document: dict[str, Any]) -> bool:
        attributes = document.get("attributes")
        return isinstance(attributes, dict) and attributes.get("qualifiedName") == name

    return Catalog(platform, is_victim, frozenset({"guid", "status", "typeName"}), name)


CATALOGS: dict[str, Callable[[ExitStack], Catalog]] = {
    "datahub": _datahub,
    "openmetadata": _openmetadata,
    "atlas": _atlas,
}


@pytest.fixture(scope="module", params=CATALOGS)
def catalog(request: pytest.FixtureRequest, wire: Wire) -> Iterator[Catalog]:
    with ExitStack() as stack:
        wire.catalog = None
        made = CATALOGS[request.param](stack)
        wire.catalog = made
        yield made
        wire.catalog = None


def _alone(found: LumosDataset) -> LumosDataset:
    """Return a dataset without neighbours: of those it is the odd one that tells."""
    return with_parts(found, lineage=DatasetLineage())


@dataclass(frozen=True, repr=False)
class Sound:
    """What is read while nothing is altered, and every place in what is told of the victim."""

    datasets: list[LumosDataset]
    spots: list[Path]


@pytest.fixture(scope="module")
def sound(catalog: Catalog, wire: Wire) -> Sound:
    wire.path, wire.seen = (), []
    datasets = [*catalog.platform.list()]
    assert [each.name for each in datasets] == [*NAMES]
    found = {path: None for document in wire.seen for path in _paths(document)}
    spots = [path for path in found if catalog.fixed.isdisjoint(map(str, path[:1]))]
    return Sound(datasets, spots)


@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_one_odd_thing_costs_no_other(
    catalog: Catalog, wire: Wire, sound: Sound, data: st.DataObject
) -> None:
    platform, before = catalog.platform, sound.datasets
    wire.path = data.draw(st.sampled_from(sound.spots), label="path")
    wire.drops = data.draw(st.booleans(), label="drops")
    wire.value = data.draw(st.sampled_from((*ODD_VALUES, catalog.own_name)), label="value")
    after = [*platform.list()]
    named = [each for each in platform.unreadable() if each.kind == "dataset"]
    untouched = {each.urn: _alone(each) for each in before if each.name != "victim"}
    assert {each.urn: _alone(each) for each in after if each.urn in untouched} == untouched
    assert len(after) + len(named) == len(before)
    edges = [*platform.list_edges()]
    assert all(each.upstream_urn != each.downstream_urn for each in edges)
    for kind in ENTITY_KINDS:
        assert [*platform.list_entities(kind)] or kind != "tag"
    assert platform.extensions()["other"] == {"kept": True}
    platform.identity_map()
    platform.search("")
    looked = found_together(platform, [dataset(name).urn for name in NAMES])
    assert all(isinstance(each, LumosDataset | LumosError) for each in looked.values())


def test_a_table_of_openmetadata_that_reads_itself_keeps_that_on_its_way() -> None:
    with openmetadata_server() as (url, store), openmetadata_at(url) as platform:
        platform.emit_dataset(dataset("orders"))
        identity = store.by_name("containers", "s3.lake.orders")["id"]
        ends = {"fromEntity": identity, "toEntity": identity}
        details = {"source": "SparkLineage", "sqlQuery": "INSERT INTO orders SELECT …"}
        store.edges[identity, identity] = {**ends, "lineageDetails": details}
        (found,) = platform.list()
        assert found == platform.get_dataset(found.urn)
        assert (found.lineage, [*platform.list_edges()]) == (DatasetLineage(), [])
        assert found.document["extensions"] == {"openmetadata": {"itself": details}}
        platform.emit_edge(edge(dataset("above"), found))
        assert (identity, identity) in store.edges
    with openmetadata_server() as (url, store), openmetadata_at(url) as platform:
        platform.emit_datasets([found])
        assert [*platform.list()] == [found]
        ((ends_now, edge_now),) = store.edges.items()
        assert ends_now[0] == ends_now[1]
        assert edge_now["lineageDetails"]["sqlQuery"] == details["sqlQuery"]


def test_a_table_of_atlas_that_reads_itself_keeps_that_in_its_extension() -> None:
    with AtlasServer() as server, atlas_at(server) as platform:
        table = {"typeName": "hive_table", "guid": "-1"}
        process: Any = {"qualifiedName": "q1", "name": "q1", "inputs": [table], "outputs": [table]}
        attributes: Any = {"qualifiedName": "db.t@c", "name": "t"}
        server.store.put(
            [
                {"typeName": "hive_table", "guid": "-1", "attributes": attributes},
                {"typeName": "Process", "guid": "-2", "attributes": process},
            ]
        )
        (found,) = platform.list()
        assert (found.lineage, [*platform.list_edges()]) == (DatasetLineage(), [])
        kept: Any = found.document["extensions"]
        (itself,) = kept["atlas"]["itself"]
        assert itself == {
            "typeName": "Process",
            "attributes": {"qualifiedName": "q1", "name": "q1"},
        }
    with AtlasServer() as server, atlas_at(server) as platform:
        platform.emit_dataset(found)
        assert [*platform.list()] == [found]
