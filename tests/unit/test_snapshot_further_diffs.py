"""What a diff tells besides contracts: what was not seen, steps of lineage, observations."""

from __future__ import annotations

from pathlib import Path

import pytest

from lumos.core.changes import ChangePolicy
from lumos.core.models import ChangeLevel, LineageEdge, LumosDataset, Snapshot
from lumos.core.store.snapshots.snapshot_store import SnapshotStore
from lumos.feature.snapshot.diff import SnapshotDiff, change_as_json, diff_snapshots
from lumos.feature.snapshot.pair_diff import FurtherDiffs
from lumos.feature.snapshot.source import LoadedSource, SnapshotSource, open_source
from snapshot_samples import AT, sample_dataset, sample_snapshot

Pair = tuple[SnapshotSource, SnapshotSource]


@pytest.fixture(params=["loaded", "stored"])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def sides(old: Snapshot, new: Snapshot, *, form: str, folder: Path) -> Pair:
    if form == "loaded":
        return LoadedSource(old, "old"), LoadedSource(new, "new")
    sources = []
    for name, snapshot in (("old", old), ("new", new)):
        store = SnapshotStore(folder / name, part_bytes=4_000)
        store.write(snapshot, at=AT)
        sources.append(open_source("latest", store=store))
    return sources[0], sources[1]


def diff(
    pair: Pair, *, policy: ChangePolicy | None = None, observations: bool = False
) -> SnapshotDiff:
    judge = policy or ChangePolicy()
    further = FurtherDiffs(judge.judge_edges, judge.judge_observations if observations else None)
    return diff_snapshots(*pair, diff_datasets=judge.judge, further=further)


def with_mappings(snapshot: Snapshot, *sources: str, edge: int = 0) -> Snapshot:
    """Return the snapshot with a step of lineage whose column `id` is made from others."""
    edges = [*snapshot.lineage_edges]
    mappings = [{"upstream_column": name, "downstream_column": "id"} for name in sources]
    edges[edge] = LineageEdge.from_json({**edges[edge].to_json(), "column_mappings": mappings})
    return snapshot.model_copy(update={"lineage_edges": tuple(edges)}).with_derived_parts()


def with_rows(snapshot: Snapshot, rows: int) -> Snapshot:
    first, *rest = snapshot.datasets
    statistics = {"row_count": rows}
    seen = LumosDataset.from_json({**first.to_json(), "statistics": statistics})
    return snapshot.model_copy(update={"datasets": (seen, *rest)})


def test_a_dataset_that_was_not_seen_is_told_as_that_and_weighs_nothing(
    form: str, tmp_path: Path
) -> None:
    pair = sides(sample_snapshot(5), sample_snapshot(4, complete=False), form=form, folder=tmp_path)

    found = diff(pair)

    (change,) = found.changes
    assert (change.rule, change.level) == ("dataset.unobserved", ChangeLevel.INFORMATIONAL)
    assert found.unobserved == (change.dataset,) == (sample_dataset(4).urn,)
    assert (found.removed, found.changed) == ((), ())
    assert found.is_empty
    assert found.totals.weighed == 0


def test_a_policy_may_make_more_of_what_was_not_seen(form: str, tmp_path: Path) -> None:
    pair = sides(sample_snapshot(5), sample_snapshot(4, complete=False), form=form, folder=tmp_path)

    found = diff(pair, policy=ChangePolicy(rules={"dataset.unobserved": ChangeLevel.BREAKING}))

    assert found.worst_level is ChangeLevel.BREAKING
    assert found.totals.weighed == 1
    assert not found.is_empty


def test_a_column_that_is_made_from_others_is_a_change_of_its_dataset(
    form: str, tmp_path: Path
) -> None:
    snapshot = sample_snapshot(4)
    old, new = with_mappings(snapshot, "gross"), with_mappings(snapshot, "net", "tax")

    found = diff(sides(old, new, form=form, folder=tmp_path))

    (change,) = found.changes
    assert (change.dataset, change.path) == (sample_dataset(1).urn, "id")
    assert change.rule == "lineage.column.changed"
    upstream = sample_dataset(0).urn
    told = change_as_json(change)
    assert told["old"] == {"upstream_urn": upstream, "columns": ["gross"]}
    assert told["new"] == {"upstream_urn": upstream, "columns": ["net", "tax"]}
    assert told["message"] == (
        f"field 'id' is made from (net, tax) instead of (gross) of '{upstream}'"
    )
    assert found.sections["lineage_edges"].changed == 1
    assert not found.is_empty


