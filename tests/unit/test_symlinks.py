"""Symlinks in a local source: those that lead outside of it are named and not followed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.confined import ALLOW, OUTSIDE
from lumos.core.formats.sandbox_io import FolderAccess
from lumos.core.settings import InvalidSettingsError
from lumos.core.storage.local import LocalSource
from lumos.core.storage.port import ListedObject, SkippedLink
from lumos.core.storage.reading import ReadItem, read_items
from lumos.feature.ingestion.handlers.factory import HandlerFactory
from lumos.feature.watching.inbox import Inbox
from lumos.feature.watching.local_events import LocalEvents

SECRET = "top,secret,columns\n1,2,3\n"
TABLES = Path(__file__).parents[1] / "golden" / "tables"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    (folder / "deep").mkdir(parents=True)
    (folder / "secret.csv").write_text(SECRET)
    (folder / "deep" / "secret.csv").write_text(SECRET)
    return folder


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    lake = tmp_path / "lake"
    (lake / "orders").mkdir(parents=True)
    (lake / "orders" / "a.csv").write_text("id,amount\n1,2\n")
    return lake


def source(lake: Path, **settings: Any) -> LocalSource:
    return LocalSource(name="lake", path=str(lake), **settings)


def listed(lake: Path, unit: str = "", **settings: Any) -> tuple[list[str], list[str]]:
    """Return the paths of files, and those of links that were not followed."""
    found = list(source(lake, **settings).open().list(unit))
    files = [os.fsdecode(each.path) for each in found if isinstance(each, ListedObject)]
    return files, [os.fsdecode(each.path) for each in found if isinstance(each, SkippedLink)]


def read(lake: Path, *paths: str, table: str | None = None, **settings: Any) -> Iterator[Any]:
    items = [ReadItem(os.fsencode(path), 100, table) for path in paths]
    for answer in read_items(items, source(lake, **settings).open()):
        yield orjson.loads(answer) if isinstance(answer, bytes) else answer.message


def columns(facts: Any) -> list[str]:
    return [field["name"] for field in facts["schema"]["fields"]]


def test_a_link_to_a_file_outside_is_named_and_not_listed(lake: Path, outside: Path) -> None:
    (lake / "orders" / "b.csv").symlink_to(outside / "secret.csv")
    (lake / "passwd.csv").symlink_to("/etc/passwd")

    assert listed(lake) == (["orders/a.csv"], ["passwd.csv", "orders/b.csv"])


def test_a_link_to_a_folder_outside_is_named_once_and_not_entered(
    lake: Path, outside: Path
) -> None:
    (lake / "orders" / "more").symlink_to(outside)
    (lake / "up").symlink_to("..")

    assert listed(lake) == (["orders/a.csv"], ["up", "orders/more"])


def test_a_chain_of_links_is_judged_by_where_it_ends(lake: Path, outside: Path) -> None:
    (lake / "first.csv").symlink_to("second.csv")
    (lake / "second.csv").symlink_to(outside / "secret.csv")
    (lake / "inner").symlink_to("orders")
    (outside / "back").symlink_to(lake / "orders")
    (lake / "round.csv").symlink_to(outside / "back" / "a.csv")

    files, skipped = listed(lake)

    assert skipped == ["first.csv", "second.csv"]
    assert files == ["round.csv", "orders/a.csv"]


def test_settings_allow_links_to_anywhere(lake: Path, outside: Path) -> None:
    (lake / "b.csv").symlink_to(outside / "secret.csv")
    (lake / "more").symlink_to(outside)

    files, skipped = listed(lake, follow_symlinks="all")

    assert files == ["b.csv", "orders/a.csv", "more/secret.csv", "more/deep/secret.csv"]
    assert skipped == []
    (facts,) = read(lake, "b.csv", follow_symlinks="all")
    assert columns(facts) == ["top", "secret", "columns"]


def test_links_inside_of_the_source_are_followed(lake: Path) -> None:
    (lake / "b.csv").symlink_to(lake / "orders" / "a.csv")
    (lake / ".store").mkdir()
    (lake / ".store" / "c.csv").write_text("x,y\n1,2\n")
    (lake / "linked").symlink_to(".store")

    assert listed(lake) == (["b.csv", "orders/a.csv", "linked/c.csv"], [])
    assert [columns(facts) for facts in read(lake, "b.csv", "linked/c.csv")] == [
        ["id", "amount"],
        ["x", "y"],
    ]


def test_the_path_of_the_source_may_be_a_link_itself(tmp_path: Path, lake: Path) -> None:
    (lake / "b.csv").symlink_to(lake / "orders" / "a.csv")
    (tmp_path / "current").symlink_to(lake)

    assert listed(tmp_path / "current") == (["b.csv", "orders/a.csv"], [])
    assert [columns(facts) for facts in read(tmp_path / "current", "b.csv")] == [["id", "amount"]]


def test_a_single_file_may_be_a_link_to_anywhere(tmp_path: Path, outside: Path) -> None:
    link = tmp_path / "one.csv"
    link.symlink_to(outside / "secret.csv")

    assert listed(link) == (["one.csv"], [])
    assert [columns(facts) for facts in read(link, "one.csv")] == [["top", "secret", "columns"]]


def test_a_folder_named_for_a_look_is_not_entered_through_a_link(lake: Path, outside: Path) -> None:
    (lake / "more").symlink_to(outside)

    assert listed(lake, "more") == ([], ["more"])
    assert listed(lake, "more/deep") == ([], ["more/deep"])
    assert listed(lake, "more/deep", follow_symlinks="all") == (["more/deep/secret.csv"], [])


def test_a_link_whose_content_nobody_wants_is_passed_over(lake: Path, outside: Path) -> None:
    (outside / "program.exe").write_text("MZ")
    (lake / "run.exe").symlink_to(outside / "program.exe")
    (lake / ".hidden").symlink_to(outside)
    (lake / "scratch").symlink_to(outside)

    assert listed(lake, patterns=("*.csv",), exclude=("scratch",)) == (["orders/a.csv"], [])


def test_a_link_to_the_state_folder_is_no_way_in(lake: Path) -> None:
    state = lake / ".lumos"
    state.mkdir()
    (state / "x.csv").write_text("a,b\n1,2\n")
    (lake / "state").symlink_to(state)

    assert listed(lake, skip=(str(state),)) == (["orders/a.csv"], [])


def test_a_file_replaced_by_a_link_after_the_listing_is_refused(lake: Path, outside: Path) -> None:
    assert listed(lake) == (["orders/a.csv"], [])
    (lake / "orders" / "a.csv").unlink()
    (lake / "orders" / "a.csv").symlink_to(outside / "secret.csv")

    assert list(read(lake, "orders/a.csv")) == [OUTSIDE]


def test_a_folder_replaced_by_a_link_after_the_listing_is_refused(
    lake: Path, outside: Path
) -> None:
    shutil.rmtree(lake / "orders")
    (lake / "orders").symlink_to(outside)

    assert list(read(lake, "orders/secret.csv")) == [OUTSIDE]


def test_bytes_and_children_of_a_storage_stay_inside(lake: Path, outside: Path) -> None:
    (lake / "orders" / "b.csv").symlink_to(outside / "secret.csv")
    storage = source(lake).open()

    with pytest.raises(UnreadableItemError, match="outside") as refused:
        storage.read(b"orders/b.csv", start=0, length=100)
    assert refused.value.hint == ALLOW
    assert [each.path for each in storage.children(b"orders")] == [b"orders/a.csv"]
    assert storage.read(b"orders/a.csv", start=0, length=2) == b"id"


def test_the_log_of_a_table_is_not_read_through_a_link(lake: Path, outside: Path) -> None:
    shutil.copytree(TABLES / "delta-evolved", outside / "table")
    (lake / "delta").mkdir()
    (lake / "delta" / "_delta_log").symlink_to(outside / "table" / "_delta_log")

    assert listed(lake) == (["orders/a.csv"], ["delta/_delta_log"])
    assert list(read(lake, "delta", table="delta")) == [OUTSIDE]
    (facts,) = read(lake, "delta", table="delta", follow_symlinks="all")
    assert columns(facts)


def test_a_file_of_a_log_is_not_read_through_a_link(lake: Path, outside: Path) -> None:
    table = lake / "delta"
    shutil.copytree(TABLES / "delta-evolved", table)
    (whole,) = read(lake, "delta", table="delta")
    commit = max((table / "_delta_log").glob("*.json"))
    commit.rename(outside / commit.name)
    commit.symlink_to(outside / commit.name)

    assert listed(lake)[1] == [f"delta/_delta_log/{commit.name}"]
    (older,) = read(lake, "delta", table="delta")
    assert int(older["version"]) == int(whole["version"]) - 1
    assert list(read(lake, "delta", table="delta", follow_symlinks="all")) == [whole]


@pytest.mark.parametrize("path", ["../outside/secret.csv", "/etc/passwd", "orders/../../x"])
@pytest.mark.parametrize("is_confined", [True, False])
def test_no_log_can_name_a_file_outside_of_its_source(
    lake: Path, path: str, is_confined: bool
) -> None:
    access = FolderAccess(str(lake), is_confined=is_confined)

    with pytest.raises(UnreadableItemError, match="outside of the source"):
        access.read(path)
    with pytest.raises(UnreadableItemError, match="outside of the source"):
        access.list(path)


def test_changes_behind_a_link_that_is_not_followed_wake_nobody(lake: Path, outside: Path) -> None:
    (lake / "more").symlink_to(outside)
    paths = [str(lake / "more" / "secret.csv"), str(lake / "more" / "deep")]

    inbox = Inbox(quiet=1, longest=1)

    confined = LocalEvents(source(lake), inbox)
    assert confined.folders_of(paths) == set()
    assert confined.folders_of([str(lake / "more")]) == {b"more"}
    everywhere = LocalEvents(source(lake, follow_symlinks="all"), inbox)
    assert everywhere.folders_of(paths) == {b"more", b"more/deep"}


@pytest.mark.parametrize("kind", ["local", "parquet"])
def test_both_sources_of_local_files_take_the_setting(kind: str, tmp_path: Path) -> None:
    config = {"type": kind, "name": "lake", "path": str(tmp_path)}
    (default,) = HandlerFactory.get_handler(config).event_folders()
    assert default.follow_symlinks == "inside"
    (chosen,) = HandlerFactory.get_handler({**config, "follow_symlinks": "all"}).event_folders()
    assert chosen.follow_symlinks == "all"
    with pytest.raises(InvalidSettingsError, match="follow_symlinks"):
        HandlerFactory.get_handler({**config, "follow_symlinks": "sometimes"})
