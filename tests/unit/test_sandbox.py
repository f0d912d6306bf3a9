"""The sandbox: whatever a file does to its reader, only that file is lost."""

from __future__ import annotations

import io
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lumos.core.errors import LumosError, SourceError, UnreadableItemError
from lumos.core.formats.facts import FileFacts
from lumos.core.formats.reader import read_file
from lumos.core.formats.sandbox import (
    CRASHED,
    FileItem,
    Limits,
    Sandbox,
    close_shared_sandboxes,
    read_documents,
    read_files,
    shared_sandbox,
)
from privileges import obeying_permissions

HOSTILE = "hostile_reader:read"
# Files that are only read must never be late, however busy the machine is.
PATIENT = Limits(seconds=300.0, memory_bytes=512 * 1024 * 1024)
QUICK = Limits(seconds=4.0, memory_bytes=512 * 1024 * 1024)


@pytest.fixture(scope="module")
def hostile() -> Iterator[Sandbox]:
    with Sandbox(reader=HOSTILE, limits=PATIENT) as sandbox:
        yield sandbox


@pytest.fixture
def shared() -> Iterator[Sandbox]:
    yield shared_sandbox()
    close_shared_sandboxes()


def written(folder: Path, *names: str) -> list[FileItem]:
    items = []
    for name in names:
        (folder / name).write_bytes(b"id,name\n1,a\n")
        items.append(FileItem(str(folder / name), 12))
    return items


def outcome(answer: FileFacts | UnreadableItemError) -> str:
    return answer.message if isinstance(answer, UnreadableItemError) else "read"


def outcomes(sandbox: Sandbox, items: list[FileItem]) -> list[str]:
    found = list(sandbox.read_files(items))
    assert [item for item, _ in found] == items
    return [outcome(answer) for _, answer in found]


@pytest.mark.parametrize(
    ("deed", "reason"),
    [
        ("abort", f"{CRASHED} (SIGABRT)"),
        ("segfault", f"{CRASHED} (SIGSEGV)"),
        ("exit", f"{CRASHED} (exit code 3)"),
        ("fail", "it is damaged, or written in an unknown way: its reader failed (RuntimeError)"),
        ("memory", "reading it takes more than 512 MB of memory"),
        ("talk", "read"),
    ],
)
def test_a_hostile_file_is_named_and_the_others_are_read(
    hostile: Sandbox, tmp_path: Path, deed: str, reason: str
) -> None:
    items = written(tmp_path, "a.csv", f"{deed}.csv", "b.csv", "c.csv")
    assert outcomes(hostile, items) == ["read", reason, "read", "read"]


@pytest.mark.parametrize("deed", ["hang", "spin"])
def test_a_file_that_never_ends_is_named_and_the_others_are_read(tmp_path: Path, deed: str) -> None:
    items = written(tmp_path, "a.csv", f"{deed}.csv", "b.csv", "c.csv")
    reason = "reading it took longer than 4 s"
    with Sandbox(reader=HOSTILE, limits=QUICK) as sandbox:
        assert outcomes(sandbox, items) == ["read", reason, "read", "read"]


def test_hostile_files_first_last_and_in_a_row_are_each_named(
    hostile: Sandbox, tmp_path: Path
) -> None:
    names = ["abort.csv", "abort.2.csv", "a.csv", "exit.csv"]
    assert outcomes(hostile, written(tmp_path, *names)) == [
        f"{CRASHED} (SIGABRT)",
        f"{CRASHED} (SIGABRT)",
        "read",
        f"{CRASHED} (exit code 3)",
    ]


def test_more_files_than_are_sent_at_once_come_back_in_order(
    hostile: Sandbox, tmp_path: Path
) -> None:
    names = [f"{'abort.' if i % 70 == 69 else 'f'}{i}.csv" for i in range(300)]
    found = outcomes(hostile, written(tmp_path, *names))
    assert [i for i, answer in enumerate(found) if answer != "read"] == [69, 139, 209, 279]


def test_long_paths_and_large_answers_fill_no_pipe_for_good(
    hostile: Sandbox, tmp_path: Path
) -> None:
    folder = tmp_path.joinpath(*["d" * 200] * 10)
    folder.mkdir(parents=True)
    columns = ",".join(f"column_{i}" for i in range(1_500))
    items = []
    for i in range(40):
        (folder / f"{i}.csv").write_text(columns + "\n")
        items.append(FileItem(str(folder / f"{i}.csv"), len(columns) + 1))
    assert outcomes(hostile, items) == ["read"] * 40


def test_the_facts_are_those_of_the_plain_reader(shared: Sandbox, tmp_path: Path) -> None:
    (item,) = written(tmp_path, "a.csv")
    with Path(item.path).open("rb") as stream:
        expected = read_file(stream, size=item.size, name="a.csv")
    ((_, facts),) = read_files([item])
    assert facts == expected
    ((_, document),) = read_documents([item])
    assert isinstance(document, bytes)
    assert orjson.loads(document)["format"] == "csv"


