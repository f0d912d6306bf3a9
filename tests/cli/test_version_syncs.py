"""`version apply` writes to the state, and a sync tells the catalog of the settings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import JANUARY, Lumos
from doubles.datahub_server import DataHubDouble, datahub_double
from lumos.core.errors import PlatformError
from lumos.core.platform.impl.datahub.handler import DataHubHandler


@pytest.fixture
def server(project: Path) -> Iterator[DataHubDouble]:
    """A catalog with datasets that have no version yet."""
    with datahub_double() as (url, double):
        settings = {
            "platform": "datahub",
            "platform_config": {"datahub": {"gms_server": url}},
            "features": {"schema_tracking": False},
        }
        (project / "lumos.yaml").write_text(json.dumps(settings), "utf-8")
        yield double


def versions(lumos: Lumos, platform: str) -> set[str | None]:
    assert lumos("export", "--platform", platform, "--output", "out.json").exit_code == 0
    document = json.loads(Path("out.json").read_text("utf-8"))
    return {each.get("version") for each in document["datasets"]}


def test_new_versions_reach_the_catalog_by_a_sync(lumos: Lumos, server: DataHubDouble) -> None:
    assert lumos("import", JANUARY).exit_code == 0
    applied = lumos("version", "apply")
    assert applied.exit_code == 0, applied.stderr
    assert "5 first" in applied.stdout
    assert versions(lumos, "embedded") == {"1.0.0"}
    assert versions(lumos, "datahub") == {"1.0.0"}
    again = lumos("version", "apply")
    assert "0 datasets got a version" in again.stdout


def test_versions_are_kept_where_the_catalog_does_not_answer(
    lumos: Lumos, server: DataHubDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: DataHubHandler) -> str:
        raise PlatformError("nobody answers")

    assert lumos("import", JANUARY).exit_code == 0
    with monkeypatch.context() as patch:
        patch.setattr(DataHubHandler, "reached", refuse)
        behind = lumos("version", "apply")
    assert behind.exit_code == 3
    assert "the catalog is not up to date: nobody answers" in behind.stderr
    assert versions(lumos, "embedded") == {"1.0.0"}
    assert lumos("sync", "--all", "--output", "datahub").exit_code == 0
    assert versions(lumos, "datahub") == {"1.0.0"}
