"""The table at the end of a test run: which folders, groups and files took the time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pytest

from distribution import file_of

# A folder of the tests, a marker, or a worker; seconds and tests.
Row = tuple[str, float, int]
MARKERS = ("spark", "postgres", "storage", "service", "servers", "full")
SLOWEST_FILES = 10
# A run that is over at once needs no table.
_SHORT_RUN_SECONDS = 60


class RunTimes:
    """Adds up the durations of tests from all workers, as a plugin of pytest."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)
        self._markers: dict[str, tuple[str, ...]] = {}
        self._workers: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        self._markers[report.nodeid] = tuple(name for name in MARKERS if name in report.keywords)
        self._workers[report.nodeid] = getattr(report, "worker_id", "this process")

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if sum(self._seconds.values()) < _SHORT_RUN_SECONDS:
            return
        terminalreporter.write_sep("=", "where the time went")
        for line in table_lines(self.tables()):
            terminalreporter.write_line(line)

    def tables(self) -> list[tuple[str, list[Row]]]:
        """Return the seconds and tests by folder, marker and worker, and of the slowest files."""
        tests = [*self._seconds]
        folders = self._rows((file_of(test).rpartition("/")[0], test) for test in tests)
        markers = self._rows(
            (" + ".join(self._markers[test]) or "no marker", test) for test in tests
        )
        workers = self._rows((self._workers[test], test) for test in tests)
        files = self._rows((file_of(test), test) for test in tests)
        return [
            ("folder", folders),
            ("marker", markers),
            ("worker", workers),
            ("slowest files", files[:SLOWEST_FILES]),
        ]

    def _rows(self, named_tests: Iterable[tuple[str, str]]) -> list[Row]:
        seconds: dict[str, float] = defaultdict(float)
        counts: dict[str, int] = defaultdict(int)
        for name, test in named_tests:
            seconds[name] += self._seconds[test]
            counts[name] += 1
        rows = [(name, seconds[name], counts[name]) for name in seconds]
        return sorted(rows, key=lambda row: -row[1])


def table_lines(tables: list[tuple[str, list[Row]]]) -> Iterable[str]:
    """Yield the lines of the tables, all with the same width of columns."""
    width = max(len(name) for _, rows in tables for name, _, _ in rows)
    for title, rows in tables:
        yield f"{title:<{width + 2}}  seconds   tests"
        for name, seconds, count in rows:
            yield f"  {name:<{width}}  {seconds:7.0f}  {count:6}"
