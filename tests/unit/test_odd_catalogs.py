"""Whatever a server answers of one thing: all else is read, and that one is read or named."""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atlas_payloads import CLASSIFICATIONS, payloads
from doubles.atlas_server import AtlasServer, atlas_at
from doubles.datahub_server import datahub_double
from doubles.openmetadata_server import openmetadata_at, openmetadata_server
from lumos.core.errors import LumosError
from lumos.core.models import DatasetLineage, LumosDataset, with_parts
from lumos.core.platform.abilities import (
    EntityAbility,
    ExtensionAbility,
    IdentityAbility,
    LineageAbility,
)
from lumos.core.platform.batch import Batch, Seen
from lumos.core.platform.batches import found_together
from lumos.core.platform.http import CatalogHttp
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.interface import ENTITY_KINDS, MetadataPlatformInterface
from lumos.testing.platform_samples import ENTITY_MAKERS, dataset, edge, rich_dataset

EXAMPLES = 300 if os.environ.get("LUMOS_TEST_FULL") == "1" else 12
NAMES = ("above", "below", "victim")
VICTIM = str(rich_dataset("victim").urn)
ODD_VALUES: tuple[Any, ...] = (
    None, "", " ", 0, -1, 10**17, 1e300, 2**63 - 1, 1.5, True, [], {}, [None], [[]], [{}],
    {"": None}, "x",
    "urn:li:", "lumos://", "\x00",
)  # fmt: skip
OWN_NAME = object()
"""Stands for what the catalog calls the dataset itself."""
MOST_SPOTS = 10_000
Path = tuple[str | int, ...]


PLACEHOLDER = ("attributes", "placeholder")
"""Says in Atlas that an entity is only the end of an edge, and no dataset of the catalog."""


@dataclass(frozen=True, repr=False)
class Catalog:
    """A catalog with datasets, and what tells one thing in its answers from others."""

    platform: MetadataPlatformInterface
    urn: str
    """The dataset of which something odd is told."""
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
        self.page: tuple[str, Any] | None = None
        """A key of whole answers, and what stands there instead."""
        self.keys: dict[str, Any] = {}
        """The keys of all whole answers, with one of their values."""

    def answered(self, answer: Any) -> Any:
        """Return a whole answer, with another value under the key that is to be altered."""
        if isinstance(answer, dict):
            self.keys |= answer
            if self.page and self.page[0] in answer:
                answer = {**answer, self.page[0]: self.page[1]}
        return self.passed(answer)

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
        return wire.answered(untouched(self, call, answer))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CatalogHttp, "_content", content)
        yield wire


def _filled(platform: MetadataPlatformInterface) -> None:
    for kind in ENTITY_KINDS:
        platform.apply(Batch(entities=[ENTITY_MAKERS[kind](f"some {kind}")]))
    datasets = [rich_dataset(name) for name in NAMES]
    platform.apply(Batch(datasets=datasets))
    above, below, victim = datasets
    columns = ({"upstream_column": "email", "downstream_column": "email"},)
    platform.apply(Batch(edges=[edge(above, victim, column_mappings=columns)]))
    platform.apply(Batch(edges=[edge(victim, below)]))
    platform.apply(Batch(extensions={"other": {"kept": True}}))


def _datahub(stack: ExitStack) -> Catalog:
    url, _ = stack.enter_context(datahub_double())
    platform = stack.enter_context(DataHubHandler.from_config({"gms_server": url}))
    _filled(platform)
    urn = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/victim,PROD)"
    fixed = frozenset({"urn", "status", "datasetKey"})

    def is_victim(document: dict[str, Any]) -> bool:
        return document.get("urn") == urn

    return Catalog(platform, VICTIM, is_victim, fixed, urn)


def _datahub_of_others(stack: ExitStack) -> Catalog:
    url, double = stack.enter_context(datahub_double())
    platform = stack.enter_context(DataHubHandler.from_config({"gms_server": url}))
    _filled(platform)
    urn = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/victim,PROD)"
    platform.delete(VICTIM)
    del double.stored[urn]
    double.put(urn, **_aspects(urn))
    fixed = frozenset({"urn", "status", "datasetKey"})

    def is_victim(document: dict[str, Any]) -> bool:
        return document.get("urn") == urn

    return Catalog(platform, VICTIM, is_victim, fixed, urn)


