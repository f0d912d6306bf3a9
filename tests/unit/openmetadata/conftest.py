"""A double of OpenMetadata for each test, and an adapter for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from doubles.openmetadata_server import openmetadata_at, openmetadata_server
from doubles.openmetadata_store import OpenMetadataStore
from lumos.core.platform.impl.openmetadata.handler import OpenMetadataHandler


@pytest.fixture
def store() -> Iterator[OpenMetadataStore]:
    """What a running double holds; `url` is where it listens."""
    with openmetadata_server() as (url, store):
        store.url = url
        yield store


@pytest.fixture
def platform(store: OpenMetadataStore) -> Iterator[OpenMetadataHandler]:
    """An adapter for the double of this test."""
    with openmetadata_at(store.url) as platform:
        yield platform
