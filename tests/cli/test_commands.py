"""Every command as a user runs it, with its JSON checked against the published schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import FEBRUARY, JANUARY, ORDERS, ROOT, Lumos, check_schema, checked


@pytest.fixture
def shop(lumos: Lumos) -> Lumos:
    """A project whose catalog holds the shop of January."""
    assert lumos("import", "--input", JANUARY).exit_code == 0
    return lumos


def test_init_writes_valid_settings_and_keeps_them_the_second_time(
    lumos: Lumos, project: Path
) -> None:
    assert checked(lumos("init", "--json"), "init")["settings_created"] is True
    (project / "lumos.yaml").write_text("environment: staging\n")

    assert checked(lumos("init", "--json"), "init")["settings_created"] is False
    assert (project / "lumos.yaml").read_text() == "environment: staging\n"
    assert (project / ".lumos" / "lumos.db").exists()


def test_doctor_names_each_part(lumos: Lumos) -> None:
    lumos("init")
    report = checked(lumos("doctor", "--json"), "doctor")

    assert {check["name"]: check["status"] for check in report["checks"]} == {
        "python": "ok",
        "java": "ok",
        "spark": "ok",
        "settings": "ok",
        "environment variables": "ok",
        "state database": "ok",
        "stored documents": "ok",
        "disk": "ok",
        "clock": "ok",
        "catalog": "ok",
    }


def test_doctor_ends_with_1_and_still_checks_the_rest(lumos: Lumos, project: Path) -> None:
    (project / "lumos.yaml").write_text("platfrom: embedded\n")

    result = lumos("doctor")

    assert result.exit_code == 1
    assert "[fail] settings: lumos.yaml:1: unknown key 'platfrom'" in result.stdout
    assert "[ok] python" in result.stdout


def test_search_finds_by_beginnings_of_words_and_prints_the_facts(shop: Lumos) -> None:
    text = shop("search", "cust").stdout
    page = checked(shop("search", "cust", "--json"), "search")

    assert text.startswith("Results (3 datasets):\n\n1. postgres.shop.public.customers\n")
    assert "Platform: postgres | Owner: sales-data, ada | Quality: 99.4% | Last updated: " in text
    assert page["total"] == 3


def test_search_by_quality_says_what_was_left_out(shop: Lumos) -> None:
    text = shop("search", "customer", "--min-quality", "99").stdout

    assert text.startswith("Results (1 of 3 datasets meet quality threshold):")
    assert "# Excluded (below 99% threshold):" in text
    assert "# - postgres.shop.public.orders (Quality: 98.7%)" in text


def test_show_accepts_a_urn_and_a_unique_name(shop: Lumos) -> None:
    assert checked(shop("show", ORDERS, "--json"), "show")["urn"] == ORDERS
    assert checked(shop("show", "orders", "--json"), "show")["urn"] == ORDERS
    assert "order_id: INT64 required key" in shop("show", "orders").stdout


def test_history_and_compare_tell_what_a_second_import_changed(shop: Lumos) -> None:
    shop("import", "--input", FEBRUARY)

    history = checked(shop("history", ORDERS, "--json"), "history")["schema_history"]
    compared = checked(shop("compare", "orders", "1.0.0", "2.0.0", "--json"), "compare")

    assert [version["version"] for version in history] == ["1.0.0", "2.0.0"]
    assert history[1]["backward_compatible"] is False
    assert history[1]["previous_version"] == "1.0.0"
    assert {(change["path"], change["level"]) for change in compared["changes"]} == {
        ("coupon_code", "BREAKING"),
        ("total", "BREAKING"),
    }


def test_versions_follow_the_kind_of_change(shop: Lumos) -> None:
    shop("import", "--input", FEBRUARY)

    def newest(name: str) -> str:
        version: str = shop("history", name, "--json").json()["schema_history"][-1]["version"]
        return version

    assert newest("orders") == "2.0.0"  # a column removed
    assert newest("customers") == "1.1.0"  # a nullable column added
    assert newest("clickstream") == "1.0.1"  # documented
    assert newest("daily_revenue") == "1.0.1"  # its description edited
    assert newest("payments.settled") == "1.0.0"  # unchanged
    assert newest("customer_features") == "1.0.0"  # new


def test_importing_twice_changes_nothing(shop: Lumos, project: Path) -> None:
    shop("export", "--output", "before.json")
    again = checked(shop("import", "--input", JANUARY, "--json"), "import")
    shop("export", "--output", "after.json")

    assert again["created"] == again["updated"] == []
    assert again["unchanged"] == 5
    before, after = (
        json.loads((project / name).read_text()) for name in ("before.json", "after.json")
    )
    of_the_moment = {"export_timestamp": "", "content_sha256": "", "document_sha256": ""}
    assert {**before, **of_the_moment} == {**after, **of_the_moment}
    assert len(shop("history", "orders", "--json").json()["schema_history"]) == 1


def test_a_dry_run_says_what_would_happen_and_does_nothing(shop: Lumos) -> None:
    planned = checked(shop("import", "--input", FEBRUARY, "--dry-run", "--json"), "import")

    assert planned["created"] == ["lumos://s3/shop-lake/features/customer_features"]
    assert ORDERS in planned["updated"]
    assert len(shop("history", "orders", "--json").json()["schema_history"]) == 1


def test_skip_existing_leaves_what_is_there(shop: Lumos) -> None:
    result = checked(shop("import", "--input", FEBRUARY, "--skip-existing", "--json"), "import")

    assert result["skipped"] == 5
    assert len(shop("history", "orders", "--json").json()["schema_history"]) == 1


def test_export_and_import_move_everything(shop: Lumos, project: Path) -> None:
    exported = checked(shop("export", "--output", "backup.json", "--json"), "export")
    check_schema(json.loads((project / "backup.json").read_text()), "snapshot")
    shop("--state-dir", "other", "import", "--input", "backup.json")

    result = checked(
        shop("diff", "--source", "embedded", "--target", "backup.json", "--json"), "diff"
    )
    moved = shop(
        "--state-dir", "other", "diff", "--source", "embedded", "--target", "backup.json", "--json"
    )

    assert exported["statistics"]["datasets"] == 5
    assert result["changes"] == []
    assert moved.json()["changes"] == []
    assert moved.json()["summary"]["sections"] == result["summary"]["sections"]


def test_what_lumos_does_not_model_travels_along(lumos: Lumos, project: Path) -> None:
    document = json.loads(Path(JANUARY).read_text())
    document["extensions"] = {"datahub": {"structuredProperties": [{"retention": 30}]}}
    document["identity_map"] = {ORDERS: {"datahub": "urn:li:dataset:(x,orders,PROD)"}}
    document["datasets"][0]["extensions"] = {"datahub": {"siblings": ["a"]}}
    (project / "rich.json").write_text(json.dumps(document))

    lumos("import", "--input", "rich.json")
    lumos("export", "--output", "out.json")

    exported = json.loads((project / "out.json").read_text())
    assert exported["extensions"] == document["extensions"]
    assert exported["identity_map"] == document["identity_map"]
    assert exported["datasets"][0]["extensions"] == document["datasets"][0]["extensions"]


def test_export_to_stdout_prints_the_document_alone(shop: Lumos) -> None:
    result = shop("export", "--output", "-")

    assert result.exit_code == 0
    assert len(result.json()["datasets"]) == 5


def test_validate_prints_a_line_per_check(shop: Lumos) -> None:
    text = shop("validate", "--input", JANUARY).stdout
    report = checked(shop("validate", "--input", JANUARY, "--json"), "validate")

    assert "[ok] 5 datasets\n" in text
    assert "[ok] 3 lineage edges\n" in text
    assert "[ok] All references resolved\n" in text
    assert report["status"] == "ok"


def test_validate_ends_with_1_for_a_bad_snapshot(shop: Lumos, project: Path) -> None:
    document = json.loads(Path(JANUARY).read_text())
    document["datasets"][0]["schema"]["fields"][0]["type"] = "TEXTT"
    (project / "bad.json").write_text(json.dumps(document))

    result = shop("validate", "--input", "bad.json")

    assert result.exit_code == 1
    assert "[fail]" in result.stdout


def test_diff_classifies_and_exits_as_asked(shop: Lumos) -> None:
    sides = ("diff", "--source", JANUARY, "--target", FEBRUARY)
    result = checked(shop(*sides, "--json"), "diff")

    assert result["summary"]["levels"]["BREAKING"] == 2
    assert {"dataset", "path", "rule", "level", "old", "new"} <= result["changes"][0].keys()
    assert shop(*sides).exit_code == 0
    assert shop(*sides, "--fail-on", "breaking").exit_code == 1
    assert shop("diff", "--source", JANUARY, "--target", JANUARY, "--fail-on", "any").exit_code == 0


def test_snapshots_are_made_listed_and_verified(shop: Lumos) -> None:
    created = checked(shop("snapshot", "create", "--json"), "snapshot-create")
    listed = checked(shop("snapshot", "list", "--json"), "snapshot-list")
    verified = checked(shop("snapshot", "verify", "latest", "--json"), "snapshot-verify")

    assert [info["id"] for info in listed["snapshots"]] == [created["id"]]
    assert verified["reports"][0]["problems"] == []
    assert shop("diff", "--source", "latest", "--target", "embedded").exit_code == 0


def test_reports_of_runs_are_kept(shop: Lumos, project: Path) -> None:
    from lumos.core.store.database import StateDatabase
    from lumos.core.store.runs import RunRepository

    with StateDatabase.open(project / ".lumos" / "lumos.db", read_only=True) as database:
        (run,) = RunRepository(database).recent()

    assert run.operation == "import"
    assert run.report["counts"] == {"done": 5, "skipped": 0, "failed": 0}


def test_without_schema_tracking_no_history_is_kept(lumos: Lumos, project: Path) -> None:
    (project / "lumos.yaml").write_text("features: {schema_tracking: false}\n")
    lumos("import", "--input", JANUARY)
    lumos("import", "--input", FEBRUARY)

    assert lumos("history", "orders", "--json").json()["schema_history"] == []
    assert len(lumos("search", "--json").json()["hits"]) == 6


def test_cloud_versions_begin_with_the_prefix_of_the_settings(lumos: Lumos, project: Path) -> None:
    (project / "lumos.yaml").write_text("cloud_version_prefix: R-\n")
    lumos("import", "--input", JANUARY)
    lumos("import", "--input", FEBRUARY)

    history = lumos("history", "orders", "--json").json()["schema_history"]
    assert [version["cloud_version"] for version in history] == ["R-1", "R-2"]


def test_a_chain_runs_its_steps_in_order(lumos: Lumos) -> None:
    result = checked(
        lumos("run", f"validate:{JANUARY}", f"import:{JANUARY}", "snapshot", "--json"), "run"
    )

    assert [step["operation"] for step in result["steps"]] == ["validate", "import", "snapshot"]
    assert result["steps"][1]["counts"]["done"] == 5


def test_a_chain_with_an_unknown_step_runs_nothing(lumos: Lumos, project: Path) -> None:
    result = lumos("run", f"import:{JANUARY}", "exprot:out.json")

    assert result.exit_code == 2
    assert "did you mean export?" in result.error_line
    assert not (project / ".lumos").exists()


def test_people_and_docs_by_file_make_patch_versions_once(shop: Lumos) -> None:
    shop_files = ROOT / "examples" / "shop"
    for command in (
        ("ownership", "users", str(shop_files / "users.yaml")),
        ("ownership", "groups", str(shop_files / "groups.yaml")),
        ("ownership", "assign", str(shop_files / "owners.yaml")),
        ("enrich", str(shop_files / "docs.yaml")),
    ):
        first = checked(shop(*command, "--json"), "run-report")
        second = checked(shop(*command, "--json"), "run-report")
        assert first["counts"]["done"] > 0
        assert first["counts"]["failed"] == 0
        assert second["counts"]["done"] == 0

    history = shop("history", "payments.settled", "--json").json()["schema_history"]
    assert [version["version"] for version in history] == ["1.0.0", "1.0.1", "1.0.2"]


def test_every_command_has_help_with_an_example(lumos: Lumos) -> None:
    from lumos.framework_cli import COMMANDS

    for command in COMMANDS:
        result = lumos(command.name, "--help")
        assert result.exit_code == 0
        assert "Usage: lumos " + command.name in result.stdout
        if not command.target.endswith(":app"):
            assert "Example: lumos " + command.name in result.stdout
