"""No snapshot can exhaust memory: what unpacks to more than Lumos writes is refused by its name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hostile_snapshots import (
    MEGABYTE,
    line_bomb,
    lines_bomb,
    packed,
    with_lines,
    with_part,
    written,
)
from lumos.core.errors import CorruptSnapshotError, InvalidModelError, LumosError
from lumos.core.store.snapshots.manifest import MANIFEST_NAME
from lumos.core.store.snapshots.part_format import encode_part
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from lumos.core.store.snapshots.stored_snapshot import StoredSnapshot
from lumos.core.strict_json import LARGEST_ITEM_BYTES, MOST_ITEM_VALUES
from lumos.feature.snapshot.documents.document_pair import loaded_pair
from lumos.feature.snapshot.source import open_source
from lumos.feature.snapshot.validation import validate
from lumos.feature.snapshot.verification import verify
from snapshot_samples import sample_snapshot

TESTS = Path(__file__).parents[1]
LARGEST = 350 * MEGABYTE
COMMANDS = {
    "validate": ("validate", "bomb"),
    "import": ("import", "bomb", "--dry-run"),
    "verify": ("snapshot", "verify", "bomb"),
    "diff": ("diff", "--source", "bomb", "--target", "good"),
    "diff-again": ("diff", "--source", "good", "--target", "bomb"),
    "export": ("export", "--snapshot", "bomb", "--output", "out.json"),
    "versions": ("version", "compute", "--from", "good", "--to", "bomb"),
}
needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run a command in a process of its own; return its peak memory and what it printed."""
    script = str(TESTS / "hostile_memory.py")
    environment = {**os.environ, "LUMOS_STATE_DIR": str(folder / "state"), "COLUMNS": "500"}
    done = subprocess.run(
        [sys.executable, script, "command", *arguments],
        check=True,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
    )
    *_, last = done.stdout.strip().splitlines()
    return int(last.split()[0]), done.stdout + done.stderr