def test_no_files_start_no_process(tmp_path: Path) -> None:
    with Sandbox(reader="no.such.module:read") as sandbox:
        assert list(sandbox.read_files([])) == []


def test_readers_that_cannot_start_are_an_error_of_the_task(tmp_path: Path) -> None:
    items = written(tmp_path, "a.csv", "b.csv")
    with (
        Sandbox(reader="no.such.module:read") as sandbox,
        pytest.raises(SourceError, match="could not be started: ModuleNotFoundError") as raised,
    ):
        list(sandbox.read_files(items))
    assert raised.value.retryable


def test_an_interpreter_that_is_gone_is_an_error_of_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with (
        Sandbox() as sandbox,
        pytest.raises(SourceError, match="could not be started: No such file"),
    ):
        list(sandbox.read_files(written(tmp_path, "a.csv")))


def test_a_child_that_cannot_live_is_an_error_of_the_task(tmp_path: Path) -> None:
    items = written(tmp_path, "a.csv", "b.csv")
    with (
        Sandbox(reader="stillborn_reader:read") as sandbox,
        pytest.raises(SourceError, match=r"the child ended at once \(exit code 9\)"),
    ):
        list(sandbox.read_files(items))


def test_files_that_cannot_be_opened_say_why(hostile: Sandbox, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    names = ["pipe.csv", "folder.csv", "gone.csv", "loop.csv", "nul\0.csv"]
    paths = [str(tmp_path / name) for name in names] + ["/dev/null"]
    assert outcomes(hostile, [FileItem(path, 1) for path in paths]) == [
        "it is not a regular file: it is a named pipe",
        "it is not a regular file: it is a folder",
        "it is gone since it was listed",
        "its links lead in a circle",
        "it is damaged, or written in an unknown way: its reader failed (ValueError)",
        "it is not a regular file: it is a device",
    ]


def test_a_socket_is_no_file(
    hostile: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s.csv")
        assert outcomes(hostile, [FileItem(str(tmp_path / "s.csv"), 1)]) == [
            "it is not a regular file"
        ]


def test_a_name_that_is_no_unicode_is_read(hostile: Sandbox, tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.csv")
    assert outcomes(hostile, written(tmp_path, name)) == ["read"]


def test_a_file_that_vanishes_after_it_was_listed_is_named(
    hostile: Sandbox, tmp_path: Path
) -> None:
    items = written(tmp_path, "a.csv", "b.csv")

    def listed() -> Iterator[FileItem]:
        yield items[0]
        Path(items[1].path).unlink()
        yield items[1]

    assert [outcome(answer) for _, answer in hostile.read_files(listed())] == [
        "read",
        "it is gone since it was listed",
    ]


READING = """
import sys
from lumos.core.formats.sandbox import FileItem, read_files
for _, answer in read_files([FileItem(path, 1) for path in sys.argv[1:]]):
    print(getattr(answer, "message", "read"))
"""


def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    items = written(tmp_path, "a.csv", "secret.csv", "b.csv")
    Path(items[1].path).chmod(0)
    result = subprocess.run(
        [sys.executable, "-c", READING, *(item.path for item in items)],
        preexec_fn=obeying_permissions,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.split("\n")[:3] == ["read", "there is no permission to read it", "read"]
    assert result.stderr == ""


def test_damaged_parquet_files_take_nothing_with_them(shared: Sandbox, tmp_path: Path) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2], "name": ["data-value-4711", None]}), sink)
    chance = random.Random(7)
    items = []
    for i in range(120):
        content = bytearray(sink.getvalue())
        if i % 2:
            for _ in range(chance.randint(1, 8)):
                content[chance.randrange(len(content) - 200, len(content))] = chance.randrange(256)
        (tmp_path / f"{i}.parquet").write_bytes(content)
        items.append(FileItem(str(tmp_path / f"{i}.parquet"), len(content)))
    found = outcomes(shared, items)
    assert found[::2] == ["read"] * 60
    assert set(found[1::2]) - {"read"}
    assert "data-value-4711" not in "".join(found)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def gone(pid: int) -> bool:
    """Wait for a process to end; it takes the system a moment."""
    for _ in range(6_000):
        if not alive(pid):
            return True
        time.sleep(0.02)
    return False


