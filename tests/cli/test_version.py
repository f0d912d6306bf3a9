"""`lumos version show`, `compute`, `apply` and `history` as people and machines read them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import FEBRUARY, JANUARY, ORDERS, Lumos, checked
from version_states import table, tables, write_snapshot

SIDES = ("--from", JANUARY, "--to", FEBRUARY)


@pytest.fixture
def shop(lumos: Lumos) -> Lumos:
    for snapshot in (JANUARY, FEBRUARY):
        assert lumos("import", snapshot).exit_code == 0
    return lumos


def test_show_tells_the_version_of_a_dataset_and_its_cloud_versions(shop: Lumos) -> None:
    line, mapping = shop("version", "show", "orders").stdout.splitlines()
    assert line.startswith(f"{ORDERS}  2.0.0 ")
    assert line.endswith("S-2  COLUMN_REMOVED")
    assert mapping == "  S-1 = 1.0.0, S-2 = 2.0.0"

    found = checked(shop("version", "show", ORDERS, "--json"), "version-show")
    assert found["mapping"] == [
        {"cloud_version": "S-1", "schema_version": "1.0.0"},
        {"cloud_version": "S-2", "schema_version": "2.0.0"},
    ]
    (only,) = found["datasets"]
    assert (only["version"], only["previous_version"]) == ("2.0.0", "1.0.0")
    assert (only["category"], only["backward_compatible"]) == ("SCHEMA_CHANGE", False)


def test_show_tells_all_versions_in_pages(shop: Lumos) -> None:
    everything = checked(shop("version", "show", "--json"), "version-show")
    assert (len(everything["datasets"]), everything["total"]) == (6, 6)
    lines = shop("version", "show", "--limit", "2").stdout.splitlines()
    last = everything["datasets"][1]["dataset"]
    assert lines[-1] == f"2 of 6; the next: --after {last}"
    rest = shop("version", "show", "--after", last, "--json").json()["datasets"]
    assert rest == everything["datasets"][2:]


def test_compute_between_two_snapshots_counts_each_bump(lumos: Lumos, project: Path) -> None:
    lines = lumos("version", "compute", *SIDES).stdout.splitlines()
    assert f"{ORDERS}  1.0.0 -> 2.0.0  COLUMN_REMOVED  BREAKING" in lines
    assert lines[-1] == (
        "5 datasets would get a version: 1 first, 1 major, 1 minor, 2 patch; 1 unchanged"
    )
    assert not (project / ".lumos").exists()
    found = checked(lumos("version", "compute", *SIDES, "--json"), "version-compute")
    assert found["counts"] == {"first": 1, "major": 1, "minor": 1, "patch": 2, "unchanged": 1}
    assert (found["source"], found["target"], found["dry_run"]) == (JANUARY, FEBRUARY, True)


def test_apply_writes_what_compute_says_and_nothing_twice(lumos: Lumos, project: Path) -> None:
    (project / "lumos.yaml").write_text("features: {schema_tracking: false}\n")
    lumos("import", JANUARY)
    assert lumos("history", ORDERS, "--json").json()["schema_history"] == []

    computed = checked(lumos("version", "compute", "--json"), "version-compute")
    applied = checked(lumos("version", "apply", "--json"), "version-apply")

    assert applied["versions"] == computed["versions"]
    assert applied["counts"] == {"first": 5, "major": 0, "minor": 0, "patch": 0, "unchanged": 0}
    assert applied["report"]["counts"]["done"] == 5
    text = lumos("version", "apply").stdout
    assert text == "0 datasets got a version: 0 first, 0 major, 0 minor, 0 patch; 5 unchanged\n"
    assert lumos("show", ORDERS, "--json").json()["version"] == "1.0.0"


def test_history_is_the_same_under_both_names(shop: Lumos) -> None:
    for options in ((), ("--json",), ("--format", "yaml"), ("--blame",)):
        asked = shop("version", "history", ORDERS, *options)
        assert asked.exit_code == 0
        assert asked == shop("history", ORDERS, *options)


def test_cloud_versions_have_the_prefix_of_the_settings(lumos: Lumos, project: Path) -> None:
    (project / "lumos.yaml").write_text("cloud_version_prefix: R-\n")
    found = lumos("version", "apply", "--from", JANUARY, "--to", FEBRUARY, "--json").json()
    assert {each["cloud_version"] for each in found["versions"]} == {"R-1", "R-2"}
    assert lumos("compare", ORDERS, "R-1", "R-2", "--json").json()["to_version"] == "2.0.0"


def test_strict_fails_on_a_declared_version_that_is_too_low(lumos: Lumos, project: Path) -> None:
    old = write_snapshot(project, [table(0, "a", "b", version="1.0.0")])
    new = write_snapshot(project, [table(0, "a", version="1.1.0")], day=1)
    sides = ("version", "compute", "--from", old, "--to", new)

    assert lumos(*sides).exit_code == 0
    failed = lumos(*sides, "--strict")
    assert failed.exit_code == 1
    assert "version.major_missing" in failed.stdout
    found = lumos(*sides, "--json", "--strict")
    assert found.exit_code == 1
    assert [each["rule"] for each in json.loads(found.stdout)["declared"]] == [
        "version.major_missing"
    ]


def test_gone_and_outdated_datasets_and_a_long_list_are_told(lumos: Lumos, project: Path) -> None:
    days = [write_snapshot(project, tables(3 - day, day), day=day) for day in range(2)]
    lines = lumos("version", "compute", "--from", days[0], "--to", days[1], "--limit", "1").stdout
    assert "... and 1 more; --limit 0 lists all" in lines
    assert f"1 dataset gone from {days[1]}; --retire says so in the history" in lines
    lumos("version", "apply", "--to", days[1])
    late = lumos("version", "compute", "--to", days[0]).stdout
    assert f"2 datasets left alone: the history is newer than {days[0]}" in late


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("version", "show", "nowhere"), 3, "nowhere"),
        (("version", "show", "lumos://s3/nowhere"), 3, "lumos://s3/nowhere"),
        (("version", "compute", "--to", "missing.json"), 3, "missing.json"),
        (("version", "apply", "--to", "missing.json"), 3, "missing.json"),
        (("version", "apply", "--batch-size", "0"), 2, "--batch-size"),
        (("version", "raise"), 2, "raise"),
    ],
)
def test_a_wrong_argument_is_one_line(
    shop: Lumos, arguments: tuple[str, ...], code: int, says: str
) -> None:
    result = shop(*arguments)
    assert result.exit_code == code
    assert says in result.error_line


def test_without_a_catalog_there_is_nothing_to_version(lumos: Lumos) -> None:
    for command in ("show", "compute", "apply"):
        result = lumos("version", command)
        assert result.exit_code == 3
        assert "no catalog" in result.error_line