def test_steps_that_lead_to_one_dataset_are_told_apart(form: str, tmp_path: Path) -> None:
    snapshot = sample_snapshot(3)
    edges = [edge.to_json() for edge in snapshot.lineage_edges]
    edges[0] |= {"downstream_urn": sample_dataset(2).urn}
    parts = {"lineage_edges": tuple(LineageEdge.from_json(edge) for edge in edges)}
    joined = snapshot.model_copy(update=parts).with_derived_parts()
    old, new = (
        with_mappings(with_mappings(joined, source), source, edge=1) for source in ("gross", "net")
    )

    first, second = diff(sides(old, new, form=form, folder=tmp_path)).changes

    assert first.dataset == second.dataset == sample_dataset(2).urn
    assert first.fingerprint != second.fingerprint
    assert first.message != second.message


def test_changes_of_a_dataset_and_of_what_leads_to_it_stand_together_in_order(
    form: str, tmp_path: Path
) -> None:
    old = with_mappings(sample_snapshot(4), "gross", edge=1)
    new = with_mappings(sample_snapshot(4, note="edited"), "net", edge=1)

    found = diff(sides(old, new, form=form, folder=tmp_path))

    order = [(change.dataset, change.path, change.rule) for change in found.changes]
    assert order == sorted(order)
    assert [rule for urn, _, rule in order if urn == sample_dataset(2).urn] == [
        "lineage.column.changed",
        "doc.added",
    ]


def test_a_policy_judges_steps_of_lineage_too(form: str, tmp_path: Path) -> None:
    snapshot = sample_snapshot(4)
    pair = sides(
        with_mappings(snapshot, "gross"), with_mappings(snapshot, "net"), form=form, folder=tmp_path
    )

    found = diff(pair, policy=ChangePolicy(rules={"lineage.column.changed": ChangeLevel.BREAKING}))

    assert found.worst_level is ChangeLevel.BREAKING


def test_observations_are_compared_only_when_asked_for(form: str, tmp_path: Path) -> None:
    snapshot = sample_snapshot(4)
    pair = sides(with_rows(snapshot, 10), with_rows(snapshot, 20), form=form, folder=tmp_path)

    assert diff(pair).changes == ()
    found = diff(pair, observations=True)

    (change,) = found.changes
    assert (change.rule, change.old, change.new) == ("obs.stats.rows", 10, 20)
    assert change.dataset == sample_dataset(0).urn
    assert found.changed == ()


def test_observations_are_told_beside_a_change_of_the_contract(form: str, tmp_path: Path) -> None:
    old, new = sample_snapshot(1), sample_snapshot(1, note="edited")
    pair = sides(with_rows(old, 10), with_rows(new, 20), form=form, folder=tmp_path)

    found = diff(pair, observations=True)

    assert {change.rule for change in found.changes} == {"obs.stats.rows", "doc.added"}
    assert found.changed == (sample_dataset(0).urn,)


def with_edge(snapshot: Snapshot, **parts: object) -> Snapshot:
    """Return the snapshot with one more edge, into its first dataset."""
    urns = [each.urn for each in snapshot.datasets]
    known = {edge.key[:2] for edge in snapshot.lineage_edges}
    upstream = next(urn for urn in urns[1:] if (urn, urns[0]) not in known)
    document = {"upstream_urn": upstream, "downstream_urn": urns[0], **parts}
    edges = (*snapshot.lineage_edges, LineageEdge.from_json(document))
    return snapshot.model_copy(update={"lineage_edges": edges}).with_derived_parts()


def test_an_inferred_edge_is_informational_and_raises_no_version(form: str, tmp_path: Path) -> None:
    plain = sample_snapshot(12).with_derived_parts()
    inferred = with_edge(plain, basis="INFERRED", provenance="sql")

    found = diff(sides(plain, inferred, form=form, folder=tmp_path / "there"))
    back = diff(sides(inferred, plain, form=form, folder=tmp_path / "back"))

    assert [(each.rule, each.level, each.bump) for each in found.changes] == [
        ("lineage.inferred.added", ChangeLevel.INFORMATIONAL, "NONE")
    ]
    assert [each.rule for each in back.changes] == ["lineage.inferred.removed"]
    assert found.changed == ()
    assert found.sections["lineage_edges"].added == 1
    first = plain.datasets[0].urn
    hashes = [
        next(each.contract_hash for each in snapshot.datasets if each.urn == first)
        for snapshot in (plain, inferred, with_edge(plain, basis="FOUND"))
    ]
    assert hashes[0] == hashes[1] != hashes[2]


def test_an_edge_without_a_basis_is_a_declared_one(form: str, tmp_path: Path) -> None:
    plain = sample_snapshot(12).with_derived_parts()
    declared = with_edge(plain)

    assert declared.lineage_edges[-1].to_json().keys() & {"basis"} == set()
    found = diff(sides(plain, declared, form=form, folder=tmp_path))
    assert [each.rule for each in found.changes] == ["lineage.edge.added"]
