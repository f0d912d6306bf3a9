"""One flipped bit anywhere in a snapshot is found, in each of its forms."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest

from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from lumos.feature.snapshot.contents import source_content
from lumos.feature.snapshot.export import export_document
from lumos.feature.snapshot.source import LoadedSource
from lumos.feature.snapshot.verification import sign_snapshot, verify
from snapshot_keys import private_key
from snapshot_samples import AT, sample_snapshot

FULL_SIZE = os.environ.get("LUMOS_TEST_FULL") == "1"
FLIPS = 10_000 if FULL_SIZE else 400


def written(folder: Path, form: str) -> tuple[Path, list[Path]]:
    """Return a signed snapshot in a form, and the files that it consists of."""
    source = LoadedSource(sample_snapshot(6), "memory")
    key = private_key(folder)
    store = SnapshotStore(folder / "store")
    if form == "folder":
        target = folder / "snapshot"
        store.write_folder(source_content(source), target, at=AT)
        sign_snapshot(str(target), key, store=store)
        return target, sorted(target.iterdir())
    target = folder / "snapshot.json"
    export_document(source, target, pretty=form == "pretty")
    sign_snapshot(str(target), key, store=store)
    return target, [target, target.with_name("snapshot.json.sig")]


def bits_of_document_checksum(content: bytes) -> range:
    """Return the bits whose only effect is that the content is compared instead of the bytes."""
    found = re.search(rb'"document_sha256": ?"([0-9a-f]{64})"', content)
    return range(8 * found.start(1), 8 * found.end(1)) if found else range(0)


@pytest.mark.parametrize("form", ["folder", "pretty", "compact"])
def test_a_flipped_bit_anywhere_is_found(tmp_path: Path, form: str) -> None:
    target, files = written(tmp_path, form)
    store = SnapshotStore(tmp_path / "store")
    contents = {file: file.read_bytes() for file in files}
    places = [
        (file, bit)
        for file in files
        for bit in range(8 * len(contents[file]))
        if bit not in bits_of_document_checksum(contents[file])
    ]
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")  # noqa: T201
    chosen = random.Random(seed).sample(places, min(FLIPS, len(places)))
    assert verify(str(target), store=store).ok
    missed = []

    for file, bit in chosen:
        content = bytearray(contents[file])
        content[bit // 8] ^= 1 << bit % 8
        file.write_bytes(content)
        if verify(str(target), store=store).ok:
            missed.append((file.name, bit))
        file.write_bytes(contents[file])

    assert missed == []
    assert verify(str(target), store=store).ok


@pytest.mark.parametrize("form", ["pretty", "compact"])
def test_every_bit_of_the_last_lines_of_a_document_counts(tmp_path: Path, form: str) -> None:
    target, _ = written(tmp_path, form)
    store = SnapshotStore(tmp_path / "store")
    content = target.read_bytes()

    for bit in range(8 * (len(content) - 180), 8 * len(content)):
        if bit in bits_of_document_checksum(content):
            continue
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        target.write_bytes(flipped)
        assert not verify(str(target), store=store).ok, bit
