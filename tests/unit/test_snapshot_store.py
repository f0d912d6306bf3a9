from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.core.errors import (
    InvalidModelError,
    SnapshotNotFoundError,
)
from lumos.core.models import LumosDataset, Snapshot, Urn, with_parts
from lumos.core.store.snapshots.folder_claim import CLAIM_NAME, FolderClaim
from lumos.core.store.snapshots.manifest import Manifest, SnapshotHeader, is_snapshot_id
from lumos.core.store.snapshots.part_format import (
    bucket_count,
    bucket_of,
    dataset_json_of,
    dataset_line,
    dataset_of_line,
    differing_lines,
    encode_part,
    hash_of,
    lines_of,
    plain_of,
    unpacked_part,
    urn_of_line,
)
from lumos.core.store.snapshots.snapshot_files import DurableFiles
from lumos.core.store.snapshots.snapshot_sections import SnapshotSections
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from lumos.core.store.snapshots.snapshot_writer import bucket_rank
from snapshot_samples import AT, sample_dataset, sample_snapshot


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    """A store whose parts are small, so that a small snapshot has many."""
    return SnapshotStore(tmp_path / "snapshots", part_bytes=4_000)


def test_what_was_written_is_read_back_equal(store: SnapshotStore) -> None:
    snapshot = sample_snapshot()

    info = store.write(snapshot, at=AT)

    assert store.read(info.id) == snapshot
    assert store.read("latest") == snapshot
    assert info.statistics == snapshot.counted()
    assert store.verify(info.id).ok


def test_an_empty_snapshot_is_kept(store: SnapshotStore) -> None:
    snapshot = Snapshot(
        snapshot_schema_version=1,
        lumos_version="0.1.0",
        export_timestamp=AT,
        source_platform="embedded",
        complete=False,
    )

    info = store.write(snapshot, at=AT)

    assert store.read(info.id) == snapshot
    assert info.parts == 0


def test_a_snapshot_that_never_fits_into_memory_is_the_same(tmp_path: Path) -> None:
    snapshot = sample_snapshot(300)
    roomy = SnapshotStore(tmp_path / "roomy", part_bytes=4_000)
    tight = SnapshotStore(tmp_path / "tight", part_bytes=4_000, memory_bytes=2_000)

    info = roomy.write(snapshot, at=AT)

    assert tight.write(snapshot, at=AT) == info
    assert _files_of(tight.root / info.id) == _files_of(roomy.root / info.id)


def test_a_section_may_be_a_stream(store: SnapshotStore) -> None:
    header = SnapshotHeader(lumos_version="0.1.0", export_timestamp=AT, source_platform="s3")
    stream = (sample_dataset(number) for number in reversed(range(50)))

    info = store.write_sections(header, SnapshotSections(datasets=stream), at=AT)

    assert [dataset.urn for dataset in store.read(info.id).datasets] == [
        sample_dataset(number).urn for number in range(50)
    ]


def test_the_same_content_gives_the_same_bytes_at_any_time(store: SnapshotStore) -> None:
    first = store.write(sample_snapshot(), at=AT)
    later = store.write(sample_snapshot(), at=AT + timedelta(days=1))

    assert first.id != later.id
    assert first.content_hash == later.content_hash
    parts = [_files_of(store.root / info.id) for info in (first, later)]
    for files in parts:
        del files["manifest.json"]
    assert parts[0] == parts[1]


@pytest.mark.parametrize(
    "other",
    [
        sample_snapshot(39),
        sample_snapshot(note="edited"),
        sample_snapshot(complete=False),
    ],
    ids=["a dataset less", "a description edited", "incomplete"],
)
def test_other_content_has_another_hash(store: SnapshotStore, other: Snapshot) -> None:
    info = store.write(sample_snapshot(), at=AT)

    assert store.write(other, at=AT).content_hash != info.content_hash


