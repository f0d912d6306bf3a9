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


SPARK_FROM_BYTES = {"diff": 2 << 30, "validate": 256 << 20}
