from __future__ import annotations

from pathlib import Path

import pytest

from command_line import Lumos, capturing
from lumos.core.settings import ENVIRONMENT_KEYS


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the current one, with no setting in the environment."""
    for name in ENVIRONMENT_KEYS:
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def lumos(project: Path, capfd: pytest.CaptureFixture[str]) -> Lumos:
    return capturing(capfd)
