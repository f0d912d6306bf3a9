"""Which catalog a sync goes to, and that it is known again."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import JANUARY, Lumos, checked
from doubles.datahub_server import datahub_double

SETTINGS = "platform_config:\n  datahub:\n    gms_server: {}\n"


def test_a_catalog_is_known_again_however_it_is_asked(lumos: Lumos) -> None:
    with datahub_double() as (url, _):
        Path("lumos.yaml").write_text(SETTINGS.format(url), "utf-8")
        lumos("import", JANUARY)
        assert "sent 17 writes" in lumos("sync", "--all", "--output", "datahub").stdout

        patient = SETTINGS.format(f"{url}/") + "    workers: 2\n    timeout_seconds: 20\n"
        Path("lumos.yaml").write_text(patient, "utf-8")
        again = checked(lumos("sync", "--all", "--output", "datahub", "--json"), "sync")

    assert again["kinds"]["dataset"]["unchanged"] == 5
    assert again["writes"] == 0


@pytest.mark.parametrize(
    "own",
    ["embedded", "sqlite:///.lumos/lumos.db", "sqlite:///link.db", "sqlite:///hard-link.db"],
)
def test_a_catalog_is_not_synced_to_itself(lumos: Lumos, own: str) -> None:
    lumos("import", JANUARY)
    Path("link.db").symlink_to(".lumos/lumos.db")
    Path("hard-link.db").hardlink_to(".lumos/lumos.db")

    refused = lumos("sync", "--all", "--output", own)

    assert refused.exit_code == 2
    assert "writes another one" in refused.error_line


@pytest.mark.parametrize(
    "command",
    [
        ("sync", "--all", "--output", ""),
        ("sync", "--all", "--output", " ", "--dry-run"),
        ("export", "--platform", "", "--output", "backup.json"),
        ("import", JANUARY, "--platform", ""),
        ("snapshot", "create", "--platform", ""),
    ],
)
def test_an_empty_name_is_no_catalog(lumos: Lumos, command: tuple[str, ...]) -> None:
    lumos("import", JANUARY)

    refused = lumos(*command)

    assert refused.exit_code == 2
    assert "the name of the catalog is empty" in refused.error_line
    assert not Path("backup.json").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("sync", "--all", "--output", "sqlite:///a.db", "-o", "sqlite:///b.db"),
        ("migrate", "--from", "embedded", "--to", "sqlite:///a.db", "--to=sqlite:///b.db"),
        ("export", "--output", "a.json", "--output", "b.json"),
        ("import", "--input", JANUARY, "--platform", "atlas", "--platform", "embedded"),
        ("diff", "--source", "latest", "--source", JANUARY, "--target", JANUARY),
    ],
)
def test_a_second_catalog_or_file_is_refused_and_not_passed_over(
    lumos: Lumos, command: tuple[str, ...]
) -> None:
    lumos("import", JANUARY)

    refused = lumos(*command)

    assert refused.exit_code == 2
    assert "was given 2 times" in refused.error_line
    assert not [*Path().glob("?.*")]


def test_of_other_options_the_last_one_counts(lumos: Lumos) -> None:
    lumos("import", JANUARY)
    found = lumos("search", "orders", "--limit", "5", "--limit", "1", "--json")
    assert len(checked(found, "search")["hits"]) == 1


def test_a_sync_of_nothing_says_that_there_is_nothing(lumos: Lumos) -> None:
    assert lumos("init").exit_code == 0
    empty = lumos("sync", "--all", "--output", "sqlite:///team.db")
    assert (empty.exit_code, empty.stdout) == (
        0,
        "sent 0 writes to embedded\n"
        "[warn] the state holds no such dataset: fill it with lumos ingest or lumos import\n",
    )
