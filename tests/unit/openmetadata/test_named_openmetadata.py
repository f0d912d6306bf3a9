"""The tests on a server that somebody named change nothing there but what they made."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest

from doubles.openmetadata_server import ADMIN_TOKEN
from doubles.openmetadata_store import Json, OpenMetadataStore
from lumos.core.models import (
    ColumnMapping,
    DatasetLineage,
    Domain,
    GlossaryTerm,
    Group,
    Job,
    Tag,
    Urn,
    User,
    with_parts,
)
from lumos.core.platform.batch import Batch, Identity
from lumos.core.platform.impl.openmetadata.handler import OpenMetadataHandler
from lumos.core.platform.interface import Entity
from lumos.testing.platform_samples import AT, dataset, edge, rich_dataset
from named_openmetadata import ROOTS, ForeignEntityError, NamedServer


@pytest.fixture
def used(store: OpenMetadataStore) -> OpenMetadataStore:
    """A server that others use, with things of the names that tests use."""
    store.put("services/storageServices", {"name": "s3", "serviceType": "S3"})
    store.put("containers", {"name": "lake", "service": "s3", "description": "Of others"})
    lake = {"id": store.entities["containers"]["s3.lake"]["id"], "type": "container"}
    store.put("containers", {"name": "customers", "service": "s3", "parent": lake})
    store.put("users", {"name": "ada", "email": "ada@example.org", "displayName": "Ada L."})
    store.put("teams", {"name": "shop", "teamType": "Group"})
    store.put("glossaries", {"name": "lumos", "description": "Of others"})
    store.put("glossaryTerms", {"name": "Order", "glossary": "lumos", "description": "Of others"})
    store.put("domains", {"name": "sales", "domainType": "Aggregate", "description": "Of others"})
    return store


@pytest.fixture
def server(used: OpenMetadataStore) -> Iterator[NamedServer]:
    server = NamedServer({"server": used.url, "auth_token": ADMIN_TOKEN})
    yield server
    server.close()


def held(store: OpenMetadataStore) -> dict[str, dict[str, Json]]:
    return copy.deepcopy(store.entities)


def written(platform: OpenMetadataHandler) -> None:
    column = {"fields": [{"name": "id", "type": "INT64", "pii": True}]}
    checked = dataset(
        "orders",
        platform="snowflake",
        schema=column,
        tags=["Tier.Tier1", "Tier.One", "gold"],
        ownership=[{"user": "ada"}, {"user": "admin"}],
        governance={"domains": ["sales"], "glossary_terms": ["Order"]},
        assertions=[
            {"name": "id is set", "kind": "not_null", "column": "id"},
            {"name": "tidy", "kind": "custom"},
        ],
        quality={"checks": [{"name": "tidy", "status": "PASSED", "timestamp": AT}]},
        profile={"profiled_at": AT, "row_count": 3, "file_count": 1, "columns": []},
    )
    words: list[Entity] = [
        User(username="ada", email="ada@example.org", about_me="Mine"),
        User(username="admin", about_me="Mine"),
        Group(name="shop", description="Mine"),
        Tag(name="gold", description="Mine"),
        GlossaryTerm(name="Order", definition="Mine"),
        Domain(name="sales", description="Mine"),
        Job(urn=Urn("lumos://airflow/daily/load"), name="load"),
    ]
    both = [rich_dataset(), checked, dataset("b", platform="snowflake", schema=column)]
    platform.apply(Batch(entities=words))
    platform.apply(Batch(datasets=both))
    mapping = ColumnMapping(upstream_column="id", downstream_column="id")
    platform.apply(Batch(edges=[edge(both[1], both[2], column_mappings=(mapping,))]))
    platform.apply(Batch(identities=[Identity(both[0].urn, "other", "1")], extensions={"x": 1}))
    platform.apply(Batch(datasets=[with_parts(both[1], version="2.0.0")]))

    assert {each.urn for each in platform.list()} == {each.urn for each in both}
    found = with_parts(platform.get_dataset(checked.urn), lineage=DatasetLineage())
    assert found == with_parts(checked, version="2.0.0")
    assert {hit.urn for hit in platform.search("orders tier").hits} == {checked.urn}
    assert [*platform.list_entities("user")] == words[:1]
    assert len([*platform.list_edges()]) == 1


def test_only_what_has_the_prefix_of_the_run_is_made_and_removed(
    used: OpenMetadataStore, server: NamedServer
) -> None:
    before = held(used)
    with server.adapter() as platform:
        assert [*platform.list()] == []
        written(platform)

    made = {
        (collection, name)
        for collection, entities in held(used).items()
        for name in entities.keys() - before[collection].keys()
    }
    assert {name for _, name in made if server.prefix not in name} == set()
    assert {collection for collection, _ in made} >= set(ROOTS)
    for collection, entities in before.items():
        for name, entity in entities.items():
            assert used.entities[collection][name] == entity

    server.remove_made()
    assert held(used) == before


def test_what_others_made_cannot_be_changed(used: OpenMetadataStore, server: NamedServer) -> None:
    before = held(used)
    with server.adapter() as platform:
        api = platform._api
        for type_, name in (("user", "admin"), ("user", "ingestion-bot"), ("tag", "Tier.Tier1")):
            _, entity = used.by_id(next(
                each["id"] for entities in used.entities.values()
                for full, each in entities.items() if full == name
            ))  # fmt: skip
            change: Json = {"op": "add", "path": "/description", "value": "x"}
            with pytest.raises(ForeignEntityError):
                api.patch(type_, dict(entity), changes=[change])
            with pytest.raises(ForeignEntityError):
                api.delete(type_, dict(entity))
    assert held(used) == before
