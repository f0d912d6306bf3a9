"""Before anything is written, it is counted what will become of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from lumos.core.platform.fidelity import CONCEPTS, Fidelity, fidelity_of
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.platform.interface import Capability
from lumos.core.store.database import StateDatabase
from lumos.feature.snapshot.fidelity_count import counted_fidelity
from lumos.feature.snapshot.source import LoadedSource
from lumos.testing.platform_samples import rich_dataset
from snapshot_samples import sample_snapshot


class Poor(EmbeddedHandler):
    """A catalog that holds little."""

    name = "poor"
    capabilities = frozenset({Capability.LINEAGE})
    FIDELITY: ClassVar[Mapping[str, Fidelity]] = {
        "dataset": Fidelity.NATIVE,
        "field": Fidelity.TRANSFORMED,
        "field_pii": Fidelity.STASHED,
        "lineage_edge": Fidelity.NATIVE,
        "user": Fidelity.NATIVE,
    }


@pytest.fixture
def database(tmp_path: Path) -> Iterator[StateDatabase]:
    with StateDatabase.open(tmp_path / "lumos.db") as opened:
        yield opened


def test_a_catalog_without_a_table_keeps_all_that_its_capabilities_name(
    database: StateDatabase,
) -> None:
    report = counted_fidelity(LoadedSource(sample_snapshot(3), "sample"), EmbeddedHandler(database))
    assert {row.fidelity for row in report.rows} == {Fidelity.NATIVE}
    counts = {row.concept: row.count for row in report.rows}
    assert counts["dataset"] == 3
    assert counts["field"] == 9
    assert counts["owner"] == 6
    assert counts["lineage_edge"] == 2
    assert counts["user"] == counts["group"] == counts["tag_definition"] == counts["job"] == 1


def test_what_a_table_does_not_name_or_no_capability_carries_is_dropped(
    database: StateDatabase,
) -> None:
    snapshot = sample_snapshot(2)
    rich = snapshot.model_copy(update={"datasets": (*snapshot.datasets, rich_dataset())})
    report = counted_fidelity(LoadedSource(rich, "rich"), Poor(database))
    fates = {row.concept: (row.fidelity, row.count) for row in report.rows}
    assert fates["dataset"] == (Fidelity.NATIVE, 3)
    assert fates["field"] == (Fidelity.TRANSFORMED, 9)
    assert fates["field_pii"] == (Fidelity.STASHED, 1)
    assert fates["nested_field"] == (Fidelity.DROPPED, 2)
    assert fates["user"] == (Fidelity.DROPPED, 1)  # named, but it keeps no entities
    assert report.total(Fidelity.NATIVE) == 3 + 1
    assert "deprecation" not in fates


def test_only_known_concepts_can_be_looked_up_and_each_has_a_fate(database: StateDatabase) -> None:
    assert len(set(CONCEPTS)) == len(CONCEPTS)
    assert {fidelity_of(Poor(database), concept) for concept in CONCEPTS} == set(Fidelity)
