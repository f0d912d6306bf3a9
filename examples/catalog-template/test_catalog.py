"""The catalog keeps the contract of Lumos."""
# ruff: noqa: INP001, TC001 - a test beside the package

from __future__ import annotations

from pathlib import Path

import pytest
from typing_extensions import override

from lumos.core.platform.factory import PlatformFactory
from lumos.core.platform.interface import MetadataPlatformInterface
from lumos.testing.platform_contract import PlatformContract
from lumos.testing.platform_samples import dataset


class TestFolderCatalog(PlatformContract):
    @pytest.fixture
    @override
    def platform(self, tmp_path: Path) -> MetadataPlatformInterface:
        return PlatformFactory.get_instance("folder", {"path": str(tmp_path / "catalog")})

    @pytest.fixture
    @override
    def broken_platform(
        self, platform: MetadataPlatformInterface, tmp_path: Path
    ) -> MetadataPlatformInterface:
        platform.emit_dataset(dataset())
        (tmp_path / "catalog").rename(tmp_path / "elsewhere")
        (tmp_path / "catalog").write_text("a file in the place of the folder")
        return platform
