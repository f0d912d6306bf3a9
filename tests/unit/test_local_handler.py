"""Local files: what is found, what is left out, and what is reported."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lumos.core.errors import NotTabularError, SourceError, UnknownNameError, UnreadableItemError
from lumos.core.formats.facts import FileFacts
from lumos.core.settings import InvalidSettingsError, SourceEntry
from lumos.core.settings.raw import RawSettings
from lumos.core.storage.port import ListedObject, SkippedLink, UnlistedPrefix, printable
from lumos.core.storage.reading import ReadItem, read_items
from lumos.feature.ingestion.handlers.factory import HandlerFactory

TABLE = pa.table({"id": [1, 2, 3]})


def write(path: Path, table: pa.Table = TABLE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:  # a stream, because Arrow takes no undecodable names
        pq.write_table(table, stream)
    return path


@dataclass
class Seen:
    """What a source lists and reads, by paths relative to its root."""

    read: dict[str, FileFacts] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    unlisted: dict[str, str] = field(default_factory=dict)
    links: list[str] = field(default_factory=list)
    listed: dict[str, ListedObject] = field(default_factory=dict)

    @property
    def paths(self) -> list[str]:
        return list(self.read)

    @property
    def is_empty(self) -> bool:
        return not (self.read or self.skipped or self.failed or self.unlisted)


def seen(path: Path, **settings: Any) -> Seen:
    """List and read a source as the pipeline does."""
    config = {"type": "local", "name": "lake", "path": str(path), **settings}
    (source,) = HandlerFactory.get_handler(config).storages()
    storage = source.open()
    found = Seen()
    for each in (each for unit in storage.units(1) for each in storage.list(unit)):
        match each:
            case ListedObject(path=relative):
                found.listed[printable(os.fsdecode(relative))] = each
            case UnlistedPrefix(shown=shown, error=error):
                found.unlisted[shown] = error.message
            case SkippedLink(path=relative):
                found.links.append(os.fsdecode(relative))
    items = (ReadItem(each.path, each.size) for each in found.listed.values())
    for name, answer in zip(found.listed, read_items(items, storage), strict=True):
        match answer:
            case NotTabularError(message=message):
                found.skipped[name] = message
            case UnreadableItemError(message=message):
                found.failed[name] = message
            case bytes():
                found.read[name] = FileFacts.from_json(orjson.loads(answer))
    return found


def test_a_file_is_listed_with_size_and_time_and_read_by_its_footer(tmp_path: Path) -> None:
    path = write(tmp_path / "shop" / "orders.parquet")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    found = seen(tmp_path)
    facts = found.read["shop/orders.parquet"]
    assert (facts.format, facts.rows) == ("parquet", 3)
    assert [field.signature() for field in facts.schema.fields] == ["INT64"]
    listed = found.listed["shop/orders.parquet"]
    assert (listed.size, listed.mtime_us) == (path.stat().st_size, 1_700_000_000_000_000)


def test_the_path_may_be_one_file_of_any_name(tmp_path: Path) -> None:
    assert seen(write(tmp_path / "_export.snappy.parquet")).paths == ["_export.snappy.parquet"]


def test_an_empty_folder_is_fine(tmp_path: Path) -> None:
    assert seen(tmp_path).is_empty


def test_files_are_listed_in_a_stable_order(tmp_path: Path) -> None:
    for name in ("b.parquet", "a.parquet", "z/part-1.parquet", "m/part-0.parquet", "m/a/x.parquet"):
        write(tmp_path / name)
    assert seen(tmp_path).paths == [
        "a.parquet",
        "b.parquet",
        "m/part-0.parquet",
        "m/a/x.parquet",
        "z/part-1.parquet",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "_SUCCESS",
        "._orders.parquet",
        ".orders.parquet.crc",
        "orders.parquet.crc",
        "_temporary/0/orders.parquet",
        ".hidden/orders.parquet",
        "orders.parquet._COPYING_",
        "orders.parquet.tmp",
    ],
)
def test_what_writers_hide_is_passed_over_in_silence(tmp_path: Path, name: str) -> None:
    write(tmp_path / name)
    assert seen(tmp_path, file_patterns=["*"]).is_empty


def test_a_partition_whose_name_begins_with_an_underscore_is_data(tmp_path: Path) -> None:
    write(tmp_path / "_day=1" / "a.parquet")
    assert seen(tmp_path).paths == ["_day=1/a.parquet"]


def test_patterns_choose_and_exclude_leaves_out(tmp_path: Path) -> None:
    for name in ("a.parquet", "B.PARQUET", "old/c.parquet", "raw/old/d.parquet", "raw/e.parquet"):
        write(tmp_path / name)
    top, old, raw = ["B.PARQUET", "a.parquet"], "old/c.parquet", "raw/old/d.parquet"
    assert seen(tmp_path).paths == [*top, old, "raw/e.parquet", raw]
    assert seen(tmp_path, exclude=["old"]).paths == [*top, "raw/e.parquet"]
    assert seen(tmp_path, exclude=["raw/old/"]).paths == [*top, old, "raw/e.parquet"]
    assert seen(tmp_path, file_patterns=["raw/*.parquet"]).paths == ["raw/e.parquet", raw]
    assert seen(tmp_path, file_patterns=["b.*"]).paths == ["B.PARQUET"]


def test_parquet_under_another_name_is_read_and_the_rest_is_named_as_skipped(
    tmp_path: Path,
) -> None:
    write(tmp_path / "export.bin")
    (tmp_path / "notes.txt").write_text("hello")
    found = seen(tmp_path, file_patterns=["*"])
    assert found.paths == ["export.bin"]
    ((item, reason),) = found.skipped.items()
    assert item == "notes.txt"
    assert reason.startswith("it holds no table")


def test_broken_files_are_named_with_reasons_and_the_others_are_read(tmp_path: Path) -> None:
    good = write(tmp_path / "good.parquet").read_bytes()
    (tmp_path / "empty.parquet").write_bytes(b"")
    (tmp_path / "cut.parquet").write_bytes(good[:-20])
    (tmp_path / "renamed.parquet").write_text("id,name\n1,secret-value\n")
    found = seen(tmp_path)
    assert {name: facts.format for name, facts in found.read.items()} == {
        "good.parquet": "parquet",
        "renamed.parquet": "csv",  # the bytes win
    }
    assert found.failed == {
        "cut.parquet": "the file is cut off: it has no Parquet footer at its end",
        "empty.parquet": "the file is empty",
    }
    assert "secret-value" not in str(found)


@pytest.mark.parametrize("seed", range(20))
def test_damaged_footers_never_stop_a_scan(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    content = write(tmp_path / "good.parquet").read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for number in range(50):
        damaged = bytearray(content)
        damaged[chance.randrange(footer, len(content) - 8)] = chance.randrange(256)
        (tmp_path / f"damaged{number}.parquet").write_bytes(damaged)
    found = seen(tmp_path)
    assert len(found.read) + len(found.failed) == 51
    assert found.unlisted == {}


def test_a_pipe_with_the_name_of_a_file_makes_nothing_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.parquet")
    assert seen(tmp_path).failed == {"pipe.parquet": "it is not a regular file: it is a named pipe"}


def test_a_device_behind_a_link_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "zero.csv").symlink_to("/dev/zero")

    found = seen(tmp_path)
    assert (found.read, found.failed, found.links) == ({}, {}, ["zero.csv"])

    followed = seen(tmp_path, follow_symlinks="all")
    assert followed.failed == {"zero.csv": "it is not a regular file: it is a device"}


def test_a_folder_with_the_name_of_a_file_is_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "orders.parquet" / "part-0.parquet")
    assert seen(tmp_path).paths == ["orders.parquet/part-0.parquet"]


def test_links_that_lead_nowhere_or_to_themselves_are_named(
    tmp_path: Path,
) -> None:
    (tmp_path / "gone.parquet").symlink_to(tmp_path / "nowhere")
    (tmp_path / "self.parquet").symlink_to(tmp_path / "self.parquet")
    found = seen(tmp_path)
    assert found.read == {}
    assert found.failed == {"gone.parquet": "it is gone since it was listed"}
    assert found.unlisted == {
        str(tmp_path / "self.parquet"): "it cannot be read: Too many levels of symbolic links"
    }


def test_links_that_lead_back_end_the_walk_and_add_nothing(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for number in range(9):
        write(lake / f"d{number}" / "x.parquet")
        for other in range(9):
            (lake / f"d{number}" / f"to{other}").symlink_to(lake / f"d{other}")
    (lake / "up").symlink_to(tmp_path)
    found = seen(lake)
    assert len(found.read) == 9
    assert all("/to" not in path for path in found.read)
    assert found.unlisted == {}


def test_a_link_to_a_folder_elsewhere_is_followed_under_its_own_name_where_settings_allow_it(
    tmp_path: Path,
) -> None:
    write(tmp_path / "elsewhere" / "x.parquet")
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "linked").symlink_to(tmp_path / "elsewhere")
    assert seen(tmp_path / "lake", follow_symlinks="all").paths == ["linked/x.parquet"]


def test_a_name_that_is_not_utf_8_is_kept_exactly(tmp_path: Path) -> None:
    write(tmp_path / os.fsdecode(b"caf\xe9.parquet"))
    (tmp_path / os.fsdecode(b"br\xf6ken.parquet")).write_bytes(b"")
    found = seen(tmp_path)
    assert found.listed["caf\\xe9.parquet"].path == b"caf\xe9.parquet"
    assert found.paths == ["caf\\xe9.parquet"]
    assert list(found.failed) == ["br\\xf6ken.parquet"]


def test_a_folder_that_cannot_be_listed_is_named_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a" / "x.parquet")
    write(tmp_path / "locked" / "y.parquet")
    write(tmp_path / "z" / "z.parquet")
    # The tests may run as root, whom no permission stops.
    monkeypatch.setattr(os, "scandir", refusing(os.scandir, "locked"))
    found = seen(tmp_path)
    assert found.paths == ["a/x.parquet", "z/z.parquet"]
    assert found.unlisted == {str(tmp_path / "locked"): "it cannot be listed: Permission denied"}


def refusing(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def refuse_or_call(path: Any, *rest: Any, **options: Any) -> Any:
        if str(path).endswith(name):
            raise PermissionError(13, "Permission denied")
        return function(path, *rest, **options)

    return refuse_or_call


@pytest.mark.parametrize("path", ["nowhere", "file.txt/below", "nul\0byte"])
def test_a_path_that_is_not_there_is_a_source_error_that_names_it(
    tmp_path: Path, path: str
) -> None:
    (tmp_path / "file.txt").touch()
    with pytest.raises(SourceError) as raised:
        seen(tmp_path / path)
    assert str(tmp_path / path) in raised.value.message
    assert "source 'lake'" in raised.value.message
    assert raised.value.hint


def test_a_folder_that_goes_away_after_it_was_checked_is_not_an_empty_one(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    config = {"type": "local", "name": "lake", "path": str(lake)}
    (source,) = HandlerFactory.get_handler(config).storages()
    storage = source.open()
    (unit,) = storage.units(1)
    lake.rmdir()
    with pytest.raises(SourceError, match="cannot scan"):
        list(storage.list(unit))


def test_repeated_columns_are_a_warning(tmp_path: Path) -> None:
    doubled = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    write(tmp_path / "x.parquet", doubled)
    facts = seen(tmp_path).read["x.parquet"]
    assert [field.name for field in facts.schema.fields] == ["id", "id_2"]
    assert facts.warnings == ("column name 'id' occurs again; it is called 'id_2' here",)


def test_a_relative_path_and_a_home_path_lead_to_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "x.parquet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert seen(Path()) == seen(Path("~")) == seen(tmp_path)


@pytest.mark.parametrize(
    "config",
    [
        {"type": "parquet", "path": "{path}"},
        {"source": {"type": "parquet", "path": "{path}"}},
        {"type": "parquet", "config": {"path": "{path}"}},
        {"source_type": "parquet", "source_path": "{path}"},
    ],
)
def test_every_spelling_of_a_source_gives_the_same_handler(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    handler = HandlerFactory.get_handler(filled(config, str(tmp_path)))
    assert handler.source_type == "parquet"
    assert [storage.path for storage in handler.event_folders()] == [str(tmp_path)]


def filled(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return {key: filled(item, path) for key, item in value.items()}
    return value.format(path=path)


def test_an_entry_of_the_settings_gives_its_handler(tmp_path: Path) -> None:
    raw = RawSettings({"path": str(tmp_path)})
    entry = SourceEntry(type="local", name="the lake", settings=raw)
    assert HandlerFactory.get_handler(entry).name == "the lake"


def test_an_unknown_source_type_says_what_was_probably_meant() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'parquet'"):
        HandlerFactory.get_handler({"type": "parquett", "path": "x"})


def test_a_mistyped_setting_says_what_was_probably_meant(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingsError, match="'file_pattern'; did you mean 'file_patterns'"):
        seen(tmp_path, file_pattern=["*"])


@pytest.mark.parametrize(
    ("path", "given", "root"),
    [
        ("lake", {}, "lake"),
        ("lake/", {}, "lake"),
        ("x/../lake/.", {}, "lake"),
        ("lake", {"name": "shop"}, "shop"),
        ("lake", {"name": "shop", "root": "company"}, "company"),
        ("ünï köd", {}, "ünï köd"),
        ("lake", {"name": "team/lake"}, "team/lake"),
        ("C:\\data\\lake", {}, "C:\\data\\lake"),
        ("lake/orders.parquet", {}, "lake"),
    ],
)
@pytest.mark.parametrize("kind", ["local", "parquet"])
def test_a_root_is_given_or_the_name_or_the_last_folder(
    kind: str, path: str, given: dict[str, str], *, root: str, tmp_path: Path
) -> None:
    if path.endswith(".parquet"):
        write(tmp_path / path)
    else:
        Path(os.path.abspath(tmp_path / path)).mkdir()
    config = {"type": kind, "path": f"{tmp_path}/{path}", **given}
    (storage,) = HandlerFactory.get_handler(config).storages()
    assert storage.open().urn_parts() == (root,)


def test_a_folder_without_a_name_needs_a_root() -> None:
    (named,) = HandlerFactory.get_handler(
        {"type": "local", "path": "/", "root": "machine"}
    ).storages()
    assert named.open().urn_parts() == ("machine",)
    (storage,) = HandlerFactory.get_handler({"type": "local", "path": "/"}).storages()
    with pytest.raises(SourceError, match="the folder / has no name for URNs") as error:
        storage.open().urn_parts()
    assert error.value.hint is not None
    assert "root: NAME" in error.value.hint
