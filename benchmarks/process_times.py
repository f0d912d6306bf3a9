"""CPU time of a process and of all that it starts, as other benchmarks measure it."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from pathlib import Path
from typing import NamedTuple

_SET_CHILD_SUBREAPER = 36
_LOOK_SECONDS = 0.2


class ProcessTimes:
    """Adds up the CPU of this process and of all that it starts, by looking at them all the time.

    What the system tells of children that ended leaves out the Python workers of Spark.
    """

    def __init__(self) -> None:
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans stay descendants
        self._seen: dict[tuple[int, int], float] = {}
        threading.Thread(target=self._look_forever, daemon=True).start()

    def seconds(self) -> float:
        """Return the seconds so far."""
        self._look()
        return time.process_time() + sum([*self._seen.values()])

    def _look_forever(self) -> None:
        while True:
            self._look()
            time.sleep(_LOOK_SECONDS)

    def _look(self) -> None:
        found = dict(filter(None, map(_process, os.listdir("/proc"))))
        ours = {os.getpid()}
        for pid, process in sorted(found.items(), key=lambda item: item[1].started):
            if process.parent in ours and pid not in ours:
                ours.add(pid)
                key = (pid, process.started)
                self._seen[key] = max(self._seen.get(key, 0.0), process.cpu)


class Process(NamedTuple):
    """A running process."""

    parent: int
    started: int
    cpu: float


def _process(name: str) -> tuple[int, Process] | None:
    if not name.isdigit():
        return None
    try:
        fields = Path("/proc", name, "stat").read_text().rpartition(") ")[2].split()
    except OSError:  # it ended
        return None
    ticks = int(fields[11]) + int(fields[12])
    cpu = ticks / os.sysconf("SC_CLK_TCK")
    return int(name), Process(int(fields[1]), int(fields[19]), cpu)
