"""`lumos show --trend`: what was measured of a dataset over time."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from command_line import JANUARY, ORDERS, Lumos, checked
from lumos.entry.sdk import Lumos as Project

COST = {"dataset": ORDERS, "period": "2026-01", "kind": "storage", "amount": "12.50"}


def grown(rows: int | None, score: float) -> str:
    """Write the example snapshot with other figures of one dataset."""
    snapshot: dict[str, Any] = json.loads(Path(JANUARY).read_text("utf-8"))
    (orders,) = [each for each in snapshot["datasets"] if each["urn"] == ORDERS]
    orders["statistics"] = {"row_count": rows} if rows else {"row_count_estimate": 2_000_000}
    orders["statistics"]["file_count"] = 3
    orders["quality"] = {
        "score": score,
        "checks": [{"name": "a", "status": "PASSED"}, {"name": "b", "status": "FAILED"}],
    }
    orders["cost"] = COST
    path = Path(f"grown-{rows}.json")
    path.write_text(json.dumps(snapshot), "utf-8")
    return str(path)


def filled(lumos: Lumos) -> None:
    lumos("import", JANUARY)
    for snapshot in (grown(1_820_550, 99), grown(1_820_500, 99), grown(None, 99)):
        assert lumos("import", snapshot).exit_code == 0


def test_a_trend_is_a_table_for_each_kind_newest_last(lumos: Lumos) -> None:
    filled(lumos)
    told = lumos("show", "orders", "--trend").stdout
    assert told.startswith(f"{ORDERS}\nstatistics:\n  time ")
    statistics = told.partition("quality:")[0].splitlines()[3:]
    assert [re.split(" {2,}", line)[2:] for line in statistics] == [
        ["1,820,450", "-", "392.9 MiB", "-", "declared:import"],
        ["1,820,550", "+100", "-", "3", "declared:import"],
        ["1,820,500", "-50", "-", "3", "declared:import"],
        ["about 2,000,000", "+179,500", "-", "3", "declared:import"],
    ]
    assert re.search(r"quality:\n.*\n.*98.7% +- +-  d.*\n.*99% +1 +\+0.30  d", told)
    assert re.search(r"cost:\n.*\n.*12.50 USD +-  declared:import", told)


def test_a_trend_as_json_follows_its_schema(lumos: Lumos) -> None:
    filled(lumos)
    trend = checked(lumos("show", ORDERS, "--trend", "--json"), "show-trend")
    rows = [each["rows"] for each in trend["observations"] if each["kind"] == "STATISTICS"]
    assert rows == [1_820_450, 1_820_550, 1_820_500, 2_000_000]
    assert (trend["dataset"], trend["urn"], trend["damaged"]) == ("orders", ORDERS, 0)

    newest = checked(lumos("show", ORDERS, "--trend", "--json", "--limit", "1"), "show-trend")
    assert [(each["kind"], each["change"]) for each in newest["observations"]] == [
        ("STATISTICS", 179_500),
        ("QUALITY", pytest.approx(0.3)),
        ("COST", None),
    ]
    none = lumos("show", ORDERS, "--trend", "--json", "--since", "2999-01-01")
    assert checked(none, "show-trend")["observations"] == []
    with Project() as project:
        assert [each.rows for each in project.trend("orders").observations[:4]] == rows
        assert "source" not in project.trend("orders")._repr_html_()


def test_what_was_never_measured_has_no_trend(lumos: Lumos) -> None:
    lumos("import", JANUARY)
    told = lumos("show", "payments.settled", "--trend")
    assert (told.exit_code, "nothing was measured" in told.stdout) == (0, True)


def test_options_that_do_not_go_together_are_refused(lumos: Lumos) -> None:
    lumos("import", JANUARY)
    for options in (["--limit", "3"], ["--since", "2024-01-01"], ["--trend", "--who"]):
        assert lumos("show", ORDERS, *options).exit_code == 2
    assert lumos("show", ORDERS, "--trend", "--since", "soon").exit_code == 2
    assert lumos("show", "lumos://s3/none", "--trend").exit_code != 0


def test_how_many_are_kept_is_set_in_the_settings(lumos: Lumos) -> None:
    Path("lumos.yaml").write_text("observations: {keep_last: 2}\n", "utf-8")
    filled(lumos)
    trend = checked(lumos("show", ORDERS, "--trend", "--json"), "show-trend")
    rows = [each["rows"] for each in trend["observations"] if each["kind"] == "STATISTICS"]
    assert rows == [1_820_500, 2_000_000]