def _aspects(urn: str) -> dict[str, Any]:
    """Return what connectors and people tell of a dataset."""
    stamp = {"time": 1_705_314_600_000, "actor": "urn:li:corpuser:etl"}
    above = urn.replace("victim", "above")
    tags = {"tags": [{"tag": "urn:li:tag:gold"}]}
    terms = {"terms": [{"urn": "urn:li:glossaryTerm:Customer"}], "auditStamp": stamp}
    kinds = {"id": "NumberType", "name": "StringType", "[version=2.0].[type=struct].x": "ArrayType"}
    fields = [
        {
            "fieldPath": path,
            "nullable": True,
            "type": {"type": {f"com.linkedin.schema.{kind}": {}}},
            "nativeDataType": "varchar(20)",
            "description": "some words",
            "globalTags": tags,
            "glossaryTerms": terms,
        }
        for path, kind in kinds.items()
    ]
    mapping = {
        "upstreamType": "FIELD_SET",
        "upstreams": [f"urn:li:schemaField:({above},email)"],
        "downstreamType": "FIELD",
        "downstreams": [f"urn:li:schemaField:({urn},name)"],
        "confidenceScore": 0.5,
    }
    return {
        "datasetProperties": {"customProperties": {"a": "b"}, "name": "victim", "description": "x"},
        "schemaMetadata": {
            "schemaName": "victim",
            "platform": "urn:li:dataPlatform:s3",
            "version": 0,
            "hash": "",
            "platformSchema": {"com.linkedin.schema.OtherSchema": {"rawSchema": ""}},
            "fields": fields,
            "primaryKeys": ["id"],
            "foreignKeys": [
                {
                    "name": "fk",
                    "foreignDataset": above,
                    "foreignFields": [f"urn:li:schemaField:({above},customer_id)"],
                    "sourceFields": [f"urn:li:schemaField:({urn},id)"],
                }
            ],
        },
        "editableSchemaMetadata": {
            "editableSchemaFieldInfo": [
                {"fieldPath": "name", "description": "by hand", "globalTags": tags}
            ],
            "created": stamp,
            "lastModified": stamp,
        },
        "editableDatasetProperties": {"description": "by hand", "created": stamp},
        "subTypes": {"typeNames": ["Table"]},
        "globalTags": tags,
        "glossaryTerms": terms,
        "domains": {"domains": ["urn:li:domain:sales"]},
        "ownership": {
            "owners": [{"owner": "urn:li:corpuser:ada", "type": "DATAOWNER"}],
            "lastModified": stamp,
        },
        "institutionalMemory": {
            "elements": [{"url": "https://example.org", "description": "x", "createStamp": stamp}]
        },
        "deprecation": {
            "deprecated": True,
            "note": "old",
            "actor": "urn:li:corpuser:ada",
            "decommissionTime": 1_905_314_600_000,
        },
        "upstreamLineage": {
            "upstreams": [{"dataset": above, "type": "COPY", "auditStamp": stamp}],
            "fineGrainedLineages": [mapping],
        },
        "datasetProfile": {"timestampMillis": 1_705_314_600_000, "rowCount": 7, "columnCount": 3},
        "operation": {
            "timestampMillis": 1_705_314_600_000,
            "operationType": "UPDATE",
            "lastUpdatedTimestamp": 1_705_314_600_000,
        },
    }


def _openmetadata(stack: ExitStack) -> Catalog:
    url, _ = stack.enter_context(openmetadata_server())
    platform = stack.enter_context(openmetadata_at(url))
    _filled(platform)
    name = "s3.lake.victim"

    def is_victim(document: dict[str, Any]) -> bool:
        return document.get("fullyQualifiedName") == name and "service" in document

    return Catalog(platform, VICTIM, is_victim, frozenset({"id", "deleted", "version"}), name)


def _openmetadata_of_others(stack: ExitStack) -> Catalog:
    url, store = stack.enter_context(openmetadata_server())
    platform = stack.enter_context(openmetadata_at(url))
    _filled(platform)
    urn = "lumos://postgres/shop/public/victim"
    table = with_parts(rich_dataset("victim"), urn=urn, platform="postgres", extensions={})
    platform.delete(VICTIM)
    platform.emit_dataset(table)
    platform.apply(Batch(edges=[edge(rich_dataset("above"), table)]))
    name = "postgres.shop.public.victim"
    del store.entities["tables"][name]["extension"]["lumos"]

    def is_victim(document: dict[str, Any]) -> bool:
        return document.get("fullyQualifiedName") == name and "databaseSchema" in document

    return Catalog(platform, urn, is_victim, frozenset({"id", "deleted", "version"}), name)


def _atlas(stack: ExitStack) -> Catalog:
    server = stack.enter_context(AtlasServer())
    platform = stack.enter_context(atlas_at(server))
    _filled(platform)
    name = str(rich_dataset("victim").urn)

    def is_victim(document: dict[str, Any]) -> bool:
        attributes = document.get("attributes")
        return isinstance(attributes, dict) and attributes.get("qualifiedName") == name

    return Catalog(platform, VICTIM, is_victim, frozenset({"guid", "status", "typeName"}), name)


