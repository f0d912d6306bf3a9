from __future__ import annotations

import pytest

from run_times import RunTimes, table_lines

FAST, SLOW, SERVED = (
    "tests/unit/test_a.py::test_a",
    "tests/cli/test_b.py::test_b",
    "tests/unit/test_c.py::test_c[x]",
)


def report(nodeid: str, *markers: str, when: str, seconds: float, worker: str) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=nodeid,
        location=("", 0, ""),
        keywords=dict.fromkeys(markers, 1),
        outcome="passed",
        longrepr=None,
        when=when,  # type: ignore[arg-type]
        duration=seconds,
        worker_id=worker,
    )


def test_seconds_are_added_up_by_folder_marker_worker_and_file() -> None:
    times = RunTimes()
    times.pytest_runtest_logreport(report(FAST, when="call", seconds=1, worker="gw0"))
    times.pytest_runtest_logreport(report(SLOW, when="setup", seconds=30, worker="gw1"))
    times.pytest_runtest_logreport(report(SLOW, when="call", seconds=40, worker="gw1"))
    times.pytest_runtest_logreport(
        report(SERVED, "spark", "storage", "parametrize", when="call", seconds=5, worker="gw0")
    )

    assert dict(times.tables()) == {
        "folder": [("tests/cli", 70, 1), ("tests/unit", 6, 2)],
        "marker": [("no marker", 71, 2), ("spark + storage", 5, 1)],
        "worker": [("gw1", 70, 1), ("gw0", 6, 2)],
        "slowest files": [
            ("tests/cli/test_b.py", 70, 1),
            ("tests/unit/test_c.py", 5, 1),
            ("tests/unit/test_a.py", 1, 1),
        ],
    }


def test_the_lines_of_all_tables_have_the_same_columns() -> None:
    lines = [*table_lines([("worker", [("gw0", 1234.5, 9000)]), ("file", [("tests/x.py", 1, 2)])])]

    assert lines == [
        "worker        seconds   tests",
        "  gw0            1234    9000",
        "file          seconds   tests",
        "  tests/x.py        1       2",
    ]
