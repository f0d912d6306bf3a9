"""Two addresses of one state database are known to be that."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from lumos.core.store.database import StateDatabase
from lumos.core.store.same_database import same_database


@pytest.mark.parametrize("other", ["sqlite:///a.db", "./a.db", "soft.db", "hard.db", "x/../a.db"])
def test_a_file_is_the_same_by_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    monkeypatch.chdir(tmp_path)
    StateDatabase.open(Path("a.db")).close()
    Path("x").mkdir()
    Path("soft.db").symlink_to("a.db")
    Path("hard.db").hardlink_to("a.db")

    assert same_database(str(tmp_path / "a.db"), other)
    assert not same_database("b.db", other)


def test_a_file_that_is_not_there_yet_is_the_same_by_its_path(tmp_path: Path) -> None:
    assert same_database(tmp_path / "a.db", f"sqlite:///{tmp_path}/./a.db")
    assert not same_database(tmp_path / "a.db", tmp_path / "b.db")


def test_a_database_of_a_server_is_the_same_by_any_address(
    postgres_database_url: str, tmp_path: Path
) -> None:
    parts = urlsplit(postgres_database_url)
    again = urlunsplit(parts._replace(query="application_name=another"))
    inside = urlunsplit(parts._replace(query="options=-csearch_path%3Dpg_temp"))

    assert not same_database(postgres_database_url, again)  # there is no catalog yet
    StateDatabase.open(postgres_database_url).close()

    assert same_database(postgres_database_url, again)
    assert not same_database(postgres_database_url, inside)
    assert not same_database(postgres_database_url, tmp_path / "a.db")
