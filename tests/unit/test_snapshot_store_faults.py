"""Every call of the commit protocol may fail: a clean error, and nothing old is lost."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar

import pytest
from typing_extensions import override

from lumos.core.errors import StateError, StateReadOnlyError, StorageFullError
from lumos.core.store.snapshots.snapshot_files import DurableFiles
from lumos.core.store.snapshots.snapshot_order import STORE_FILES
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from lumos.feature.snapshot.export import export_document
from lumos.feature.snapshot.source import LoadedSource
from snapshot_samples import AT, sample_snapshot
from state_databases import folder_for_everyone, without_permission_to_write

Result = TypeVar("Result")
SHORT = 400
LATER = AT + timedelta(hours=1)
ERRORS = {
    errno.ENOSPC: StorageFullError,
    errno.EDQUOT: StorageFullError,
    errno.EROFS: StateReadOnlyError,
    errno.EACCES: StateReadOnlyError,
    errno.EIO: StateError,
}


class FailingFiles(DurableFiles):
    """Files of which the n-th call fails, once or from then on."""

    def __init__(self, fail_at: int = 0, *, code: int = errno.EIO, for_good: bool = False) -> None:
        self.calls: list[str] = []
        self._fail_at = fail_at
        self._code = code
        self._for_good = for_good

    def _call(self, name: str, action: Callable[[], Result]) -> Result:
        self.calls.append(name)
        number = len(self.calls)
        if number == self._fail_at or (self._for_good and 0 < self._fail_at < number):
            if name == "close":
                action()
            raise OSError(self._code, os.strerror(self._code))
        return action()

    @override
    def make_folder(self, folder: Path) -> None:
        self._call("make_folder", partial(super().make_folder, folder))

    @override
    def open_new(self, path: Path) -> int:
        return self._call("open_new", partial(super().open_new, path))

    @override
    def open_lock(self, path: Path) -> int:
        return self._call("open_lock", partial(super().open_lock, path))

    @override
    def open_spill(self, folder: Path) -> BinaryIO:
        return self._call("open_spill", partial(super().open_spill, folder))

    @override
    def write(self, descriptor: int, content: memoryview) -> int:
        some = content[: max(1, len(content) * 2 // 3)] if len(content) > SHORT else content
        return self._call("write", partial(super().write, descriptor, some))

    @override
    def sync(self, descriptor: int) -> None:
        self._call("sync", partial(super().sync, descriptor))

    @override
    def close(self, descriptor: int) -> None:
        self._call("close", partial(super().close, descriptor))

    @override
    def replace(self, source: Path, target: Path) -> None:
        self._call("replace", partial(super().replace, source, target))

    @override
    def sync_folder(self, folder: Path) -> None:
        self._call("sync_folder", partial(super().sync_folder, folder))

    @override
    def remove(self, path: Path) -> None:
        self._call("remove", partial(super().remove, path))

    @override
    def remove_folder(self, folder: Path) -> None:
        self._call("remove_folder", partial(super().remove_folder, folder))


def failing_store(root: Path, files: DurableFiles) -> SnapshotStore:
    return SnapshotStore(root, files=files, part_bytes=3_000, memory_bytes=5_000)


def calls_of_a_commit(root: Path) -> list[str]:
    files = FailingFiles()
    failing_store(root, files).write(sample_snapshot(14), at=AT)
    return files.calls


def error_of_writing(store: SnapshotStore, at: datetime) -> StateError | None:
    try:
        store.write(sample_snapshot(14), at=at)
    except StateError as error:
        return error
    return None


FULL_SIZE = os.environ.get("LUMOS_TEST_FULL") == "1"


@pytest.mark.parametrize("code", ERRORS if FULL_SIZE else [errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("for_good", [False, True], ids=["once", "from then on"])
def test_whichever_call_fails_the_store_stays_whole(
    tmp_path: Path, code: int, for_good: bool
) -> None:
    calls = calls_of_a_commit(tmp_path / "dry")
    assert {"open_spill", "write", "sync", "replace", "sync_folder", "open_lock"} <= {*calls}
    store = SnapshotStore(tmp_path / "store")
    old = store.write(sample_snapshot(5), at=AT)
    failures = 0
    for number in range(1, len(calls) + 1):
        failing = failing_store(store.root, FailingFiles(number, code=code, for_good=for_good))
        error = error_of_writing(failing, LATER + timedelta(seconds=number))
        if error is None:
            assert len(store.list()) == 2
        else:
            failures += 1
            assert type(error) is ERRORS[code]
            assert str(store.root) in error.message
            assert error.hint
            if not for_good:  # a disk that still works lets the writer clean up
                assert [each.id for each in store.list()] == [old.id]
        assert all(store.verify(each.id).ok for each in store.list())
        assert store.read(old.id) == sample_snapshot(5)
        for each in store.list()[1:]:
            (store.root / each.id / "manifest.json").unlink()
        store.collect_orphans()
        assert {path.name for path in store.root.iterdir()} - STORE_FILES == {old.id}
    assert failures >= len(calls) - calls.count("remove") - calls.count("make_folder")


@pytest.mark.parametrize("code", ERRORS)
def test_an_error_of_the_system_becomes_the_lumos_error_for_it(tmp_path: Path, code: int) -> None:
    store = failing_store(tmp_path, FailingFiles(5, code=code))

    with pytest.raises(StateError) as caught:
        store.write(sample_snapshot(2), at=AT)

    assert type(caught.value) is ERRORS[code]


def test_short_writes_lose_nothing(tmp_path: Path) -> None:
    files = FailingFiles()
    store = failing_store(tmp_path, files)

    info = store.write(sample_snapshot(14), at=AT)

    assert files.calls.count("write") > files.calls.count("replace")
    assert SnapshotStore(tmp_path).read(info.id) == sample_snapshot(14)


def test_the_commit_protocol_keeps_its_order(tmp_path: Path) -> None:
    calls = calls_of_a_commit(tmp_path)

    last = ["sync", "close", "replace", "sync_folder", "sync_folder", "remove"]
    assert calls[-len(last) :] == last  # the manifest, its folder, the parent; then the claim
    for place, name in enumerate(calls):
        if name == "replace":
            assert calls[place - 2 : place] == ["sync", "close"]


def test_a_full_disk_during_an_export_leaves_the_earlier_file(tmp_path: Path) -> None:
    target = tmp_path / "backup.json"
    source = LoadedSource(sample_snapshot(5), "sample")
    dry = FailingFiles()
    export_document(source, tmp_path / "dry.json", files=dry)
    (tmp_path / "dry.json").unlink()
    target.write_text("earlier")
    for number, name in enumerate(dry.calls, start=1):
        files = FailingFiles(number, code=errno.ENOSPC)
        with pytest.raises(StorageFullError, match=r"backup\.json"):
            export_document(source, target, files=files)
        if name != "sync_folder":
            assert target.read_text() == "earlier"
        assert [path.name for path in tmp_path.iterdir()] == ["backup.json"]
        target.write_text("earlier")


def test_a_read_only_folder_is_named() -> None:
    with folder_for_everyone() as folder:
        root = folder / "snapshots"
        root.mkdir()
        with (
            without_permission_to_write(root),
            pytest.raises(StateReadOnlyError, match="snapshots"),
        ):
            SnapshotStore(root).write(sample_snapshot(2), at=AT)


def test_a_file_in_the_place_of_the_store_is_named(tmp_path: Path) -> None:
    root = tmp_path / "snapshots"
    root.write_text("not a folder")

    with pytest.raises(StateError, match="snapshots"):
        SnapshotStore(root).write(sample_snapshot(2), at=AT)
