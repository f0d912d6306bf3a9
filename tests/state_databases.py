"""What tests of the state database share: both engines, and an account that may not write."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ENGINES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
_NOBODY = 65534


def url_for(engine: str, request: pytest.FixtureRequest) -> str:
    """Return where a new, empty state database may be made."""
    if engine == "postgresql":
        return str(request.getfixturevalue("postgres_database_url"))
    return str(request.getfixturevalue("tmp_path") / "lumos.db")


@contextmanager
def unprivileged() -> Iterator[None]:
    """Run the block as an ordinary account; root may write everything."""
    account = os.geteuid()
    if account == 0:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(account)


@contextmanager
def without_permission_to_write(folder: Path) -> Iterator[None]:
    """Run the block as somebody who can read a folder and its files but not write them."""
    paths = [folder, *folder.iterdir()]
    before = {path: path.stat().st_mode for path in paths}
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        with unprivileged():
            yield
    finally:
        for path, mode in before.items():
            path.chmod(mode)


@contextmanager
def folder_for_everyone() -> Iterator[Path]:
    """Give a folder that other accounts can enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="lumos-state-") as name:
        Path(name).chmod(0o755)
        yield Path(name)
