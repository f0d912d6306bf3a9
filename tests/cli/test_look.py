"""`lumos search`, `show` and `diff` as people read them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import JANUARY, ORDERS, SHOP, Lumos

RICH = {
    "environment": "production",
    "location": {"bucket": "lake", "prefix": "raw/orders", "partition_keys": ["day"]},
    "governance": {
        "domains": ["sales"],
        "glossary_terms": ["Order"],
        "deprecation": {"note": "too slow", "sunset": "2026-06-30", "replacement": "orders_v2"},
    },
    "documentation": {
        "description": "Orders.",
        "business_context": "What the shop sold.\nNot what it shipped.",
        "sla": "by 06:00",
        "links": [{"url": "https://wiki.example/orders", "description": "the wiki"}],
    },
    "properties": {"retention": {"days": 30}, "team": "sales"},
    "assertions": [{"name": "orders are unique"}],
    "statistics": {
        "file_count": 12,
        "total_size_bytes": 3 * 1024**3,
        "row_count_estimate": 1_000,
        "last_modified": "2026-01-31T22:10:00Z",
        "query_count": 7,
    },
    "quality": {
        "score": 0,
        "completeness": 99.5,
        "freshness": "45_minutes",
        "validator": "soda",
        "checks": [{"name": "a", "status": "PASSED"}, {"name": "b", "status": "FAILED"}],
        "sla": {"target": 99, "status": "MISSED"},
    },
    "cost": {"dataset": ORDERS, "period": "2026-01", "kind": "storage", "amount": "12.50"},
}


@pytest.fixture
def shop(lumos: Lumos) -> Lumos:
    assert lumos("import", JANUARY).exit_code == 0
    return lumos


def changed(project: Path, name: str, **parts: object) -> str:
    document = {**json.loads(Path(JANUARY).read_text()), **parts}
    (project / name).write_text(json.dumps(document))
    return name


def test_show_tells_all_that_is_known(lumos: Lumos, project: Path) -> None:
    datasets = json.loads(Path(JANUARY).read_text())["datasets"]
    (orders,) = (each for each in datasets if each["urn"] == ORDERS)
    schema = {**orders["schema"], "unique_keys": [["order_id", "status"]]}
    rich = {**orders, **RICH, "schema": schema}
    lumos("import", changed(project, "rich.json", datasets=[rich]))

    lines = lumos("show", ORDERS).stdout.splitlines()

    assert lines[2:4] == ["DEPRECATED: until 2026-06-30; use orders_v2; too slow", "Orders."]
    for expected in (
        "  kind         table",
        "  environment  production",
        "  database     shop",
        "  namespace    public",
        "  location     lake/raw/orders",
        "  partitions   day",
        "  terms        Order",
        "  context      What the shop sold.",
        "               Not what it shipped.",
        "  sla          by 06:00",
        "  rows         about 1,000",
        "  size         3.0 GiB in 12 files",
        "  modified     2026-01-31 22:10 UTC",
        "  queried      7 times",
        "  quality      0%, completeness 99.5%, 0:45:00 old, 1 check passed, "
        "1 check failed, target 99% (MISSED), validated by soda",
        "  checks       orders are unique",
        "  cost         12.50 USD for storage in 2026-01",
        "  primary key  order_id",
        "  unique key   order_id, status",
        "  link         https://wiki.example/orders  the wiki",
        '  property     retention: {"days":30}',
        "  property     team: sales",
    ):
        assert expected in lines


def test_search_counts_one_dataset_as_one(shop: Lumos) -> None:
    assert shop("search", "payments.settled").stdout.startswith("Results (1 dataset):")


def test_search_knows_when_a_dataset_was_modified(shop: Lumos) -> None:
    text = shop("search", "customers", "--owner", "ada").stdout

    assert "Last updated: 2026-01-31 22:10 UTC" in text


def test_diff_names_the_other_sections_that_differ(shop: Lumos, project: Path) -> None:
    january = json.loads(Path(JANUARY).read_text())
    other = changed(
        project,
        "other.json",
        lineage_edges=january["lineage_edges"][1:],
        users=[{"username": "eve"}, {**january["users"][0], "title": "Changed"}],
        extensions={"x": 1},
    )
    sides = ("diff", "--source", JANUARY, "--target", other)

    text = shop(*sides).stdout

    assert "lineage edges: 1 removed\n" in text
    assert "users: 1 added, 1 changed\n" in text
    assert "extensions: 1 added\n" in text
    assert "tags:" not in text


def test_a_changed_user_alone_fails_on_any_and_on_nothing_else(shop: Lumos, project: Path) -> None:
    other = changed(project, "other.json", users=[{"username": "eve"}])
    sides = ("diff", "--source", JANUARY, "--target", other)

    assert shop(*sides, "--fail-on", "any").exit_code == 1
    assert shop(*sides, "--fail-on", "caution").exit_code == 0
    assert "0 changes" in shop(*sides).stdout


def test_a_snapshot_is_named_by_an_argument_or_an_option(lumos: Lumos) -> None:
    assert lumos("validate", JANUARY).stdout == lumos("validate", "--input", JANUARY).stdout
    for wrong in (("validate",), ("import",), ("import", JANUARY, "--input", JANUARY)):
        result = lumos(*wrong)
        assert result.exit_code == 2
        assert "--input" in result.error_line


@pytest.mark.parametrize("command", [("validate", "-"), ("import", "--input", "-")])
def test_a_snapshot_is_read_from_standard_input(project: Path, command: tuple[str, ...]) -> None:
    from command_line import run_in_shell

    words = " ".join(command)
    good = run_in_shell(f"lumos {words} <{SHOP}/january.json", folder=project)
    bad = run_in_shell(f"echo '[1' | lumos {words}", folder=project)
    closed = run_in_shell(f"lumos {words} <&-", folder=project)

    assert good.exit_code == 0, good.stderr
    assert "5 datasets" in good.stdout or "5 new" in good.stdout
    assert bad.exit_code != 0
    assert "standard-input" in bad.stdout + bad.stderr
    assert closed.exit_code != 0
    assert "Traceback" not in closed.stderr


def test_a_snapshot_like_the_one_before_says_so(shop: Lumos) -> None:
    first = shop("snapshot", "create").stdout.split()[1].rstrip(":")
    again = shop("snapshot", "create").stdout

    assert f"same content as {first}\n" in again
    shop("import", str(SHOP / "february.json"))
    assert "same content" not in shop("snapshot", "create").stdout


@pytest.mark.parametrize("group", ["snapshot", "ownership"])
def test_groups_offer_no_completion_of_their_own(lumos: Lumos, group: str) -> None:
    assert "--install-completion" not in lumos(group, "--help").stdout


@pytest.mark.parametrize(
    "command",
    ["snapshot create", "snapshot list", "snapshot verify", "ownership users"],
)
def test_commands_of_groups_have_an_example_too(lumos: Lumos, command: str) -> None:
    assert f"Example: lumos {command}" in lumos(*command.split(), "--help").stdout
