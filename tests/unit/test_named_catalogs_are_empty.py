"""Tests that empty a catalog take none, of those that people name, in which there is something."""

from __future__ import annotations

from pathlib import Path

import pytest

import amundsen_server
import atlas_server
from doubles.amundsen_database import amundsen_over, sqlite_engine
from doubles.atlas_server import AtlasServer, atlas_at
from lumos.testing.platform_samples import dataset

REFUSED = pytest.fail.Exception


def test_an_atlas_that_holds_something_is_refused() -> None:
    with AtlasServer() as double, atlas_at(double) as platform:
        server = atlas_server.RealAtlas(double.url, "admin", "admin", is_named=True)
        atlas_server.require_empty(server)
        platform.emit_dataset(dataset())

        with pytest.raises(REFUSED, match="not empty: lumos_dataset"):
            atlas_server.require_empty(server)


def test_an_amundsen_that_holds_something_is_refused(tmp_path: Path) -> None:
    engine = sqlite_engine(tmp_path / "amundsen.db")
    server = amundsen_server.AmundsenServer("", str(engine.url), is_named=True)
    amundsen_server.require_empty(server)
    with amundsen_over(engine) as platform:
        platform.emit_dataset(dataset())

    with pytest.raises(REFUSED, match="not empty: rows 1 in database_metadata"):
        amundsen_server.require_empty(server)