def test_the_content_hash_does_not_depend_on_the_number_of_parts(tmp_path: Path) -> None:
    infos = [
        SnapshotStore(tmp_path / str(size), part_bytes=size).write(sample_snapshot(), at=AT)
        for size in (1_000, 1_000_000)
    ]

    assert infos[0].parts > infos[1].parts
    assert infos[0].content_hash == infos[1].content_hash


def test_the_id_tells_time_and_content(store: SnapshotStore) -> None:
    info = store.write(sample_snapshot(), at=AT)

    assert info.content_hash is not None
    assert info.id == f"20260301T120000Z-{info.content_hash[:8]}"
    assert is_snapshot_id(info.id)


def test_writing_the_same_for_the_same_second_returns_what_is_there(store: SnapshotStore) -> None:
    info = store.write(sample_snapshot(), at=AT)

    assert store.write(sample_snapshot(), at=AT) == info
    assert store.list() == [info]


def test_an_id_taken_by_other_content_is_made_longer(store: SnapshotStore) -> None:
    taken = store.write(sample_snapshot(), at=AT)
    folder = store.root / taken.id
    (folder / "manifest.json").write_bytes(b"{}")

    info = store.write(sample_snapshot(), at=AT)

    assert info.id.startswith(taken.id)
    assert len(info.id) > len(taken.id)
    assert store.read(info.id) == sample_snapshot()
    assert (folder / "manifest.json").read_bytes() == b"{}"


def test_snapshots_are_listed_in_the_order_of_storing_whatever_the_clock_said(
    store: SnapshotStore,
) -> None:
    times = [AT + timedelta(milliseconds=100 * step) for step in range(8)] + [AT - timedelta(9)]
    infos = {
        at: store.write(sample_snapshot(2, note=str(number)), at=at)
        for number, at in enumerate(times)
    }

    assert [info.id for info in store.list()] == [infos[at].id for at in times]
    assert [info.sequence for info in store.list()] == [*range(1, len(times) + 1)]
    newest = store.latest()
    assert newest is not None
    assert newest.id == infos[times[-1]].id


def test_an_empty_store_has_no_latest_snapshot(store: SnapshotStore) -> None:
    assert store.list() == []
    assert store.latest() is None
    assert store.collect_orphans() == ()
    with pytest.raises(SnapshotNotFoundError, match="no snapshot in"):
        store.read("latest")


@pytest.mark.parametrize("name", ["20200101T000000Z-00000000", "../escape", "", "nonsense"])
def test_an_unknown_id_is_named_with_the_newest_known_ones(store: SnapshotStore, name: str) -> None:
    info = store.write(sample_snapshot(), at=AT)

    with pytest.raises(SnapshotNotFoundError) as caught:
        store.read(name)

    assert info.id in str(caught.value.hint)


def test_two_datasets_of_one_urn_are_refused_and_leave_nothing(store: SnapshotStore) -> None:
    header = SnapshotHeader(lumos_version="0.1.0", export_timestamp=AT, source_platform="s3")
    twice = SnapshotSections(datasets=[sample_dataset(1), sample_dataset(1, note="x")])

    with pytest.raises(InvalidModelError, match="two datasets have the URN"):
        store.write_sections(header, twice, at=AT)

    assert list(store.root.iterdir()) == []


def test_parts_are_bucketed_and_sorted_by_urn(store: SnapshotStore) -> None:
    stored = store.open(store.write(sample_snapshot(), at=AT).id)
    count = stored.bucket_count()

    assert count > 1
    for bucket in range(count):
        urns = [urn_of_line(line) for line in stored.bucket_lines(bucket)]
        assert urns == sorted(urns)
        assert {bucket_of(urn, count) for urn in urns} <= {bucket}


