"""What a catalog has no place for is kept in the same way in each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from catalog_stations import STATIONS
from lumos.core.json_reading import Json
from lumos.core.platform.impl.amundsen.handler import AmundsenHandler
from lumos.core.platform.impl.amundsen.side_store import side_store
from lumos.core.platform.impl.atlas.handler import AtlasHandler
from lumos.core.platform.impl.atlas.side_store import under_name
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.openmetadata.handler import OpenMetadataHandler
from lumos.core.platform.impl.snowflake.handler import SnowflakeHandler
from lumos.core.platform.interface import MetadataPlatformInterface
from lumos.core.platform.side_store import SideStore
from lumos.core.platform.unreadable import UnreadableItems

SECTION = "extension"
OTHERS = [name for name in STATIONS if name != "embedded"]


@contextmanager
def store_of(platform: MetadataPlatformInterface) -> Iterator[SideStore]:
    if isinstance(platform, AmundsenHandler):
        with platform._database.transaction() as connection:
            yield side_store(platform._database, connection)
    elif isinstance(platform, SnowflakeHandler):
        yield SideStore(platform._table)
    else:
        assert isinstance(platform, DataHubHandler | OpenMetadataHandler | AtlasHandler)
        yield platform._store


@pytest.fixture(params=OTHERS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SideStore]:
    with (
        STATIONS[request.param](tmp_path) as station,
        station.connect() as platform,
        store_of(platform) as opened,
    ):
        yield opened


def document(name: str, value: str) -> tuple[str, Json]:
    given: Json = {"name": name, "value": value}
    ((key, _),) = under_name(SECTION, given).items()
    return key.replace(":", "-").replace("/", "-").replace("@", "-"), given


def read(
    store: SideStore, unread: UnreadableItems, act: Callable[[Json], object] = dict
) -> dict[str, object]:
    return store.read(
        SECTION, lambda found: act(cast("Json", found)), unread=unread, kind="extension"
    )


def test_documents_are_kept_replaced_and_removed(store: SideStore) -> None:
    (one, first), (two, second) = document("one", "x"), document("two", "y")
    assert store.names(SECTION) == set()
    store.put(SECTION, {one: first, two: second})
    changed: Json = {**first, "value": "z"}
    store.put(SECTION, {one: changed})

    assert store.names(SECTION) == {one, two}
    assert (store.find(SECTION, one), store.find(SECTION, "none")) == (changed, None)
    assert read(store, UnreadableItems()) == {one: changed, two: second}

    store.remove(SECTION, one)
    store.remove(SECTION, one, "none")
    assert store.names(SECTION) == {two}


def test_a_document_that_does_not_fit_is_noted_and_the_others_are_read(store: SideStore) -> None:
    (one, first), (two, second) = document("one", "x"), document("two", "y")
    store.put(SECTION, {one: first, two: second})

    def fits(found: Json) -> object:
        if found == first:
            raise KeyError("value")
        return found

    unread = UnreadableItems()
    assert read(store, unread, fits) == {two: second}
    assert [(each.kind, each.name) for each in unread] == [("extension", f"{SECTION}/{one}")]
