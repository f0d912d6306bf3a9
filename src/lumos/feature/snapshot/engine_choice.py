"""Which engine works on a snapshot, and from which size on Spark is worth its start."""

from __future__ import annotations

from enum import StrEnum


class Engine(StrEnum):
    """Who is to do the work on a snapshot."""

    AUTO = "auto"
    """Spark from a measured size on, else this process."""
    LOCAL = "local"
    """This process; no JVM is started."""
    SPARK = "spark"
    """Spark, whatever the size."""


SPARK_FROM_BYTES = {"diff": 8 << 30, "validate": 512 << 20}
"""From how many bytes of unpacked lines to read an operation goes to Spark by itself.

Measured with `benchmarks/diff_engines.py`, with datasets of 2.7 KB. Starting Spark costs 5.5 s of
CPU and its first tasks 8 s more. One process validates a dataset in 0.22 ms, and so do the tasks,
which share the work: on two cores that pays from about 100,000 datasets on. One process compares a
dataset in 0.01 ms, less than handing it out costs: that pays only on many cores, on eight of them
from about 1,600,000 datasets on each side. The limits lie at or above that. Export and import are
not here: all that they make comes back to one process, which costs more than making it.
"""
