"""The contract on catalogs that whoever runs the tests has; without any, there is nothing to do.

Amundsen and Atlas have tests of their own, which take a server that is named as well.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from typing_extensions import override

from lumos.core.platform.factory import PlatformFactory
from lumos.core.platform.interface import MetadataPlatformInterface
from lumos.testing.platform_contract import PlatformContract
from lumos.testing.platform_samples import dataset
from named_catalogs import VARIABLES, named
from named_datahub import prefixed_datahub
from named_openmetadata import NamedServer
from ports import closed_port

pytestmark = pytest.mark.service


class NamedContract(PlatformContract):
    """The contract on a server that is named; subclasses say which, and give the adapter."""

    catalog: str

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
        """On a server that others may use: each test makes and removes what has its own prefix."""

        catalog = "datahub"

        @pytest.fixture
        @override
        def platform(self) -> Iterator[MetadataPlatformInterface]:
            with prefixed_datahub(named(self.catalog) or {}) as platform:
                yield platform


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
