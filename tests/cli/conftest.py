from __future__ import annotations

from pathlib import Path

import pytest

from command_line import Lumos, capturing


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the current one, with no setting in the environment."""
    for name in ("LUMOS_PLATFORM", "LUMOS_DATABASE_URL", "LUMOS_STATE_DIR", "DATAHUB_GMS_URL"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def lumos(project: Path, capfd: pytest.CaptureFixture[str]) -> Lumos:
    return capturing(capfd)
