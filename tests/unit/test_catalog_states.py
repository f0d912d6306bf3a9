"""The embedded catalog by hashes, on both engines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.store.catalog.catalog_states import CatalogStates
from lumos.core.store.database import StateDatabase
from lumos.testing.platform_samples import dataset
from state_databases import ENGINES, url_for


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest) -> Iterator[StateDatabase]:
    with StateDatabase.open(url_for(request.param, request)) as database:
        yield database


def test_a_catalog_is_read_by_hashes_and_in_parts(database: StateDatabase) -> None:
    catalog = EmbeddedHandler(database)
    for name in ("c", "a", "e", "b", "d"):
        catalog.emit_dataset(dataset(name))
    a, c = dataset("a").urn, dataset("c").urn
    catalog.emit_lineage(a, c)
    held = {each.urn: each for each in catalog.list()}

    states = CatalogStates(database)
    pages = [*states.pages(2)]

    assert states.count() == 5
    assert [len(page) for page in pages] == [2, 2, 1]
    assert [urn for page in pages for urn in page] == [*held]
    hashes = {urn: digest for page in pages for urn, digest in page.items()}
    assert hashes == {urn: each.contract_hash for urn, each in held.items()}
    assert states.load([c, a]) == {a: held[a], c: held[c]}
    assert states.load([]) == {}


def test_an_empty_catalog_has_no_pages(database: StateDatabase) -> None:
    states = CatalogStates(database)

    assert ([*states.pages(10)], states.count()) == ([], 0)
