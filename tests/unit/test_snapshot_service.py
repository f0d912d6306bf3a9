from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from lumos.core.errors import (
    CorruptSnapshotError,
    InputUnreadableError,
    InvalidModelError,
    SnapshotNotFoundError,
    StateError,
)
from lumos.core.models import (
    Bump,
    Change,
    ChangeLevel,
    ChangeScope,
    LumosDataset,
    Snapshot,
)
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from lumos.feature.snapshot.diff import SnapshotDiff, diff_snapshots
from lumos.feature.snapshot.export import document_chunks, export_document
from lumos.feature.snapshot.source import LoadedSource, SnapshotSource, open_source
from snapshot_samples import AT, sample_dataset, sample_snapshot


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    return SnapshotStore(tmp_path / "snapshots", part_bytes=4_000)


UNSEEN = ("dataset.unobserved", ChangeLevel.INFORMATIONAL)


def simple_diff(
    old: LumosDataset | None, new: LumosDataset | None, *, observed: bool = True
) -> tuple[Change, ...]:
    """One change per pair, which tells what the pair was."""
    dataset = new or old
    assert dataset is not None
    if old and new and old.contract_hash == new.contract_hash:
        return ()
    rule, level = (
        ("added", ChangeLevel.NON_BREAKING)
        if old is None
        else (("removed", ChangeLevel.BREAKING) if observed else UNSEEN)
        if new is None
        else ("changed", ChangeLevel.INFORMATIONAL)
    )
    return (
        Change(
            dataset=dataset.urn,
            path="",
            rule=rule,
            level=level,
            scope=ChangeScope.DATASET,
            bump=Bump.NONE,
            message=rule,
        ),
    )


def diff(old: SnapshotSource, new: SnapshotSource) -> SnapshotDiff:
    return diff_snapshots(old, new, diff_datasets=simple_diff)


def snapshot_of(datasets: dict[int, str], *, complete: bool = True) -> Snapshot:
    return sample_snapshot(0, complete=complete).model_copy(
        update={
            "datasets": tuple(
                sample_dataset(number, note=note) for number, note in sorted(datasets.items())
            )
        }
    )


class TestExport:
    @pytest.mark.parametrize("pretty", [True, False])
    def test_an_export_loads_as_the_same_snapshot(
        self, store: SnapshotStore, tmp_path: Path, pretty: bool
    ) -> None:
        snapshot = sample_snapshot()
        store.write(snapshot, at=AT)
        target = tmp_path / "backup.json"

        export_document(open_source("latest", store=store), target, pretty=pretty)

        assert open_source(str(target), store=store).load() == snapshot

    def test_both_forms_export_to_the_same_bytes(
        self, store: SnapshotStore, tmp_path: Path
    ) -> None:
        snapshot = sample_snapshot(200)
        store.write(snapshot, at=AT)
        stored = open_source("latest", store=store)
        assert stored.bucket_count() > 4

        for pretty in (True, False):
            texts = {
                b"".join(document_chunks(source, tmp_path, pretty=pretty, memory_bytes=size))
                for source in (stored, LoadedSource(snapshot, "memory"))
                for size in (1_000, 10_000_000)
            }
            assert len(texts) == 1

    def test_an_imported_export_is_stored_as_the_same_content(
        self, store: SnapshotStore, tmp_path: Path
    ) -> None:
        info = store.write(sample_snapshot(), at=AT)
        target = tmp_path / "backup.json"
        export_document(open_source("latest", store=store), target)
        other = SnapshotStore(tmp_path / "other")

        again = other.write(open_source(str(target), store=other).load(), at=AT)

        assert again.content_hash == info.content_hash

    def test_the_document_is_sorted_and_readable(
        self, store: SnapshotStore, tmp_path: Path
    ) -> None:
        store.write(sample_snapshot(), at=AT)

        text = b"".join(document_chunks(open_source("latest", store=store), tmp_path))
        document = orjson.loads(text)

        urns = [dataset["urn"] for dataset in document["datasets"]]
        assert urns == sorted(urns)
        assert list(document)[:6] == [
            "snapshot_schema_version",
            "lumos_version",
            "export_timestamp",
            "source_platform",
            "complete",
            "statistics",
        ]
        assert orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n" == text

    def test_an_empty_snapshot_is_a_document_too(
        self, store: SnapshotStore, tmp_path: Path
    ) -> None:
        empty = Snapshot(
            snapshot_schema_version=1,
            lumos_version="0.1.0",
            export_timestamp=AT,
            source_platform="none",
        )
        target = tmp_path / "empty.json"

        export_document(LoadedSource(empty, "empty"), target)

        assert open_source(str(target), store=store).load() == empty

    def test_a_link_is_written_through(self, tmp_path: Path) -> None:
        link = tmp_path / "link.json"
        link.symlink_to(tmp_path / "real.json")

        export_document(LoadedSource(sample_snapshot(2), "sample"), link)

        assert link.is_symlink()
        assert (tmp_path / "real.json").is_file()

    def test_a_missing_folder_is_named_by_the_file_asked_for(self, tmp_path: Path) -> None:
        target = tmp_path / "none" / "backup.json"

        with pytest.raises(StateError) as caught:
            export_document(LoadedSource(sample_snapshot(2), "sample"), target)

        assert f"{target}: No such file" in caught.value.message

    def test_a_pipe_is_written_to_and_not_replaced(self, tmp_path: Path) -> None:
        target = Path("/dev/null")

        export_document(LoadedSource(sample_snapshot(2), "sample"), target)

        assert target.is_char_device()


