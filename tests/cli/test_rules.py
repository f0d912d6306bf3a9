"""`lumos rules` as people and programs read it."""

from __future__ import annotations

from command_line import Lumos, checked
from lumos.core.changes import PROFILES, RULES


def test_rules_lists_every_rule_with_its_level_under_every_profile(lumos: Lumos) -> None:
    listing = checked(lumos("rules", "--json"), "rules")
    assert [rule["id"] for rule in listing["rules"]] == [rule.id for rule in RULES]
    assert listing["profiles"] == dict(PROFILES)
    assert all(set(rule["levels"]) == set(PROFILES) for rule in listing["rules"])

    text = lumos("rules").stdout
    assert all(f" {rule.id}: {rule.title} (" in text for rule in RULES)
    assert text.endswith(f"{len(RULES)} rules under the profile lumos\n")


def test_a_profile_or_its_alias_decides_the_level_that_is_shown(lumos: Lumos) -> None:
    levels = {
        profile: checked(lumos("rules", "null.tightened", "--profile", profile, "--json"), "rules")
        for profile in ("lumos", "readers", "FORWARD")
    }
    assert [levels[name]["rules"][0]["level"] for name in levels] == [
        "BREAKING",
        "NON_BREAKING",
        "NON_BREAKING",
    ]
    assert levels["FORWARD"]["profile"] == "readers"


def test_one_rule_is_explained(lumos: Lumos) -> None:
    lines = lumos("rules", "type.widened").stdout.splitlines()
    assert lines[0] == "type.widened: A type was widened"
    assert "  On the way back: type.narrowed" in lines
    assert any(line.startswith("    writers     NON_BREAKING  ") for line in lines)
    assert any(line.startswith("    delta       BREAKING, by the case  ") for line in lines)
    assert "  No way back: " in lumos("rules", "owner.none_left").stdout


def test_the_beginning_of_some_rules_lists_them(lumos: Lumos) -> None:
    listing = checked(lumos("rules", "sla", "--json"), "rules")
    assert {rule["id"].partition(".")[0] for rule in listing["rules"]} == {"sla"}
    assert len(listing["rules"]) > 3


def test_a_rule_or_profile_that_does_not_exist_is_refused_with_the_nearest(lumos: Lumos) -> None:
    refused = lumos("rules", "field.remove")
    assert refused.exit_code == 2
    assert "did you mean field.removed?" in refused.error_line
    assert lumos("rules", "--profile", "nobody").exit_code == 2