def test_a_line_begins_with_urn_and_hash(store: SnapshotStore) -> None:
    dataset = sample_dataset(7)
    line = dataset_line(dataset)

    assert urn_of_line(line).decode() == dataset.urn
    assert hash_of(line).decode() == dataset.contract_hash
    assert list(orjson.loads(line)) == ["urn", "contract_hash", "dataset"]
    assert orjson.loads(dataset_json_of(line)) == dataset.to_json()
    assert dataset_of_line(line) == dataset


@given(st.lists(st.binary(min_size=1, max_size=20).filter(lambda line: b"\n" not in line)))
def test_a_part_decodes_to_the_lines_it_was_made_of(lines: list[bytes]) -> None:
    part = encode_part(lines)

    assert lines_of(unpacked_part(part.content, part.plain_bytes)) == lines
    assert encode_part(lines) == part
    assert part.count == len(lines)


def test_a_part_that_unpacks_to_more_than_stated_is_refused() -> None:
    bomb = encode_part([b"0" * 1_000_000])

    with pytest.raises(ValueError, match=r"."):
        unpacked_part(bomb.content, 1_000)


_NUMBERS = st.dictionaries(st.integers(0, 30), st.sampled_from(["", "edited"]))


@given(_NUMBERS, _NUMBERS)
def test_a_merge_yields_exactly_what_differs(old: dict[int, str], new: dict[int, str]) -> None:
    lines = [
        [dataset_line(sample_dataset(number, note=side[number])) for number in sorted(side)]
        for side in (old, new)
    ]

    found = {
        urn_of_line(before or after or b""): (before is not None, after is not None)
        for before, after in differing_lines(*map(plain_of, lines))
    }

    assert found == {
        sample_dataset(number).urn.encode(): (number in old, number in new)
        for number in old.keys() | new.keys()
        if old.get(number) != new.get(number)
    }


def test_a_merge_does_not_take_observations_for_changes() -> None:
    dataset = sample_dataset(1)
    observed = with_parts(dataset, statistics={"file_count": 99})

    sides = (plain_of([dataset_line(each)]) for each in (dataset, observed))
    assert list(differing_lines(*sides)) == []


@given(st.lists(st.binary(max_size=8), unique=True), st.integers(0, 10))
def test_a_rank_keeps_every_bucket_together(keys: list[bytes], power: int) -> None:
    buckets = 2**power
    ordered = [bucket_of(key, buckets) for key in sorted(keys, key=bucket_rank)]

    assert len({*ordered}) == sum(
        1 for place, bucket in enumerate(ordered) if place == 0 or ordered[place - 1] != bucket
    )


@pytest.mark.parametrize("size", [0, 1, 5, 6, 7, 100, 1_000, 12_345])
def test_parts_come_near_the_size_aimed_at(size: int) -> None:
    buckets = bucket_count(size, part_bytes=4)

    assert buckets & (buckets - 1) == 0
    assert buckets == 1 or 3 <= size / buckets <= 6


def test_the_manifest_says_what_the_snapshot_holds(store: SnapshotStore) -> None:
    info = store.write(sample_snapshot(), at=AT)

    document = orjson.loads((store.root / info.id / "manifest.json").read_bytes())

    assert document["manifest_version"] == 2
    assert document["sequence"] == 1
    assert document["snapshot_schema_version"] == 1
    assert document["statistics"]["datasets"] == 40
    assert document["buckets"]["datasets"] == len(
        [part for part in document["parts"] if part["section"] == "datasets"]
    )
    assert {path.name for path in (store.root / info.id).iterdir()} == {
        "manifest.json",
        *(part["name"] for part in document["parts"]),
    }


def test_collecting_removes_folders_without_manifest_and_temp_files_only(
    store: SnapshotStore,
) -> None:
    info = store.write(sample_snapshot(), at=AT)
    orphan = store.root / "20260101T000000Z-deadbeef"
    orphan.mkdir()
    (orphan / "datasets-00000-0123456789abcdef.jsonl.zst").write_bytes(b"half")
    (store.root / info.id / ".tmp-left").write_bytes(b"half")
    foreign = store.root / "notes"
    foreign.mkdir()
    (foreign / "todo.txt").write_text("mine")

    removed = store.collect_orphans()

    assert set(removed) == {orphan.name, f"{info.id}/.tmp-left"}
    assert not orphan.exists()
    assert (foreign / "todo.txt").read_text() == "mine"
    assert store.verify(info.id).ok
    assert store.collect_orphans() == ()


