"""`lumos diff`: what is shown, what is counted, and what fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import FEBRUARY, JANUARY, Lumos, checked

SIDES = ("diff", "--source", JANUARY, "--target", FEBRUARY)
IGNORED = """
change_policy:
  exceptions:
    - pattern: "*"
      rules: ["*"]
      level: ignore
      reason: nobody reads these yet
"""


def test_filters_choose_what_is_shown_and_not_what_is_counted(lumos: Lumos) -> None:
    everything = lumos(*SIDES).stdout.splitlines()
    breaking = lumos(*SIDES, "--level", "breaking").stdout.splitlines()
    docs = lumos(*SIDES, "--rule", "doc.*", "--rule", "dataset.added").stdout.splitlines()

    assert "6 changes: 2 breaking, 3 non-breaking, 1 informational" in everything
    for shown, count in ((breaking, 2), (docs, 3)):
        assert shown[-1] == f"{count} of them shown"
        assert shown[-2] == everything[-1]
        assert sum(line.startswith("  [") for line in shown) == count
    assert all("[BREAKING]" in line for line in breaking if line.startswith("  ["))


def test_a_filter_never_opens_the_gate(lumos: Lumos) -> None:
    hidden = lumos(*SIDES, "--rule", "no.such.rule", "--fail-on", "breaking", "--json")

    assert hidden.exit_code == 1
    assert hidden.json()["changes"] == []
    assert hidden.json()["summary"]["levels"]["BREAKING"] == 2


def test_details_say_where_what_and_under_which_fingerprint(lumos: Lumos) -> None:
    answer = lumos(*SIDES, "--json").json()
    text = lumos(*SIDES, "--details").stdout

    for change in answer["changes"]:
        assert f"fingerprint: {change['fingerprint']}" in text
    assert "path: total" in text
    assert "value: DECIMAL(12,2) → DECIMAL(14,2)" in text
    assert "not breaking under: writers, iceberg" in text


def test_a_profile_judges_for_others(lumos: Lumos) -> None:
    def breaking(*options: str) -> set[str]:
        changes = lumos(*SIDES, "--json", *options).json()["changes"]
        return {change["rule"] for change in changes if change["level"] == "BREAKING"}

    assert breaking() == {"field.removed", "decimal.precision.up"}
    assert breaking("--profile", "writers") == set()
    assert breaking("--profile", "BACKWARD") == set()
    assert breaking("--profile", "iceberg") == {"field.removed"}
    refused = lumos(*SIDES, "--profile", "reader")
    assert refused.exit_code == 2
    assert "did you mean readers?" in refused.error_line


@pytest.mark.parametrize("gate", ["breaking", "caution", "any"])
def test_what_the_policy_ignores_fails_no_gate(lumos: Lumos, project: Path, gate: str) -> None:
    datasets_alone = project / "february.json"
    sides = ("diff", "--source", JANUARY, "--target", str(datasets_alone))
    text = Path(JANUARY).read_text("utf-8").replace('"precision": 12', '"precision": 14')
    datasets_alone.write_text(text, "utf-8")
    assert lumos(*sides, "--fail-on", gate).exit_code == 1
    (project / "lumos.yaml").write_text(IGNORED)

    ignored = lumos(*sides, "--fail-on", gate)

    assert ignored.exit_code == 0, ignored.stdout
    assert "2 of them ignored by the change policy" in ignored.stdout


def test_what_an_incomplete_side_lacks_is_told_and_fails_no_gate(
    lumos: Lumos, project: Path
) -> None:
    document = json.loads(Path(JANUARY).read_text("utf-8"))
    document["complete"] = False
    document["lineage_edges"], gone = [], document["datasets"].pop()
    (project / "partial.json").write_text(json.dumps(document), "utf-8")
    sides = ("diff", "--source", JANUARY, "--target", "partial.json")

    for gate in ("any", "caution", "breaking"):
        assert lumos(*sides, "--fail-on", gate).exit_code == 0
    answer = checked(lumos(*sides, "--json"), "diff")
    told = lumos(*sides).stdout

    assert answer["unobserved"] == [gone["urn"]]
    assert [change["rule"] for change in answer["changes"]] == ["dataset.unobserved"]
    assert "[INFORMATIONAL] the dataset was not observed; it may still be there" in told
    assert "1 dataset was not observed, so not removed" in told
    assert lumos(*sides[:4], JANUARY, "--fail-on", "any").exit_code == 0


def test_observations_are_compared_when_asked_for(lumos: Lumos, project: Path) -> None:
    document = json.loads(Path(JANUARY).read_text("utf-8"))
    for name, rows in (("old.json", 10), ("new.json", 12)):
        document["datasets"][0]["statistics"] = {"row_count": rows}
        (project / name).write_text(json.dumps(document), "utf-8")
    sides = ("diff", "--source", "old.json", "--target", "new.json")

    assert "0 changes" in lumos(*sides).stdout
    (change,) = checked(lumos(*sides, "--observations", "--json"), "diff")["changes"]
    assert (change["rule"], change["bump"]) == ("obs.stats.rows", "NONE")


def test_a_column_made_from_others_is_told(lumos: Lumos, project: Path) -> None:
    document = json.loads(Path(JANUARY).read_text("utf-8"))
    edge = document["lineage_edges"][0]
    for name, source in (("old.json", "net"), ("new.json", "gross")):
        mapping = {"upstream_column": source, "downstream_column": "total"}
        edge["column_mappings"] = [mapping]
        (project / name).write_text(json.dumps(document), "utf-8")

    answer = checked(
        lumos("diff", "--source", "old.json", "--target", "new.json", "--json"), "diff"
    )

    (change,) = answer["changes"]
    assert (change["dataset"], change["rule"]) == (edge["downstream_urn"], "lineage.column.changed")
    assert answer["summary"]["sections"]["lineage_edges"]["changed"] == 1


def test_the_settings_say_what_fails_unless_the_option_does(lumos: Lumos, project: Path) -> None:
    assert lumos(*SIDES).exit_code == 0
    (project / "lumos.yaml").write_text("change_policy: {fail_on: breaking}\n")

    assert lumos(*SIDES).exit_code == 1
    assert lumos(*SIDES, "--fail-on", "never").exit_code == 0
    assert lumos("diff", "--source", JANUARY, "--target", JANUARY).exit_code == 0
    (project / "lumos.yaml").write_text("change_policy: {fail_on: sometimes}\n")
    assert lumos(*SIDES).exit_code == 2
