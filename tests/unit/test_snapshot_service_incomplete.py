from __future__ import annotations

import pytest

from lumos.core.changes import diff_datasets
from lumos.core.models import Snapshot, with_parts
from lumos.feature.snapshot.diff import SnapshotDiff, diff_snapshots
from lumos.feature.snapshot.source import LoadedSource
from snapshot_samples import sample_snapshot


def _diff(old: Snapshot, new: Snapshot) -> SnapshotDiff:
    sources = (LoadedSource(old, "old"), LoadedSource(new, "new"))
    return diff_snapshots(*sources, diff_datasets=diff_datasets)


def _without_edges(snapshot: Snapshot, *, complete: bool) -> Snapshot:
    parts = {"lineage_edges": (), "complete": complete}
    return snapshot.model_copy(update=parts).with_derived_parts()


def test_an_edge_that_an_incomplete_snapshot_lacks_is_no_change_of_a_dataset() -> None:
    old = sample_snapshot(4)

    found = _diff(old, _without_edges(old, complete=False))

    assert (found.changes, found.changed) == ((), ())
    assert found.sections["lineage_edges"].unobserved == 3
    assert found.is_empty


def test_an_edge_that_a_complete_snapshot_lacks_is_removed() -> None:
    old = sample_snapshot(4)

    found = _diff(old, _without_edges(old, complete=True))

    assert {change.rule for change in found.changes} == {"lineage.edge.removed"}
    assert len(found.changed) == 3


@pytest.mark.parametrize("complete", [True, False])
def test_what_an_incomplete_snapshot_does_show_is_compared(complete: bool) -> None:
    old = sample_snapshot(4)
    bare = _without_edges(old, complete=complete)
    first, *rest = bare.datasets
    new = bare.model_copy(update={"datasets": (with_parts(first, tags=("gold",)), *rest)})

    rules = {change.rule for change in _diff(old, new).changes if change.dataset == first.urn}

    assert rules == {"tag.added", "tag.removed"}


def test_an_edge_that_an_incomplete_snapshot_adds_is_a_change() -> None:
    full = sample_snapshot(4)

    found = _diff(_without_edges(full, complete=True), full.model_copy(update={"complete": False}))

    assert {change.rule for change in found.changes} == {"lineage.edge.added"}