@needs_proc
@pytest.mark.parametrize("bomb", [line_bomb, lines_bomb], ids=["one-line", "tiny-lines"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_part_that_unpacks_to_a_gigabyte_is_refused_in_little_memory(
    tmp_path: Path, command: str, bomb: Callable[[Path, int], str]
) -> None:
    os.rename(written(tmp_path / "store"), tmp_path / "bomb")
    os.rename(written(tmp_path / "other", sample_snapshot(2)), tmp_path / "good")
    name = bomb(tmp_path / "bomb", 1024)
    assert (tmp_path / "bomb" / name).stat().st_size < MEGABYTE

    peak, told = run(tmp_path, *COMMANDS[command])

    assert name in told
    assert "it unpacks to more than 134,217,728 bytes" in told
    assert "exit code 0" not in told
    assert peak < LARGEST


def refusal(folder: Path) -> str:
    with pytest.raises(LumosError) as raised:
        list(StoredSnapshot.open(folder).iter_lines())
    return raised.value.message


@pytest.mark.parametrize(
    ("plain_bytes", "count", "reason"),
    [
        (17 * MEGABYTE, 1, "more than 1,000 times its packed size"),
        (128 * MEGABYTE + 1, 1, "more than 134,217,728 bytes"),
        (1, 1_000_001, "more than 1,000,000 lines"),
    ],
)
def test_what_a_manifest_states_of_a_part_is_refused_before_it_is_read(
    tmp_path: Path, plain_bytes: int, count: int, reason: str
) -> None:
    folder = written(tmp_path)
    name = with_part(folder, b"never unpacked", plain_bytes=plain_bytes, count=count)
    (folder / name).unlink()
    assert refusal(folder).endswith(f"{name}: it unpacks to {reason}, which no Lumos writes")


def test_a_part_that_unpacks_to_more_than_its_manifest_states_is_damaged(tmp_path: Path) -> None:
    folder = written(tmp_path)
    name = with_part(folder, packed([b"x" * MEGABYTE] * 64), plain_bytes=100, count=1)
    assert refusal(folder).endswith(f"{name}: it cannot be unpacked")


def test_a_part_that_asks_for_a_large_window_is_not_unpacked(tmp_path: Path) -> None:
    folder = written(tmp_path)
    pieces = [b"x" * MEGABYTE, b"\n"]
    content = packed(pieces, window_log=27)
    name = with_part(folder, content, plain_bytes=MEGABYTE + 1, count=1)
    assert refusal(folder).endswith(f"{name}: it cannot be unpacked")


def test_a_part_file_that_is_longer_than_stated_is_not_read_to_its_end(tmp_path: Path) -> None:
    folder = written(tmp_path)
    (part,) = StoredSnapshot.open(folder).manifest.parts_of("datasets").values()
    with (folder / part.name).open("r+b") as stream:
        stream.truncate(1 << 40)  # a hole, which takes no space on disk
    assert "its checksum does not match" in refusal(folder)


def test_a_manifest_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    folder = written(tmp_path)
    with (folder / MANIFEST_NAME).open("r+b") as stream:
        stream.truncate(1 << 40)
    assert "larger than 67,108,864 bytes" in refusal(folder)


@pytest.mark.parametrize("value", [b"[]", b"{}", b"0"])
def test_a_line_of_millions_of_values_is_refused_before_they_are_built(
    tmp_path: Path, value: bytes
) -> None:
    folder = written(tmp_path)
    values = b",".join([value] * (MOST_ITEM_VALUES + 1))
    with_lines(folder, [b'{"name":"a","value":[' + values + b"]}"], section="tags")
    (part,) = StoredSnapshot.open(folder).manifest.parts_of("tags").values()
    report = verify(str(folder), store=SnapshotStore(tmp_path))
    assert f"{part.name}: a line of the snapshot cannot be read" in report.problems[0]
    assert "more than 2,000,000 values" in report.problems[0]


def test_an_item_that_no_reader_takes_is_not_written() -> None:
    with pytest.raises(InvalidModelError, match="larger than a snapshot takes"):
        encode_part([b'{"name":"' + b"x" * LARGEST_ITEM_BYTES + b'"}'])


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("place", ["head", "dataset", "extensions"])
def test_a_document_with_a_value_of_hundreds_of_megabytes_is_refused(
    tmp_path: Path, indent: int | None, place: str
) -> None:
    document = sample_snapshot(1).to_json()
    mark = "@@@"
    match place:
        case "head":
            document["lumos_version"] = mark
        case "dataset":
            document["datasets"][0]["name"] = mark  # type: ignore[index, call-overload]
        case "extensions":
            document["extensions"] = {"a": mark}
    before, after = json.dumps(document, indent=indent).split(mark)
    path = tmp_path / "bomb.json"
    with path.open("w", encoding="utf-8") as stream:
        stream.write(before)
        for _ in range(40):
            stream.write("x" * MEGABYTE)
        stream.write(after)
    store = SnapshotStore(tmp_path / "store")
    for read in (open_source, validate):
        with pytest.raises(InvalidModelError, match="a value is longer than 33,554,432 characters"):
            read(str(path), store=store)


def test_a_document_with_endlessly_much_beside_its_items_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.json"
    with path.open("w", encoding="utf-8") as stream:
        stream.write('{"snapshot_schema_version": 1')
        for number in range(40):
            stream.write(f', "more_{number}": "{"x" * MEGABYTE}"')
        stream.write("}")
    with pytest.raises(InvalidModelError, match="characters are no items"):
        open_source(str(path), store=SnapshotStore(tmp_path / "store"))


def sealed(folder: Path, *, pretty: bool) -> Path:
    from lumos.feature.snapshot.export import export_document
    from lumos.feature.snapshot.source import LoadedSource

    path = folder / "sealed.json"
    export_document(LoadedSource(sample_snapshot(2), "sample"), path, pretty=pretty)
    return path


def resealed(path: Path, old: bytes, new: bytes) -> None:
    """Change a sealed document and seal it again, as somebody who wants it to be read would."""
    import hashlib

    content = path.read_bytes()
    assert old in content
    covered = content.replace(old, new, 1)[: -len('"\n}\n') - 64]
    path.write_bytes(covered + hashlib.sha256(covered).hexdigest().encode() + b'"\n}\n')


@pytest.mark.parametrize("pretty", [True, False])
def test_a_sealed_document_with_an_item_of_hundreds_of_megabytes_is_refused(
    tmp_path: Path, pretty: bool
) -> None:
    path = sealed(tmp_path, pretty=pretty)
    resealed(path, b'"table_00000"', b'"' + b"x" * 40 * MEGABYTE + b'"')
    with pytest.raises(CorruptSnapshotError, match="an item of more than 33,554,432 bytes"):
        open_source(str(path), store=SnapshotStore(tmp_path / "store"))


@pytest.mark.parametrize("pretty", [True, False])
def test_a_key_that_is_twice_in_an_item_of_a_sealed_document_is_refused(
    tmp_path: Path, pretty: bool
) -> None:
    path = sealed(tmp_path, pretty=pretty)
    colon = b'"name": ' if pretty else b'"name":'
    name = colon + b'"table_00001"'
    resealed(path, name, b'"name":"other",' + name)
    with pytest.raises(LumosError, match='the key "name" is there twice'):
        open_source(str(path), store=SnapshotStore(tmp_path / "store")).load()


TWICE = {
    "top": ('"source_platform":', '"source_platform":"other","source_platform":'),
    "dataset": ('"name":"table_00000"', '"name":"other","name":"table_00000"'),
    "column": ('"type":"INT64"', '"type":"STRING","type":"INT64"'),
    "section": ('"users":', '"users":[],"users":'),
    "map": ('"identity_map":{', '"identity_map":{"lumos://a/b":{"x":"y"},"lumos://a/b":{"x":"z"},'),
}


def validation_of(path: Path, store: SnapshotStore) -> str:
    try:
        report = validate(str(path), store=store)
    except InvalidModelError as error:
        return error.message
    assert not report.ok
    return "\n".join(report.lines())


@pytest.mark.parametrize("place", TWICE)
def test_a_key_that_is_twice_in_a_document_is_refused_by_its_name(
    tmp_path: Path, place: str
) -> None:
    text = json.dumps(sample_snapshot(2).to_json(), separators=(",", ":"), sort_keys=True)
    old, new = TWICE[place]
    assert old in text
    path = tmp_path / "twice.json"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    store = SnapshotStore(tmp_path / "store")
    key = "lumos://a/b" if place == "map" else old.split('"')[1]
    with pytest.raises(InvalidModelError, match=f'the key "{key}" is there twice'):
        open_source(str(path), store=store)
    assert f'the key "{key}" is there twice' in validation_of(path, store)
    assert loaded_pair(path, path) is None


@pytest.mark.parametrize("canonical", [True, False])
def test_a_key_that_is_twice_in_a_line_of_a_part_is_refused_by_its_name(
    tmp_path: Path, canonical: bool
) -> None:
    folder = written(tmp_path)
    (line,) = StoredSnapshot.open(folder).bucket_lines(0)
    twice = line.replace(b'"platform":', b'"platform":"x","platform":')
    if not canonical:  # as long as what is written of it
        twice = line.replace(b'"platform":', b'"a":1e5,"platform":"x","platform":')
    with_lines(folder, [twice])
    store = SnapshotStore(tmp_path)

    report = validate(str(folder), store=store)
    with pytest.raises(InvalidModelError) as raised:
        [*StoredSnapshot.open(folder).datasets()]

    assert any('the key "platform" is there twice' in line for line in report.lines())
    assert raised.value.message.startswith("lumos://s3/lake/raw/table_00000: ")
    assert 'the key "platform" is there twice' in raised.value.message


def test_a_key_that_is_twice_is_told_escaped_and_short(tmp_path: Path) -> None:
    folder = written(tmp_path)
    key = "\\u001b[31m" + "k" * 500
    with_lines(folder, [f'{{"name":"a","{key}":1,"{key}":2}}'.encode()], section="tags")
    (problem,) = verify(str(folder), store=SnapshotStore(tmp_path)).problems
    assert "\x1b" not in problem
    assert "\\u001b[31m" in problem
    assert len(problem) < 400


@pytest.mark.parametrize(
    "line",
    [
        b'{"urn":"lumos://s3/lake/raw/table_00000","contract_hash":"' + b"0" * 64 + b'"}',
        b'{"urn":"lumos://s3/lake/raw/table_00000","urn":"lumos://a/b"}',
        b'{"urn":"lumos://s3/lake/raw/table_00000","urn_again__":"'
        + b"0" * 64
        + b'","dataset":{}}',
    ],
)
def test_a_line_that_is_not_laid_out_as_a_dataset_is_refused(tmp_path: Path, line: bytes) -> None:
    folder = written(tmp_path)
    with_lines(folder, [line])
    with pytest.raises(InvalidModelError, match="not laid out as a dataset's"):
        [*StoredSnapshot.open(folder).datasets()]
