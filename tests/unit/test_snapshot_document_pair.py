"""Two documents loaded side by side are what they are when loaded one by one."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.core.models import Snapshot, load_snapshot
from lumos.feature.snapshot.documents.document_pair import loaded_pair
from lumos.feature.snapshot.export import export_document
from lumos.feature.snapshot.source import LoadedSource
from snapshot_samples import sample_dataset, sample_snapshot
from strategies import snapshots


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("documents")


def written(path: Path, snapshot: Snapshot | dict[str, object]) -> Path:
    document = snapshot.to_json() if isinstance(snapshot, Snapshot) else snapshot
    path.write_bytes(orjson.dumps(document))
    return path


@given(snapshots(), snapshots(), st.data())
def test_both_are_as_if_loaded_alone(
    folder: Path, old: Snapshot, other: Snapshot, data: st.DataObject
) -> None:
    kept = [each for each in old.datasets if data.draw(st.booleans())]
    datasets = {each.urn: each for each in (*kept, *other.datasets)}
    new = other.model_copy(update={"datasets": tuple(datasets.values())})
    paths = written(folder / "old.json", old), written(folder / "new.json", new)

    pair = loaded_pair(*paths)

    assert pair is not None
    for source, path in zip(pair, paths, strict=True):
        assert source.load() == load_snapshot(orjson.loads(path.read_bytes()))


def test_datasets_that_did_not_change_are_the_same_objects(tmp_path: Path) -> None:
    datasets = [sample_dataset(1), sample_dataset(2), sample_dataset(3)]
    old = sample_snapshot(0).model_copy(update={"datasets": tuple(datasets)})
    edited = sample_dataset(2, note="edited")
    new = old.model_copy(update={"datasets": (datasets[0], edited, datasets[2])})

    pair = loaded_pair(written(tmp_path / "old.json", old), written(tmp_path / "new.json", new))

    assert pair is not None
    before, after = (source.load().datasets for source in pair)
    assert [one is other for one, other in zip(before, after, strict=True)] == [True, False, True]
    assert after[1] == edited


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"{}", b'{"datasets": 1}', b'{"datasets": [{}]}', b'{"datasets": ["x"]}'],
)
@pytest.mark.parametrize("first", [True, False])
def test_what_is_no_snapshot_is_left_to_others(tmp_path: Path, content: bytes, first: bool) -> None:
    good = written(tmp_path / "good.json", sample_snapshot(2))
    bad = tmp_path / "bad.json"
    bad.write_bytes(content)

    assert loaded_pair(*((bad, good) if first else (good, bad))) is None
    assert loaded_pair(good, tmp_path / "missing.json") is None


def test_a_sealed_document_is_left_to_its_seal(tmp_path: Path) -> None:
    plain = written(tmp_path / "plain.json", sample_snapshot(2))
    sealed = tmp_path / "sealed.json"
    export_document(LoadedSource(sample_snapshot(2), "memory"), sealed)

    assert loaded_pair(plain, sealed) is None
    assert loaded_pair(plain, plain) is not None


def test_two_datasets_of_one_urn_are_left_to_others(tmp_path: Path) -> None:
    dataset = sample_dataset(1).to_json()
    old = written(tmp_path / "old.json", {"datasets": [dataset]})
    new = written(tmp_path / "new.json", {"datasets": [{**dataset, "tags": ["a"]}, dataset]})

    assert loaded_pair(old, new) is None