def _atlas_of_others(stack: ExitStack) -> Catalog:
    server = stack.enter_context(AtlasServer())
    server.store.define(CLASSIFICATIONS, anew=True)
    server.store.put(payloads())
    platform = stack.enter_context(atlas_at(server))
    _filled(platform)
    name = "sales.orders@prod"

    def is_victim(document: dict[str, Any]) -> bool:
        attributes = document.get("attributes")
        return isinstance(attributes, dict) and attributes.get("qualifiedName") == name

    urn = f"lumos://hive/{name}"
    return Catalog(platform, urn, is_victim, frozenset({"guid", "status", "typeName"}), name)


CATALOGS: dict[str, Callable[[ExitStack], Catalog]] = {
    "datahub": _datahub,
    "datahub of others": _datahub_of_others,
    "openmetadata": _openmetadata,
    "openmetadata of others": _openmetadata_of_others,
    "atlas": _atlas,
    "atlas of others": _atlas_of_others,
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
    assert catalog.urn in [each.urn for each in datasets]
    found = {path: None for document in wire.seen for path in _paths(document)}
    spots = [
        path
        for path in found
        if catalog.fixed.isdisjoint(map(str, path[:1])) and path != PLACEHOLDER
    ]
    return Sound(datasets, spots)


@settings(max_examples=EXAMPLES)
@given(
    spot=st.integers(min_value=0, max_value=MOST_SPOTS),
    drops=st.booleans(),
    value=st.sampled_from((*ODD_VALUES, OWN_NAME)),
)
def test_one_odd_thing_costs_no_other(
    catalog: Catalog, wire: Wire, sound: Sound, *, spot: int, drops: bool, value: Any
) -> None:
    platform, before = catalog.platform, sound.datasets
    wire.path, wire.drops = sound.spots[spot % len(sound.spots)], drops
    wire.value = catalog.own_name if value is OWN_NAME else value
    after = [*platform.list()]
    named = [each for each in platform.unreadable() if each.kind == "dataset"]
    untouched = {each.urn: _alone(each) for each in before if each.urn != catalog.urn}
    assert {each.urn: _alone(each) for each in after if each.urn in untouched} == untouched
    assert len(after) + len(named) == len(before)
    edges = [*LineageAbility.of(platform).list_edges()]
    assert all(each.upstream_urn != each.downstream_urn for each in edges)
    for kind in ENTITY_KINDS:
        assert [*EntityAbility.of(platform).list_entities(kind)] or kind != "tag"
    assert ExtensionAbility.of(platform).extensions()["other"] == {"kept": True}
    IdentityAbility.of(platform).identity_map()
    platform.search("")
    looked = found_together(platform, [each.urn for each in before])
    assert all(isinstance(each, Seen | LumosError) for each in looked.values())


def test_a_page_of_another_shape_is_never_the_end_of_a_listing(
    catalog: Catalog, wire: Wire, sound: Sound
) -> None:
    wire.path, wire.keys = (), {}
    assert len([*catalog.platform.list()]) == len(sound.datasets)
    parts = {key: each for key, each in wire.keys.items() if isinstance(each, list | dict)}
    assert parts
    for key, value in itertools.product(parts, (5, [5])):
        wire.page = (key, value)
        outcome = _listed(catalog.platform)
        wire.page = None
        if isinstance(outcome, LumosError):
            assert "\n" not in outcome.message
            assert "Error)" not in outcome.message, (key, value)
        else:
            assert outcome == len(sound.datasets), (key, value)


def _listed(platform: MetadataPlatformInterface) -> int | LumosError:
    """Return how many datasets were listed or named as unreadable, or why none could be."""
    try:
        found = sum(1 for _ in platform.list())
    except LumosError as error:
        return error
    return found + sum(1 for each in platform.unreadable() if each.kind == "dataset")


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
        platform.apply(Batch(edges=[edge(dataset("above"), found)]))
        assert (identity, identity) in store.edges
    with openmetadata_server() as (url, store), openmetadata_at(url) as platform:
        platform.apply(Batch(datasets=[found]))
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


def test_a_process_of_atlas_that_is_gone_meanwhile_costs_no_dataset() -> None:
    with AtlasServer() as server, atlas_at(server) as platform:
        _filled(platform)
        guids = sorted(server.store.entities)
        there = platform._client.entities([*guids, "nobody"])[0]
        assert sorted(str(each["guid"]) for each in there) == guids
