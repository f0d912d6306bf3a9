"""A transitive profile in the settings: every command that keeps or compares versions uses it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from command_line import Lumos, checked

EVENTS = "lumos://s3/lake/raw/events"
STEPS = {"a.json": "STRING", "b.json": None, "c.json": "INT64"}


@pytest.fixture
def states(project: Path) -> None:
    """Write three states: a column goes away and comes back as another type."""
    for month, (name, kind) in enumerate(STEPS.items(), start=1):
        note = [{"name": "note", "type": kind}] if kind else []
        dataset = {
            "urn": EVENTS,
            "name": "events",
            "platform": "s3",
            "format": "PARQUET",
            "schema": {"fields": [{"name": "id", "type": "INT64", "nullable": False}, *note]},
        }
        document = {
            "snapshot_schema_version": 1,
            "lumos_version": "0.1.0",
            "export_timestamp": f"2026-0{month}-01T00:00:00Z",
            "source_platform": "embedded",
            "datasets": [dataset],
        }
        (project / name).write_text(json.dumps(document))


def kept_and_compared(lumos: Lumos, project: Path, profile: str) -> set[tuple[str, ...]]:
    """Return what each way to keep three states makes of the last, and what a comparison tells."""
    (project / "lumos.yaml").write_text(f"change_policy: {{profile: {profile}}}\n")
    told = set()
    for command in (("import",), ("version", "apply", "--to")):
        shutil.rmtree(project / ".lumos", ignore_errors=True)
        for state in STEPS:
            assert lumos(*command, state).exit_code == 0
        *_, last = checked(lumos("history", EVENTS, "--json"), "history")["schema_history"]
        compared = checked(lumos("compare", EVENTS, "--json"), "compare")["changes"]
        rules = (change["rule"] for change in compared)
        told.add((last["version"], last["change_type"], *rules))
    return told


@pytest.mark.usefixtures("states")
def test_the_kept_versions_are_looked_at(lumos: Lumos, project: Path) -> None:
    assert kept_and_compared(lumos, project, "full") == {
        ("2.1.0", "COLUMN_ADDED", "field.added.nullable")
    }
    assert kept_and_compared(lumos, project, "full_transitive") == {
        ("3.0.0", "COLUMN_TYPE_CHANGED", "type.changed", "field.added.nullable")
    }


@pytest.mark.usefixtures("states")
def test_comparing_backwards_and_from_the_first_tells_one_step(lumos: Lumos, project: Path) -> None:
    (project / "lumos.yaml").write_text("change_policy: {profile: full_transitive}\n")
    for state in STEPS:
        lumos("import", state)

    for names, rule in ((("latest", "previous"), "field.removed"), (("first",), "type.changed")):
        (change,) = checked(lumos("compare", EVENTS, *names, "--json"), "compare")["changes"]
        assert change["rule"] == rule
