"""A double of DataHub's server, empty for each test, and the adapter that speaks to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from doubles.datahub_server import DataHubDouble, datahub_double
from lumos.core.platform.http import RetryPolicy
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.datahub.settings import DataHubSettings

QUICK = RetryPolicy(attempts=3, first_wait=0.001, longest_wait=0.002)


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[str, DataHubDouble]]:
    with datahub_double() as running:
        yield running


@pytest.fixture
def server(running: tuple[str, DataHubDouble]) -> DataHubDouble:
    running[1].clear()
    return running[1]


@pytest.fixture
def platform(running: tuple[str, DataHubDouble], server: DataHubDouble) -> Iterator[DataHubHandler]:
    with DataHubHandler(DataHubSettings(gms_server=running[0]), retries=QUICK) as platform:
        yield platform