class TestOpen:
    def test_every_form_loads_as_the_same_snapshot(
        self, store: SnapshotStore, tmp_path: Path
    ) -> None:
        snapshot = sample_snapshot()
        info = store.write(snapshot, at=AT)
        document = tmp_path / "backup.json"
        export_document(LoadedSource(snapshot, "memory"), document)
        moved = tmp_path / "moved"
        (store.root / info.id).rename(moved)
        store.write(snapshot, at=AT)

        for reference in ("latest", info.id, str(moved), f"{moved}/manifest.json", str(document)):
            assert open_source(reference, store=store).load() == snapshot

    def test_a_missing_file_is_named(self, store: SnapshotStore) -> None:
        with pytest.raises(InputUnreadableError, match=r"nowhere\.json"):
            open_source("nowhere.json", store=store)

    @pytest.mark.parametrize("name", ["a\0b", "x" * 5_000])
    def test_a_name_that_no_file_can_have_is_refused(self, store: SnapshotStore, name: str) -> None:
        with pytest.raises(InputUnreadableError):
            open_source(name, store=store)

    def test_an_unknown_id_is_named(self, store: SnapshotStore) -> None:
        with pytest.raises(SnapshotNotFoundError, match="20200101T000000Z-00000000"):
            open_source("20200101T000000Z-00000000", store=store)

    def test_a_folder_that_is_no_snapshot_is_named(
        self, store: SnapshotStore, tmp_path: Path
    ) -> None:
        with pytest.raises(InputUnreadableError, match="no snapshot"):
            open_source(str(tmp_path), store=store)

    def test_text_that_is_no_json_is_refused_with_its_place(
        self, store: SnapshotStore, tmp_path: Path
    ) -> None:
        path = tmp_path / "broken.json"
        path.write_text('{"datasets": [\n  {"token": "hunter2"')

        with pytest.raises(InvalidModelError, match="line 2") as caught:
            open_source(str(path), store=store)

        assert "hunter2" not in caught.value.message


_SIDES = st.dictionaries(st.integers(0, 40), st.sampled_from(["", "edited"]), max_size=30)


