"""The variables of this process that Spark reads and sets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_TOUCHED_VARIABLES = ("JAVA_HOME", "PYSPARK_", "SPARK_")


@contextmanager
def process_variables(variables: Mapping[str, str], *, only: bool = False) -> Iterator[None]:
    """Set variables of the process and bring them back afterwards.

    Args:
        variables: what to set.
        only: bring back these alone, not all that Spark reads or sets.
    """

    def is_ours(name: str) -> bool:
        return name in variables if only else _is_touched(name)

    before = {name: value for name, value in os.environ.items() if is_ours(name)}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in [name for name in os.environ if is_ours(name) and name not in before]:
            del os.environ[name]
        os.environ.update(before)


def _is_touched(name: str) -> bool:
    return name.startswith(_TOUCHED_VARIABLES)
