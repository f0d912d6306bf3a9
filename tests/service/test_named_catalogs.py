"""The contract on catalogs that whoever runs the tests has; without any, there is nothing to do.

Amundsen and Atlas have tests of their own, which take a server that is named as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import httpx2
import pytest
from typing_extensions import override

from lumos.core.platform.factory import PlatformFactory
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.datahub.writer.foreign import KINDS
from lumos.core.platform.interface import MetadataPlatformInterface
from lumos.testing.platform_contract import PlatformContract
from lumos.testing.platform_samples import dataset
from named_catalogs import VARIABLES, named
from ports import closed_port

pytestmark = pytest.mark.service
_COLLECTIONS: Final = (
    "services/databaseServices", "services/storageServices", "services/pipelineServices",
    "glossaries", "classifications", "domains", "teams", "users",
)  # fmt: skip


def empty_datahub(config: Mapping[str, str]) -> None:
    """Remove every entity of the kinds that the adapter writes, those that are hidden too."""
    with DataHubHandler.from_config(config) as platform:
        client = platform._client
        for kind in ("dataset", *KINDS):
            for held in [*client.scroll(kind, include_removed=True)]:
                client.delete(kind, held.urn)


def empty_openmetadata(config: Mapping[str, str]) -> None:
    """Remove everything that is not the system's own, with all that is in it."""
    headers = {"Authorization": f"Bearer {config['auth_token']}"}
    gone = {"hardDelete": "true", "recursive": "true"}
    address = f"{config['server']}/api/v1/"
    with httpx2.Client(base_url=address, headers=headers, timeout=120) as client:
        for collection in _COLLECTIONS:
            page = client.get(f"{collection}?limit=1000&include=all").raise_for_status().json()
            for each in page["data"]:
                if each.get("provider") != "system" and not each.get("isAdmin"):
                    client.delete(f"{collection}/{each['id']}", params=gone)


class NamedContract(PlatformContract):
    """The contract on a server that is named; subclasses say which and how it is emptied."""

    catalog: str
    empty: Callable[[Mapping[str, str]], None]

    @pytest.fixture
    @override
    def platform(self) -> Iterator[MetadataPlatformInterface]:
        config = named(self.catalog) or {}
        type(self).empty(config)
        with PlatformFactory.handler(self.catalog).from_config(config) as platform:
            yield platform

    @pytest.fixture
    @override
    def broken_platform(self, platform: MetadataPlatformInterface) -> MetadataPlatformInterface:
        platform.emit_dataset(dataset())
        address = next(iter(VARIABLES[self.catalog]))
        elsewhere = {address: f"http://127.0.0.1:{closed_port()}"}
        config = {**(named(self.catalog) or {}), **elsewhere}
        return PlatformFactory.handler(self.catalog).from_config(config)


if named("datahub"):

    class TestNamedDataHub(NamedContract):
        catalog = "datahub"
        empty = staticmethod(empty_datahub)


if named("openmetadata"):

    class TestNamedOpenMetadata(NamedContract):
        catalog = "openmetadata"
        empty = staticmethod(empty_openmetadata)
