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


SPARK_FROM_BYTES = {"diff": 4 << 30, "validate": 512 << 20}
"""From how many bytes of unpacked lines to read an operation goes to Spark by itself.

Measured with `benchmarks/diff_engines.py` on two cores: starting Spark costs 6 to 7 seconds of CPU
there. One process validates a dataset in 0.25 ms, most of it parsing that tasks share, and
compares one in 0.01 ms, so Spark wins its start back from some 100,000 and some 700,000 datasets
on; the limits lie above that. Export and import are not here: all that they make comes back to one
process, which costs more than making it.
"""
