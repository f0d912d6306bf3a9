"""What `lumos diff` says of a move between catalogs."""

from __future__ import annotations

import pytest

from lumos.entry.cli.migration_text import print_migration
from lumos.feature.migration.checks import migration_checks
from lumos.feature.snapshot.canonical_diff import CanonicalDiff, ConceptDifference
from lumos.feature.snapshot.diff import DiffTotals, SectionDiff


def told(capsys: pytest.CaptureFixture[str], **sections: SectionDiff) -> list[str]:
    print_migration(migration_checks(DiffTotals(sections=dict(sections))))
    return capsys.readouterr().out.splitlines()


def test_what_is_there_counts_as_migrated(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, datasets=SectionDiff(old=5, new=6, added=1, changed=2)) == [
        "[ok] 5/5 datasets migrated"
    ]


def test_what_is_gone_or_was_not_seen_does_not_count_as_migrated(
    capsys: pytest.CaptureFixture[str],
) -> None:
    edges = SectionDiff(old=4, new=3, unobserved=1)
    datasets = SectionDiff(old=5, new=3, removed=1, unobserved=1)
    assert told(capsys, datasets=datasets, lineage_edges=edges) == [
        "[warn] 3/5 datasets migrated",
        "[warn] 3/4 lineage edges migrated",
    ]


def test_what_a_person_has_to_map_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    found = CanonicalDiff(
        concepts=(
            ConceptDifference(concept="user", more=4),  # what the target knows besides
            ConceptDifference(concept="tag_definition", lacking=1),
            ConceptDifference(concept="glossary_term", lacking=1, differing=1),
        )
    )
    print_migration(migration_checks(DiffTotals(), found))
    assert capsys.readouterr().out.splitlines() == [
        "[warn] 2 glossary terms require manual mapping",
        "[warn] 1 tag requires manual mapping",
    ]