class TestDiff:
    @given(_SIDES, _SIDES, st.sampled_from([300, 2_000, 1 << 20]), st.sampled_from([300, 1 << 20]))
    def test_any_two_forms_of_any_bucket_counts_give_the_same_diff(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        old: dict[int, str],
        new: dict[int, str],
        old_part: int,
        new_part: int,
    ) -> None:
        root = tmp_path_factory.mktemp("stores")
        sides = []
        for name, datasets, part in (("old", old, old_part), ("new", new, new_part)):
            store = SnapshotStore(root / name, part_bytes=part)
            store.write(snapshot_of(datasets), at=AT)
            loaded = LoadedSource(snapshot_of(datasets), name)
            sides.append((open_source("latest", store=store), loaded))

        for before in sides[0]:
            for after in sides[1]:
                found = diff(before, after)
                assert found.added == tuple(
                    sample_dataset(n).urn for n in sorted(new.keys() - old.keys())
                )
                assert found.removed == tuple(
                    sample_dataset(n).urn for n in sorted(old.keys() - new.keys())
                )
                assert found.changed == tuple(
                    sample_dataset(n).urn
                    for n in sorted(old.keys() & new.keys())
                    if old[n] != new[n]
                )
                assert len(found.changes) == sum(
                    len(group) for group in (found.added, found.removed, found.changed)
                )

    def test_what_an_incomplete_snapshot_lacks_is_unobserved_and_not_removed(self) -> None:
        old = LoadedSource(snapshot_of({1: "", 2: "", 3: ""}), "old")
        new = LoadedSource(snapshot_of({1: "edited", 4: ""}, complete=False), "new")

        found = diff(old, new)

        assert found.removed == ()
        assert found.unobserved == (sample_dataset(2).urn, sample_dataset(3).urn)
        unseen, _ = UNSEEN
        assert [change.rule for change in found.changes] == ["changed", unseen, unseen, "added"]

    def test_lineage_that_an_incomplete_snapshot_lacks_is_unobserved(self) -> None:
        old = LoadedSource(sample_snapshot(5), "old")
        new = LoadedSource(sample_snapshot(3, complete=False), "new")

        edges = diff(old, new).sections["lineage_edges"]

        assert (edges.old, edges.new, edges.removed, edges.unobserved) == (4, 2, 0, 2)

    def test_equal_parts_are_not_even_read(self, store: SnapshotStore) -> None:
        info = store.write(sample_snapshot(), at=AT)
        source = open_source(info.id, store=store)
        for path in (store.root / info.id).glob("*.zst"):
            path.unlink()

        assert diff(source, source).is_empty

    def test_a_damaged_part_stops_the_diff(self, store: SnapshotStore, tmp_path: Path) -> None:
        other = SnapshotStore(tmp_path / "other", part_bytes=4_000)
        other.write(sample_snapshot(note="edited"), at=AT)
        info = store.write(sample_snapshot(), at=AT)
        part = next((store.root / info.id).glob("datasets-*"))
        part.write_bytes(part.read_bytes()[:-1])

        with pytest.raises(CorruptSnapshotError, match=part.name):
            diff(open_source("latest", store=store), open_source("latest", store=other))

    def test_hashes_of_another_formula_are_not_taken_for_changes(self) -> None:
        source = LoadedSource(snapshot_of({1: ""}), "new")

        class OldFormula(LoadedSource):
            @override
            def bucket_lines(self, bucket: int, *, section: str = "datasets") -> list[bytes]:
                lines = super().bucket_lines(bucket, section=section)
                digest = sample_dataset(1).contract_hash.encode()
                return [line.replace(digest, b"0" * 64) for line in lines]

        assert diff(OldFormula(snapshot_of({1: ""}), "old"), source).is_empty

    def test_the_json_form_has_changes_and_a_summary(self) -> None:
        old = LoadedSource(snapshot_of({1: "", 2: "", 3: ""}), "old")
        new = LoadedSource(snapshot_of({1: "", 2: "edited", 4: ""}), "new")

        document = diff(old, new).as_json()

        changes = document["changes"]
        assert isinstance(changes, list)
        assert isinstance(changes[0], dict)
        assert {*changes[0]} == {
            "dataset",
            "path",
            "rule",
            "level",
            "scope",
            "bump",
            "old",
            "new",
            "caution",
            "widening",
            "direction",
            "possible_rename_of",
            "rename_confidence",
            "passes_under",
            "policy",
            "message",
            "fingerprint",
        }
        summary = document["summary"]
        assert isinstance(summary, dict)
        assert summary["levels"] == {"BREAKING": 1, "NON_BREAKING": 1, "INFORMATIONAL": 1}
        assert summary["worst_level"] == "BREAKING"
        assert summary["datasets"] == {
            "old": 3,
            "new": 3,
            "added": 1,
            "removed": 1,
            "changed": 1,
            "unobserved": 0,
            "unchanged": 1,
        }
        assert orjson.loads(orjson.dumps(document)) == document

    def test_other_sections_are_counted(self, store: SnapshotStore) -> None:
        before = sample_snapshot()
        edges = before.lineage_edges
        edited = edges[0].model_copy(update={"provenance": "sql"})
        after = before.model_copy(update={"lineage_edges": (edited, *edges[2:])})
        store.write(before, at=AT)

        found = diff(open_source("latest", store=store), LoadedSource(after, "after"))

        lineage = found.sections["lineage_edges"]
        assert (lineage.added, lineage.removed, lineage.changed) == (0, 1, 1)
        assert (lineage.old, lineage.new) == (39, 38)
        tags = found.sections["tags"]
        assert (tags.old, tags.new, tags.changed) == (1, 1, 0)
