"""The contract on catalogs that whoever runs the tests has; without any, there is nothing to do.

Amundsen and Atlas have tests of their own, which take a server that is named as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest
from typing_extensions import override

from lumos.core.platform.factory import PlatformFactory
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.datahub.writer.foreign import KINDS
from lumos.core.platform.interface import MetadataPlatformInterface
from lumos.testing.platform_contract import PlatformContract
from lumos.testing.platform_samples import dataset
from named_catalogs import VARIABLES, named
from named_openmetadata import NamedServer
from ports import closed_port

pytestmark = pytest.mark.service


def empty_datahub(config: Mapping[str, str]) -> None:
    """Remove every entity of the kinds that the adapter writes, those that are hidden too."""
    with DataHubHandler.from_config(config) as platform:
        client = platform._client
        for kind in ("dataset", *KINDS):
            for held in [*client.scroll(kind, include_removed=True)]:
                client.delete(kind, held.urn)


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
        """On a server that others may use: each test makes and removes what has its own prefix."""

        catalog = "openmetadata"

        @pytest.fixture
        @override
        def platform(self) -> Iterator[MetadataPlatformInterface]:
            server = NamedServer(named(self.catalog) or {})
            try:
                with server.adapter() as platform:
                    yield platform
            finally:
                server.remove_made()
                server.close()
