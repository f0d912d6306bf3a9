"""Which tests share a worker of pytest-xdist, in which order they start, and how many workers.

The scheduler is this project's own, since `--dist=loadgroup` of pytest-xdist 3.8 does not group
with pytest 9.2 (pytest-xdist issue 1386).
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typing_extensions import override
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

# Tests that use the same server run on one worker, which starts it once. A test that uses several
# belongs to the first of them here. The order is also the order of starting: longest group first.
GROUP_OF_FIXTURE = {
    "real_atlas": "atlas",
    "amundsen_server": "amundsen",
    "hdfs_cluster": "hdfs",
    "azurite": "azurite",
    "spark": "spark",
    "spark_cluster_url": "cluster",
    "spark_connect_url": "connect",
    "postgres_url": "postgres",
    "s3_server": "s3",
}
# Next come files with tests that start a JVM of their own, then these, then all others.
LONG_FILES = (
    "tests/contract/test_platforms.py",
    "tests/unit/test_distribution.py",
    "tests/unit/test_property_seed.py",
    "tests/unit/test_database_migrations.py",
    "tests/unit/test_changes_properties.py",
)

_GIB = 1024**3
_MEMORY_OF_WORKER = 3 * _GIB
_NOTICE_SECONDS = 1
_STOP_SECONDS = 60
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def group_of(nodeid: str, fixtures: Sequence[str]) -> str:
    """Return the server that a test shares with others, or else its file."""
    shared = (group for fixture, group in GROUP_OF_FIXTURE.items() if fixture in fixtures)
    return next(shared, file_of(nodeid))


def place_in(first: Sequence[str], group: str) -> int:
    return first.index(group) if group in first else len(first)


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Gives each worker one group after the other, in the order of the collected tests."""

    def __init__(self, config: pytest.Config, log: Producer, *, groups: Path) -> None:
        super().__init__(config, log)
        self._path = groups
        self._groups: Mapping[str, str] = {}

    @override
    def schedule(self) -> None:
        self._groups = self._groups or json.loads(self._path.read_text("utf-8"))
        super().schedule()

    @override
    def _split_scope(self, nodeid: str) -> str:
        return self._groups[nodeid]


class Distribution:
    """The plugin of pytest that sorts tests into groups and hands the groups to workers."""

    def __init__(self, config: pytest.Config) -> None:
        # None where no other process runs the tests.
        self._input: dict[str, str] | None = getattr(config, "workerinput", None)
        self._shared: tempfile.TemporaryDirectory[str] | None = None
        self._groups: dict[str, str] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        self._tell("pid", str(os.getpid()))

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self._groups = {
            item.nodeid: group_of(item.nodeid, getattr(item, "fixturenames", ())) for item in items
        }
        with_jvm = {self._groups[each.nodeid] for each in items if each.get_closest_marker("spark")}
        first = [*GROUP_OF_FIXTURE.values(), *sorted(with_jvm), *LONG_FILES]
        items.sort(key=lambda item: place_in(first, self._groups[item.nodeid]))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self) -> None:
        # Only workers collect. All have the same tests, so the scheduler reads what one found.
        self._tell("groups", json.dumps(self._groups))

    def pytest_keyboard_interrupt(self) -> None:
        if self._input:
            self._tell("interrupted")
        elif self._shared:
            stop_workers(Path(self._shared.name))

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        self._tell("ended")
        if self._shared:
            self._shared.cleanup()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: WorkerController) -> None:
        node.workerinput["shared_folder"] = str(self._folder())

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Producer) -> GroupScheduling:
        return GroupScheduling(config, log, groups=self._folder() / "gw0.groups")

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_auto_num_workers(self) -> int:
        return worker_count(usable_cores(), usable_memory())

    def _folder(self) -> Path:
        self._shared = self._shared or tempfile.TemporaryDirectory(prefix="lumos-test-workers-")
        return Path(self._shared.name)

    def _tell(self, name: str, text: str = "") -> None:
        """Write a file about this worker where the process that started it reads it."""
        folder = Path(self._input["shared_folder"]) if self._input else None
        if self._input and folder and folder.exists():
            (folder / f"{self._input['workerid']}.{name}").write_text(text, "utf-8")


def stop_workers(folder: Path) -> None:
    """Interrupt workers and wait until they have stopped their servers.

    Otherwise pytest-xdist would kill them after ten seconds, and the servers would stay. Ctrl-C
    interrupts all processes of a terminal, so those that know of it are not interrupted again.
    """
    time.sleep(_NOTICE_SECONDS)
    for path in folder.glob("*.pid"):
        if not path.with_suffix(".interrupted").exists():
            with suppress(ProcessLookupError):
                os.kill(int(path.read_text()), signal.SIGINT)
    deadline = time.monotonic() + _STOP_SECONDS
    while time.monotonic() < deadline and any(
        not path.with_suffix(".ended").exists() for path in folder.glob("*.pid")
    ):
        time.sleep(0.1)


def worker_count(cores: int, memory: int) -> int:
    """Return how many workers a machine can carry: one for each core, if there is memory."""
    return max(1, min(cores, memory // _MEMORY_OF_WORKER))


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def usable_memory() -> int:
    """Return the bytes of memory that this machine or container has."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = int(_CGROUP_LIMIT.read_text())
    except (OSError, ValueError):  # no limit reads "max"
        return physical
    return min(limit, physical)
