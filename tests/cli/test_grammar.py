"""Commands can be typed as people type them, and their help calls things by their names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Lumos
from lumos.framework_cli import COMMANDS

EXAMPLES = Path(__file__).parents[2] / "examples" / "shop"
JANUARY, FEBRUARY = str(EXAMPLES / "january.json"), str(EXAMPLES / "february.json")


@pytest.fixture
def shop(lumos: Lumos) -> Lumos:
    assert lumos("import", JANUARY).exit_code == 0
    return lumos


@pytest.mark.parametrize(
    "arguments",
    [
        (JANUARY, FEBRUARY),
        ("--source", JANUARY, "--target", FEBRUARY),
        (FEBRUARY, "--source", JANUARY),
        (JANUARY, "--target", FEBRUARY),
    ],
)
def test_both_sides_of_a_diff_are_arguments_or_options(
    lumos: Lumos, arguments: tuple[str, ...]
) -> None:
    expected = lumos("diff", "--source", JANUARY, "--target", FEBRUARY, "--json").json()

    assert lumos("diff", *arguments, "--json").json() == expected


@pytest.mark.parametrize(
    "arguments",
    [
        ("diff", JANUARY),
        ("diff",),
        ("diff", JANUARY, FEBRUARY, "--source", JANUARY),
        ("migrate", "embedded"),
    ],
)
def test_one_side_or_three_are_refused(lumos: Lumos, arguments: tuple[str, ...]) -> None:
    result = lumos(*arguments)

    assert result.exit_code == 2
    assert "give two, as arguments or as --" in result.error_line


def test_catalogs_of_a_migration_are_arguments_too(shop: Lumos) -> None:
    assert shop("migrate", "embedded", "sqlite:///other.db").exit_code == 0
    assert shop("search", "orders", "--platform", "sqlite:///other.db", "--json").json()["total"]


@pytest.mark.parametrize("command", [each.name for each in COMMANDS])
def test_the_help_of_every_command_names_its_values(lumos: Lumos, command: str) -> None:
    asked, option = lumos("help", command), lumos(command, "--help")

    assert (asked.exit_code, option.exit_code) == (0, 0)
    assert asked.stdout == option.stdout
    for odd in ("list[", "<str>", "<int", "<path>", "<float"):
        assert odd not in asked.stdout


def test_help_alone_is_the_list_of_commands(lumos: Lumos) -> None:
    assert lumos("help").stdout == lumos("--help").stdout


def test_an_edited_document_is_taken_where_the_user_says_so(lumos: Lumos, project: Path) -> None:
    assert lumos("export", "--snapshot", JANUARY, "--output", "edited.json").exit_code == 0
    document = json.loads((project / "edited.json").read_bytes())
    document["datasets"][0]["tags"] = ["edited"]
    (project / "edited.json").write_text(json.dumps(document))
    commands = [
        ("validate", "edited.json"),
        ("diff", JANUARY, "edited.json"),
        ("export", "--snapshot", "edited.json", "--output", "again.json"),
        ("import", "edited.json"),
        ("version", "compute", "--to", "edited.json"),
    ]

    for command in commands:
        refused = lumos(*command)
        assert refused.exit_code != 0, command
        assert "--edited" in refused.stdout + refused.stderr, command
        assert lumos(*command, "--edited").exit_code == 0, command
    assert lumos("validate", "again.json").exit_code == 0


def test_a_failed_item_of_a_file_is_exit_code_1_unless_the_user_is_lenient(
    shop: Lumos, project: Path
) -> None:
    (project / "owners.yaml").write_text("assignments:\n  - {dataset: nothing, group: analytics}\n")
    (project / "docs.yaml").write_text("datasets:\n  - {dataset: nothing, tags: [x]}\n")

    for command in (("ownership", "assign", "owners.yaml"), ("enrich", "docs.yaml")):
        assert shop(*command).exit_code == 1
        assert shop(*command, "--strict").exit_code == 1
        assert shop(*command, "--lenient").exit_code == 0


def test_list_shows_every_dataset_and_which_part_of_them(shop: Lumos) -> None:
    everything = shop("list").stdout.splitlines()
    assert everything[-1] == "5 datasets"
    assert [line.partition("  ")[0] for line in everything[:-1]] == sorted(
        line.partition("  ")[0] for line in everything[:-1]
    )
    part = shop("list", "--limit", "2").stdout.splitlines()
    assert part == [*everything[:2], "showing 1 to 2 of 5 datasets; more with --offset 2"]
    assert shop("list", "--limit", "2", "--json").json()["total"] == 5


def test_a_search_says_why_it_found_something_and_what_may_be_meant(shop: Lumos) -> None:
    assert "Found in: column email" in shop("search", "--column", "email").stdout
    assert shop("search", "column:email").stdout == shop("search", "--column", "email").stdout
    assert "did you mean customers?" in shop("search", "custommers").stdout
    assert "did you mean customers?" in shop("show", "custommers").stderr
    assert "showing 1 to 1 of 3 results" in shop("search", "customer", "--limit", "1").stdout


def test_an_import_says_how_many_datasets_it_changed_in_a_breaking_way(shop: Lumos) -> None:
    first = shop("import", FEBRUARY)
    again = shop("import", FEBRUARY, "--json").json()

    assert first.stdout.endswith("; breaking changes in 1 dataset\n")
    assert again["breaking"] == 0