def test_collecting_leaves_what_a_live_writer_holds(store: SnapshotStore) -> None:
    folder = store.root / "20260101T000000Z-deadbeef"
    with FolderClaim.create(folder, files=DurableFiles()):
        (folder / "datasets-00000-0123456789abcdef.jsonl.zst").write_bytes(b"half")

        assert store.collect_orphans() == ()
        assert len(list(folder.iterdir())) == 2

    assert store.collect_orphans() == (folder.name,)


def test_giving_up_a_claim_leaves_the_claim_of_a_later_writer(tmp_path: Path) -> None:
    folder = tmp_path / "20260101T000000Z-deadbeef"
    files = DurableFiles()
    early = FolderClaim.create(folder, files=files)
    (folder / CLAIM_NAME).unlink()
    with FolderClaim.create(folder, files=files):
        early.release()

        assert FolderClaim.try_existing(folder, files=files) is None


def test_a_dead_writers_folder_is_taken_over(store: SnapshotStore) -> None:
    info = store.write(sample_snapshot(), at=AT)
    (store.root / info.id / "manifest.json").unlink()
    (store.root / info.id / ".tmp-left").write_bytes(b"half")

    assert store.write(sample_snapshot(), at=AT).id == info.id
    assert store.verify(info.id).ok
    assert not (store.root / info.id / ".tmp-left").exists()


_NAMES = st.text(min_size=1, max_size=12).filter(lambda text: text.isprintable())


@given(st.dictionaries(_NAMES, st.dictionaries(_NAMES, _NAMES, max_size=2), max_size=6))
def test_any_names_and_properties_come_back_equal(
    tmp_path_factory: pytest.TempPathFactory, names: dict[str, dict[str, str]]
) -> None:
    datasets = {
        Urn.of("files", name): LumosDataset.from_json(
            {
                "urn": Urn.of("files", name),
                "name": name,
                "platform": "files",
                "properties": properties,
                "documentation": {"description": "\n".join([name, *properties])},
            }
        )
        for name, properties in names.items()
    }
    snapshot = Snapshot(
        snapshot_schema_version=1,
        lumos_version="0.1.0",
        export_timestamp=AT,
        source_platform="files",
        datasets=tuple(datasets.values()),
        extensions={name: dict(properties) for name, properties in names.items()},
    ).with_derived_parts()
    store = SnapshotStore(tmp_path_factory.mktemp("store"), part_bytes=200)

    assert store.read(store.write(snapshot, at=AT).id) == snapshot


def test_writers_at_the_same_time_do_not_disturb_each_other(store: SnapshotStore) -> None:
    snapshots = [sample_snapshot(20, note=str(number % 3)) for number in range(12)]

    with ThreadPoolExecutor(6) as pool:
        infos = list(pool.map(lambda snapshot: store.write(snapshot, at=AT), snapshots))

    assert {info.id for info in infos} == {info.id for info in store.list()}
    assert len({info.content_hash for info in store.list()}) == 3
    assert [info.sequence for info in store.list()] == [*range(1, len(store.list()) + 1)]
    for info, snapshot in zip(infos, snapshots, strict=True):
        assert store.read(info.id) == snapshot
    assert store.collect_orphans() == ()


def _files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_manifest_renders_to_the_bytes_it_was_read_from(store: SnapshotStore) -> None:
    info = store.write(sample_snapshot(), at=AT)
    content = (store.root / info.id / "manifest.json").read_bytes()

    assert Manifest.parse(content, where=info.id).render() == content