def children_of(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


def zygote_of(sandbox: Sandbox) -> int:
    assert sandbox._zygote is not None
    return sandbox._zygote._process.pid


def test_closing_the_iterator_early_ends_its_child_and_the_next_call_is_unaffected(
    hostile: Sandbox, tmp_path: Path
) -> None:
    items = written(tmp_path, *[f"{i}.csv" for i in range(200)])
    reading = hostile.read_files(items)
    assert outcome(next(reading)[1]) == "read"
    (child,) = children_of(zygote_of(hostile))
    reading.close()  # type: ignore[attr-defined]
    assert gone(child)
    assert outcomes(hostile, items[100:]) == ["read"] * 100


def test_an_error_in_the_list_of_files_ends_the_child(hostile: Sandbox, tmp_path: Path) -> None:
    items = written(tmp_path, *[f"{i}.csv" for i in range(400)])

    def listed() -> Iterator[FileItem]:
        yield from items
        raise KeyError("listing failed")

    with pytest.raises(KeyError):
        list(hostile.read_files(listed()))
    assert children_of(zygote_of(hostile)) == []


def test_a_child_is_kept_for_the_next_call_and_blames_nobody_when_it_died_meanwhile(
    tmp_path: Path,
) -> None:
    items = written(tmp_path, "a.csv", "b.csv")
    with Sandbox() as sandbox:
        assert outcomes(sandbox, items) == ["read", "read"]
        (kept,) = children_of(zygote_of(sandbox))
        assert outcomes(sandbox, items) == ["read", "read"]
        assert children_of(zygote_of(sandbox)) == [kept]
        os.kill(kept, signal.SIGKILL)
        assert outcomes(sandbox, items) == ["read", "read"]


def test_iterators_at_the_same_time_do_not_mix(hostile: Sandbox, tmp_path: Path) -> None:
    one = written(tmp_path, *[f"a{i}.csv" for i in range(80)])
    two = written(tmp_path, *[f"abort.{i}.csv" for i in range(5)])
    first, second = hostile.read_files(one), hostile.read_files(two)
    found = [(outcome(next(first)[1]), outcome(next(second)[1])) for _ in two]
    assert found == [("read", f"{CRASHED} (SIGABRT)")] * 5
    assert [outcome(answer) for _, answer in first] == ["read"] * 75
    assert list(second) == []


def test_a_zygote_that_dies_is_replaced_and_no_file_is_blamed(
    hostile: Sandbox, tmp_path: Path
) -> None:
    items = written(tmp_path, *[f"{i}.csv" for i in range(500)])
    reading = hostile.read_files(items)
    found = [outcome(next(reading)[1])]
    old = zygote_of(hostile)
    os.kill(old, signal.SIGKILL)
    found += [outcome(answer) for _, answer in reading]
    assert found == ["read"] * 500
    assert zygote_of(hostile) != old


def test_a_sandbox_first_used_in_a_thread_that_ended_still_works(tmp_path: Path) -> None:
    items = written(tmp_path, "a.csv", "b.csv")
    with Sandbox() as sandbox:
        found: list[str] = []
        thread = threading.Thread(target=lambda: found.extend(outcomes(sandbox, items)))
        thread.start()
        thread.join()
        assert found + outcomes(sandbox, items) == ["read"] * 4


@pytest.mark.skipif(sys.platform != "linux", reason="other systems cannot promise this")
def test_nothing_is_left_when_the_one_that_asks_is_killed(tmp_path: Path) -> None:
    script = """
import sys
from lumos.core.formats.sandbox import FileItem, Limits, Sandbox
sandbox = Sandbox(reader="hostile_reader:read", limits=Limits(seconds=600))
def items():
    yield FileItem(sys.argv[1], 1)
    yield FileItem(sys.argv[2], 1)
    for _ in range(200):
        yield FileItem(sys.argv[1], 1)
    print(sandbox._zygote._process.pid, flush=True)
    yield FileItem(sys.argv[3], 1)
for _ in sandbox.read_files(items()):
    pass
"""
    items = written(tmp_path, "a.csv", "b.csv", "hang.csv")
    tests = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", script, *(item.path for item in items)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": tests}
    ) as asking:
        assert asking.stdout is not None
        zygote = int(asking.stdout.readline())
        (child,) = children_of(zygote)
        assert alive(child)
        asking.kill()
    assert gone(zygote)
    assert gone(child)


def test_credentials_in_the_environment_do_not_reach_the_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted")
    with Sandbox(reader="hostile_reader:environment") as sandbox:
        ((_, facts),) = sandbox.read_files(written(tmp_path, "a.csv"))
    assert isinstance(facts, FileFacts)
    assert "PATH" in facts.warnings
    assert "AWS_SECRET_ACCESS_KEY" not in facts.warnings


def test_a_python_file_in_the_working_folder_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('hostile')")
    items = written(tmp_path, "a.csv")
    monkeypatch.chdir(tmp_path)
    with Sandbox() as sandbox:
        assert outcomes(sandbox, items) == ["read"]


def test_shared_sandboxes_are_kept_per_limits_and_started_anew_after_closing(
    tmp_path: Path,
) -> None:
    items = written(tmp_path, "a.csv")
    assert outcomes(shared_sandbox(), items) == ["read"]
    assert shared_sandbox() is shared_sandbox()
    assert shared_sandbox() is not shared_sandbox(QUICK)
    old = zygote_of(shared_sandbox())
    close_shared_sandboxes()
    assert gone(old)
    assert [outcome(answer) for _, answer in read_files(items)] == ["read"]
    close_shared_sandboxes()


def test_every_answer_is_facts_or_a_lumos_error(hostile: Sandbox, tmp_path: Path) -> None:
    for _, answer in hostile.read_files(written(tmp_path, "fail.csv", "a.csv")):
        assert isinstance(answer, FileFacts | LumosError)
        assert "data-value-4711" not in repr(answer)
