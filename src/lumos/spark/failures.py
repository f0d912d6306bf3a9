"""What Spark raises while stages run, turned into one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lumos.core.errors import EXIT_UNREADABLE, LumosError
from lumos.core.redaction import redact

_LUMOS_ERROR = re.compile(r"^lumos\.[\w.]+Error: (?P<reason>.+)$", re.MULTILINE)
_PYTHON_ERROR = re.compile(r"^(?P<reason>[A-Z]\w*(?:Error|Exception))(?::|$)", re.MULTILINE)
_SERVER = re.compile(r'^\s*details = "(?P<reason>.+)"$', re.MULTILINE)
_CAUSE = re.compile(r"Caused by: [\w.$]+: (?P<reason>.+)")
_LONGEST_REASON = 300


class SparkRunError(LumosError):
    """A stage failed on Spark; what was there before is untouched."""

    code = "LUM-131"
    exit_code = EXIT_UNREADABLE
    retryable = True


@contextmanager
def spark_failures() -> Iterator[None]:
    """Turn an error of Spark, while its JVM can still be asked, into a `SparkRunError`."""
    try:
        yield
    except Exception as error:
        if not _is_of_spark(error):
            raise
        raise SparkRunError(
            f"Spark could not complete the run: {reason_of(error)}",
            hint="check disk space and permissions of the state folder, then run again",
        ) from None


def _is_of_spark(error: Exception) -> bool:
    """Return whether Spark raised an error; its packages are imported late, being slow to load."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    return isinstance(error, Py4JError | PySparkException)


def reason_of(failure: Exception) -> str:
    """Say in one line, without data or secrets, why Spark failed."""
    text = str(failure)
    # Of any other error of a worker only the kind is reported: its words may hold data.
    patterns = (_LUMOS_ERROR, _PYTHON_ERROR, _SERVER, _CAUSE)
    found = next(filter(None, ([*pattern.finditer(text)] for pattern in patterns)), [])
    reason = found[-1]["reason"] if found else text.strip().splitlines()[0]
    return redact(reason)[:_LONGEST_REASON]
