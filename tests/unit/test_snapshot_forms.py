"""A snapshot is the same in every form, and streams between them."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from lumos.core.errors import CorruptSnapshotError, InvalidModelError, StateError
from lumos.core.models import Snapshot, load_snapshot
from lumos.core.models.migrations import MIGRATIONS
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from lumos.feature.snapshot.contents import source_content
from lumos.feature.snapshot.documents import document_seal, document_text
from lumos.feature.snapshot.documents.document_spool import STREAMED_STEPS
from lumos.feature.snapshot.export import export_document
from lumos.feature.snapshot.source import LoadedSource, StoredSource, open_source
from lumos.feature.snapshot.validation import validate
from snapshot_samples import AT, sample_dataset, sample_snapshot
from strategies import snapshots


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    return SnapshotStore(tmp_path / "store", part_bytes=2_000)


def opened(path: Path) -> StoredSource:
    source = open_source(str(path), store=SnapshotStore(path.parent / "nowhere"))
    assert isinstance(source, StoredSource)
    return source


@pytest.mark.parametrize("pretty", [True, False])
def test_file_and_folder_turn_into_each_other_with_one_content_id(
    tmp_path: Path, store: SnapshotStore, pretty: bool
) -> None:
    info = store.write(sample_snapshot(), at=AT)
    first, again = tmp_path / "first.json", tmp_path / "again.json"
    folder, copy = tmp_path / "folder", tmp_path / "copy"

    export_document(open_source(info.id, store=store), first, pretty=pretty)
    store.write_folder(source_content(opened(first)), folder, at=AT)
    export_document(opened(folder), again, pretty=pretty)
    store.write_folder(source_content(opened(again)), copy, at=AT)

    assert first.read_bytes() == again.read_bytes()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        path.name: path.read_bytes() for path in copy.iterdir()
    }
    hashes = {opened(path).content_hash for path in (first, folder, again, copy)}
    assert hashes == {info.content_hash}
    assert opened(first).statistics == info.statistics


@given(snapshots(), st.booleans(), st.integers(min_value=1, max_value=40))
@settings(max_examples=40)
def test_what_is_exported_is_read_again_whatever_the_size_of_blocks(
    tmp_path_factory: pytest.TempPathFactory, snapshot: Snapshot, pretty: bool, block: int
) -> None:
    target = tmp_path_factory.mktemp("round-trip") / "snapshot.json"
    derived = snapshot.with_derived_parts()
    export_document(LoadedSource(derived, "memory"), target, pretty=pretty)
    document = orjson.loads(target.read_bytes())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document_seal, "_BLOCK", block)
        patch.setattr(document_text, "_BLOCK", block)
        sealed = opened(target)
        assert sealed.load() == derived
        # without its seal every item is parsed and checked
        del document["document_sha256"]
        target.write_bytes(orjson.dumps(document))
        unsealed = opened(target)

    assert unsealed.load() == derived
    assert unsealed.content_hash == sealed.content_hash


def test_a_document_of_the_first_version_streams_like_it_loads(tmp_path: Path) -> None:
    document = orjson.loads((Path(__file__).parents[1] / "golden/snapshot_v0.json").read_bytes())
    target = tmp_path / "old.json"
    target.write_bytes(orjson.dumps(document))

    assert opened(target).load() == load_snapshot(document)
    assert set(MIGRATIONS) <= STREAMED_STEPS, "a new migration needs its streaming twin"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[",
        b'{"datasets": [',
        b'{"datasets": [{]}',
        b'{"datasets": [] "jobs": []}',
        b'{"datasets": [],}',
        b'{"datasets": []} x',
        b'{"datasets": [NaN]}',
        b'{"datasets": ["\\ud800"]}',
        b'{"datasets": [01]}',
        b'{"datasets": ["\xff"]}',
        b"{datasets: []}",
        b'{"datasets": ' + b"[" * 5_000,
    ],
)
def test_what_is_not_json_is_refused_with_its_place(tmp_path: Path, text: bytes) -> None:
    target = tmp_path / "bad.json"
    target.write_bytes(text)

    with pytest.raises(InvalidModelError, match=r"bad\.json is not JSON: (line \d+|it is no)"):
        opened(target)


def test_a_value_longer_than_a_block_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_text, "_BLOCK", 7)
    target = tmp_path / "long.json"
    description = "long " * 500
    dataset = {**sample_dataset(1).to_json(), "documentation": {"description": description}}
    head = {"lumos_version": "1", "export_timestamp": "2026-01-01", "source_platform": "x"}
    target.write_bytes(orjson.dumps({**head, "datasets": [dataset]}))

    (loaded,) = opened(target).load().datasets

    assert loaded.documentation.description == description


def test_an_edited_document_is_refused_unless_the_user_says_that_it_was_edited(
    tmp_path: Path,
) -> None:
    target = tmp_path / "edited.json"
    export_document(LoadedSource(sample_snapshot(3), "memory"), target)
    target.write_bytes(target.read_bytes().replace(b'"raw"', b'"cooked"'))
    store = SnapshotStore(tmp_path / "nowhere")

    with pytest.raises(CorruptSnapshotError, match="its content_sha256 does not match") as refused:
        opened(target)
    assert "add --edited" in str(refused.value.hint)
    report = validate(str(target), store=store)
    assert [check.check for check in report.checks if check.status == "fail"] == ["checksums"]

    source = open_source(str(target), store=store, edited=True)
    assert "cooked" in source.load().datasets[0].tags
    assert validate(str(target), store=store, edited=True).ok


def test_an_old_document_that_was_edited_is_refused_by_the_checksum_of_its_bytes(
    tmp_path: Path,
) -> None:
    target = tmp_path / "old.json"
    export_document(LoadedSource(sample_snapshot(3), "memory"), target)
    document = re.sub(rb',\n  "content_sha256": "[0-9a-f]{64}"', b"", target.read_bytes())
    covered = document.rpartition(b'"document_sha256": "')[0] + b'"document_sha256": "'
    target.write_bytes(covered + hashlib.sha256(covered).hexdigest().encode() + b'"\n}\n')
    assert opened(target).load() == load_snapshot(orjson.loads(target.read_bytes()))

    target.write_bytes(target.read_bytes().replace(b'"raw"', b'"cooked"'))

    with pytest.raises(CorruptSnapshotError, match="its document_sha256 does not match"):
        opened(target)


def rewritten(value: JsonValue, shuffle: random.Random) -> JsonValue:
    """Return what JSON tools make of a value: keys in another order, whole numbers as integers."""
    if isinstance(value, dict):
        keys = sorted(value)
        shuffle.shuffle(keys)
        return {key: rewritten(value[key], shuffle) for key in keys}
    if isinstance(value, list):
        return [rewritten(each, shuffle) for each in value]
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if is_whole and isinstance(value, float) else value


@given(snapshots(), st.integers(), st.booleans(), st.sampled_from([None, 1, 4]))
@settings(max_examples=40)
def test_a_document_that_a_json_tool_rewrote_is_the_same_snapshot(
    tmp_path_factory: pytest.TempPathFactory,
    snapshot: Snapshot,
    seed: int,
    ascii_only: bool,
    indent: int | None,
) -> None:
    target = tmp_path_factory.mktemp("rewritten") / "snapshot.json"
    export_document(LoadedSource(snapshot, "memory"), target)
    before = opened(target).load()
    document = rewritten(orjson.loads(target.read_bytes()), random.Random(seed))
    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent)
    target.write_bytes(text.replace("\n", "\r\n").encode())

    assert opened(target).load() == before


@given(snapshots(), st.data())
@settings(max_examples=40)
def test_a_rewritten_document_with_another_value_is_refused(
    tmp_path_factory: pytest.TempPathFactory, snapshot: Snapshot, data: st.DataObject
) -> None:
    target = tmp_path_factory.mktemp("changed") / "snapshot.json"
    export_document(LoadedSource(snapshot, "memory"), target)
    document = orjson.loads(target.read_bytes())
    places = [*leaves(document, ())]
    *path, last = data.draw(st.sampled_from(places))
    holder = document
    for step in path:
        holder = holder[step]
    holder[last] = f"{holder[last]}!"
    target.write_bytes(orjson.dumps(document))

    with pytest.raises((CorruptSnapshotError, InvalidModelError)):
        opened(target)


def leaves(value: JsonValue, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """Yield where the values of a document are, the checksum of its bytes left out."""
    members: Iterable[tuple[str | int, JsonValue]] = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value)
    elif path != ("document_sha256",):
        yield path
    for step, member in members:
        yield from leaves(member, (*path, step))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"urn": "lumos://s3/lake/raw/table_00001"', b'"urn": 5'),
        (b'"type": "INT64",', b'"kind": "INT64",'),
        (b'"fields": [', b'"fields": {"x": ['),
        (b'"users": [', b'"strange": ['),
        (b'"raw"\n', b'"raw"\n    },\n    5,\n    {'),
    ],
)
def test_a_seal_over_what_lumos_does_not_write_helps_nobody(
    tmp_path: Path, old: bytes, new: bytes
) -> None:
    target = tmp_path / "forged.json"
    export_document(LoadedSource(sample_snapshot(3), "memory"), target)
    content = target.read_bytes()
    assert old in content
    changed, _, _ = content.replace(old, new, 1).rpartition(b'"document_sha256": "')
    changed += b'"document_sha256": "'
    import hashlib

    target.write_bytes(changed + hashlib.sha256(changed).hexdigest().encode() + b'"\n}\n')

    with pytest.raises((CorruptSnapshotError, InvalidModelError)):
        opened(target).load()


def test_a_folder_is_replaced_whole_and_other_things_in_it_are_left_alone(
    tmp_path: Path, store: SnapshotStore
) -> None:
    folder = tmp_path / "backup"
    store.write_folder(source_content(LoadedSource(sample_snapshot(30), "a")), folder, at=AT)
    before = {path.name for path in folder.iterdir()}
    (folder / ".tmp-0011-left").write_bytes(b"what a killed writer left")

    later = sample_snapshot(3, note="later")
    store.write_folder(source_content(LoadedSource(later, "b")), folder, at=AT)

    assert opened(folder).load() == later
    assert opened(folder).stored.verify().ok
    assert {path.name for path in folder.iterdir()} != before
    assert {path.name for path in folder.iterdir()} == {
        "manifest.json",
        *(part.name for part in opened(folder).stored.manifest.parts),
    }

    (folder / "notes.txt").write_text("mine")
    with pytest.raises(StateError, match=r"holds notes\.txt"):
        store.write_folder(source_content(LoadedSource(sample_snapshot(1), "c")), folder, at=AT)
    assert opened(folder).load() == later
    assert (folder / "notes.txt").read_text() == "mine"


def test_two_jobs_of_one_urn_are_refused(tmp_path: Path) -> None:
    document = sample_snapshot(2).to_json()
    jobs = document["jobs"]
    assert isinstance(jobs, list)
    document["jobs"] = [*jobs, *jobs]
    target = tmp_path / "twice.json"
    target.write_bytes(orjson.dumps(document))

    with pytest.raises(InvalidModelError, match="two jobs have the URN lumos://airflow/daily/load"):
        opened(target)
