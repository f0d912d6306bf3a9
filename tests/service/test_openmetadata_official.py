"""What is built with OpenMetadata's own models is read, moved to another server and equal there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from doubles.openmetadata_server import openmetadata_at, openmetadata_server
from doubles.openmetadata_store import OpenMetadataStore
from lumos.core.models import LumosDataset
from lumos.core.platform.batch import Batch
from lumos.core.platform.impl.openmetadata.handler import OpenMetadataHandler
from lumos.core.platform.interface import ENTITY_KINDS
from openmetadata_payloads import ORACLES, official_entities

pytestmark = pytest.mark.service
FLOOR = 0.99
_SET_BY_SERVERS = {"id", "version", "updatedAt", "href", "extension"}
_SAID_OTHERWISE = {"dataTypeDisplay", "constraint", "tableConstraints"}
"""Lumos spells out types, and says of the table what others say of its columns: keys."""


@pytest.fixture(params=ORACLES)
def source(
    request: pytest.FixtureRequest,
) -> Iterator[tuple[OpenMetadataHandler, OpenMetadataStore]]:
    """A catalog that others filled, by requests of the official models."""
    with openmetadata_server() as (url, store), openmetadata_at(url) as platform:
        for each in official_entities(request.param):
            if "tableProfile" in each["body"]:
                table = store.by_name("tables", each["collection"])
                store.put_profile(table["id"], each["body"])
            else:
                store.put(each["collection"], each["body"])
        yield platform, store


@pytest.fixture
def target() -> Iterator[tuple[OpenMetadataHandler, OpenMetadataStore]]:
    with openmetadata_server() as (url, store), openmetadata_at(url) as platform:
        yield platform, store


def copied(source: OpenMetadataHandler, target: OpenMetadataHandler) -> list[LumosDataset]:
    """Bring everything from one catalog to the other; return the datasets."""
    for kind in ENTITY_KINDS:
        for entity in source.list_entities(kind):
            target.apply(Batch(entities=[entity]))
    datasets = [*source.list()]
    for dataset in datasets:
        target.emit_dataset(dataset)
    return datasets


def test_all_that_the_official_models_build_is_equal_after_a_move(
    source: tuple[OpenMetadataHandler, OpenMetadataStore],
    target: tuple[OpenMetadataHandler, OpenMetadataStore],
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = copied(source[0], target[0])
    after = {dataset.urn: dataset for dataset in target[0].list()}

    assert len({dataset.urn for dataset in before}) == len(before) == len(after)
    assert all(source[0].get_dataset(dataset.urn) == dataset for dataset in before[:20])
    for kind in ENTITY_KINDS:
        assert [*source[0].list_entities(kind)] == [*target[0].list_entities(kind)]
    equal = [dataset for dataset in before if after.get(dataset.urn) == dataset]
    same = [*_same_entities(source[1], target[1])]
    profiles = _figures(source[1])
    assert profiles
    assert _figures(target[1]) == profiles
    with capsys.disabled():
        sys.stdout.write(
            f"\nopenmetadata: {len(equal)}/{len(before)} datasets equal after a move, "
            f"{sum(same)}/{len(same)} tables and containers equal in the catalog\n"
        )
    assert len(equal) / len(before) >= FLOOR
    assert sum(same) / len(same) >= FLOOR


def test_what_was_moved_is_not_written_again_in_either_catalog(
    source: tuple[OpenMetadataHandler, OpenMetadataStore],
    target: tuple[OpenMetadataHandler, OpenMetadataStore],
) -> None:
    datasets = copied(source[0], target[0])
    for platform, store in (source, target):
        store.requests.clear()
        for dataset in datasets:
            platform.emit_dataset(dataset)
        assert store.writes() == []


def _figures(store: OpenMetadataStore) -> dict[str, list[Any]]:
    """Return all profiles by the names of their tables, without what may be text of the data."""
    return {
        store.by_id(identity)[1]["fullyQualifiedName"]: [_numbers(each) for each in profiles]
        for identity, profiles in store.profiles.items()
    }


def _numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [_numbers(each) for each in value]
    if isinstance(value, dict):
        return {key: _numbers(each) for key, each in value.items() if each != "secret"}
    return value


def _same_entities(left: OpenMetadataStore, right: OpenMetadataStore) -> Iterator[bool]:
    for collection in ("tables", "containers"):
        for name, entity in left.entities[collection].items():
            yield _plain(entity) == _plain(right.entities[collection].get(name))


def _plain(value: Any) -> Any:
    """Return an entity without what the server sets and what Lumos says in another way."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        if "tagFQN" in value:
            return value["tagFQN"], value["source"]
        left_out = _SET_BY_SERVERS | _SAID_OTHERWISE
        return {key: _plain(each) for key, each in value.items() if key not in left_out}
    return value
