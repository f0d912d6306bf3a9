"""A stored snapshot is what was written, or it is refused."""

from __future__ import annotations

import os
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from lumos.core.errors import (
    CorruptSnapshotError,
    InvalidModelError,
    SnapshotNotFoundError,
    UnsupportedSnapshotVersionError,
)
from lumos.core.models.base import sha256_of
from lumos.core.store.snapshots.part_format import (
    encode_part,
    part_name,
)
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from lumos.feature.snapshot.validation import validate
from snapshot_samples import AT, sample_snapshot

FULL_SIZE = os.environ.get("LUMOS_TEST_FULL") == "1"


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    """A store whose parts are small, so that a small snapshot has many."""
    return SnapshotStore(tmp_path / "snapshots", part_bytes=4_000)


def test_a_single_flipped_bit_anywhere_is_detected(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path, part_bytes=2_000)
    info = store.write(sample_snapshot(4), at=AT)
    flips = 0
    for path in sorted((tmp_path / info.id).iterdir()):
        content = path.read_bytes()
        step = 1 if FULL_SIZE else max(1, len(content) // 60)
        for place in range(0, len(content), step):
            bits = range(8) if FULL_SIZE else [place % 8]
            for bit in bits:
                path.write_bytes(_flipped(content, place, bit))
                assert not store.verify(info.id).ok, f"{path.name} byte {place} bit {bit}"
                flips += 1
                if bit != place % 8:
                    continue
                with pytest.raises(CorruptSnapshotError) as caught:
                    store.read(info.id)
                assert info.id in caught.value.message
                assert path.name in caught.value.message
                assert caught.value.hint
        path.write_bytes(content)
    assert flips > 500
    assert store.verify(info.id).ok


def _flipped(content: bytes, place: int, bit: int) -> bytes:
    return content[:place] + bytes([content[place] ^ (1 << bit)]) + content[place + 1 :]


@pytest.mark.parametrize("damage", ["truncated", "emptied", "removed", "swapped"])
def test_a_damaged_part_is_detected(store: SnapshotStore, damage: str) -> None:
    info = store.write(sample_snapshot(), at=AT)
    first, second = sorted((store.root / info.id).glob("datasets-*"))[:2]
    match damage:
        case "truncated":
            first.write_bytes(first.read_bytes()[:-1])
        case "emptied":
            first.write_bytes(b"")
        case "removed":
            first.unlink()
        case _:
            content = first.read_bytes()
            first.write_bytes(second.read_bytes())
            second.write_bytes(content)

    assert any(first.name in problem for problem in store.verify(info.id).problems)
    with pytest.raises(CorruptSnapshotError):
        store.read(info.id)


def test_a_damaged_snapshot_is_listed_with_its_problem_and_hides_no_other(
    store: SnapshotStore,
) -> None:
    sound = store.write(sample_snapshot(), at=AT)
    damaged = store.write(sample_snapshot(3), at=AT + timedelta(hours=1))
    (store.root / damaged.id / "manifest.json").write_bytes(b"not json")

    listed = store.list()

    assert [info.id for info in listed] == [sound.id, damaged.id]
    assert listed[0] == sound
    assert listed[1].problem is not None
    with pytest.raises(CorruptSnapshotError):
        store.latest()
    assert store.read(sound.id) == sample_snapshot()
    assert store.collect_orphans() == ()


def test_a_folder_under_another_snapshots_name_is_detected(store: SnapshotStore) -> None:
    info = store.write(sample_snapshot(), at=AT)
    other = "20270101T000000Z-00000000"
    (store.root / info.id).rename(store.root / other)

    assert not store.verify(other).ok


@pytest.mark.parametrize(
    "name", ["../../../etc/passwd", "/etc/passwd", "datasets-00000-0123456789abcdef.jsonl.zst/../x"]
)
def test_a_manifest_with_a_valid_checksum_cannot_name_foreign_files(
    store: SnapshotStore, name: str
) -> None:
    info = store.write(sample_snapshot(), at=AT)
    _forge(store.root / info.id / "manifest.json", lambda document: _rename_part(document, name))

    with pytest.raises(CorruptSnapshotError, match="not named after its content"):
        store.read(info.id)


@pytest.mark.parametrize("key", ["manifest_version", "snapshot_schema_version"])
def test_a_snapshot_of_a_newer_lumos_is_refused_with_advice(store: SnapshotStore, key: str) -> None:
    info = store.write(sample_snapshot(), at=AT)
    _forge(store.root / info.id / "manifest.json", lambda document: document.update({key: 99}))

    with pytest.raises(UnsupportedSnapshotVersionError) as caught:
        store.read(info.id)

    assert "upgrade" in str(caught.value.hint)


def test_content_that_does_not_fit_the_content_hash_is_found_by_verify(
    store: SnapshotStore,
) -> None:
    info = store.write(sample_snapshot(), at=AT)
    _forge(
        store.root / info.id / "manifest.json",
        lambda document: document.update(content_hash="0" * 64),
    )

    assert "not what was written" in store.verify(info.id).problems[0]


@pytest.mark.parametrize("line", [b"not json", b"[1]", b"{}", b'{"urn":"x"}', b""])
def test_a_forged_part_with_fitting_checksums_is_refused(store: SnapshotStore, line: bytes) -> None:
    info = store.write(sample_snapshot(1), at=AT)
    folder = store.root / info.id
    for section in ("datasets", "identity_map", "extensions", "tags"):
        _forge(folder / "manifest.json", partial(_replace_part, folder, section, line))

    assert not store.verify(info.id).ok
    assert not validate(info.id, store=store).ok
    with pytest.raises(InvalidModelError):
        store.read(info.id)
    with pytest.raises(InvalidModelError):
        list(store.open(info.id).datasets())


def _replace_part(folder: Path, section: str, line: bytes, document: dict[str, Any]) -> None:
    part = encode_part([line])
    entry = next(entry for entry in document["parts"] if entry["section"] == section)
    entry["name"] = part_name(section, entry["bucket"], sha256=part.sha256)
    entry.update(bytes=len(part.content), plain_bytes=part.plain_bytes, sha256=part.sha256, count=1)
    (folder / entry["name"]).write_bytes(part.content)


def _rename_part(document: dict[str, object], name: str) -> None:
    parts = document["parts"]
    assert isinstance(parts, list)
    parts[0]["name"] = name


def _forge(path: Path, change: object) -> None:
    """Change a manifest and give it a checksum that fits, as an attacker would."""
    assert callable(change)
    document = orjson.loads(path.read_bytes())
    del document["manifest_sha256"]
    change(document)
    document["manifest_sha256"] = sha256_of(document)
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    path.write_bytes(orjson.dumps(document, option=options))


def test_a_snapshot_whose_folder_went_while_it_was_read_is_named(store: SnapshotStore) -> None:
    stored = store.open(store.write(sample_snapshot(), at=AT).id)
    stored.folder.rename(store.root / "elsewhere")

    with pytest.raises(SnapshotNotFoundError, match=f"snapshot {stored.manifest.id} is not there"):
        stored.read()


def test_a_snapshot_is_read_from_a_folder_whose_name_is_no_unicode(tmp_path: Path) -> None:
    store = SnapshotStore(Path(f"{tmp_path}/caf\udce9"))
    info = store.write(sample_snapshot(), at=AT)

    assert store.read(info.id).datasets == sample_snapshot().datasets
