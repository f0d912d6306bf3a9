"""What keeps Spark from starting, turned into one line."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lumos.core.errors import EXIT_UNREADABLE, LumosError
from lumos.core.redaction import redact

_ANSWER_SECONDS = 10
_LONGEST_REASON = 300
_SERVER_REASON = re.compile(r'^\s*details = "(?P<reason>.+)"$', re.MULTILINE)
_JAVA_REASON = re.compile(r"^: (?P<reason>.+)$", re.MULTILINE)
_LOG_REASON = re.compile(r"error|exception|unrecognized|invalid|could not|cannot|conflicting", re.I)
_LOG_NOISE = (
    "\tat ",
    "Error: A fatal exception has occurred",
    "Error: Could not create the Java Virtual Machine",
    "Picked up ",
    "WARNING: ",
)


class SparkUnavailableError(LumosError):
    """Spark did not start, or the Spark that was named does not answer."""

    code = "LUM-130"
    exit_code = EXIT_UNREADABLE


@contextmanager
def clear_failures(what: str, log: Path | None) -> Iterator[None]:
    """Turn what PySpark, Py4J or the JVM throw at the start into one line."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException, OSError) as error:
        raise SparkUnavailableError(
            f"{what}: {_reason(error, log)}",
            hint="check the spark part of the settings; --debug shows the whole trace",
        ) from error


def _reason(error: Exception, log: Path | None) -> str:
    text = str(error)
    if found := _SERVER_REASON.search(text) or _JAVA_REASON.search(text):
        return _shortened(found["reason"])
    if log is not None and log.is_file():
        lines = log.read_text("utf-8", errors="replace").splitlines()
        said = [line for line in lines if line.strip() and not line.startswith(_LOG_NOISE)]
        reasons = [line for line in said if _LOG_REASON.search(line)]
        if reasons or said:
            return _shortened((reasons or said)[0])
    return _shortened(text.strip().split("\n", 1)[0])


def _shortened(text: str) -> str:
    return redact(text.strip())[:_LONGEST_REASON]


def require_answer(addresses: Sequence[tuple[str, int]], what: str) -> None:
    """Say at once that nobody listens at any of the addresses; Spark itself would try on."""
    problem: OSError | None = None
    for address in addresses:
        try:
            socket.create_connection(address, timeout=_ANSWER_SECONDS).close()
        except OSError as error:
            problem = error
        else:
            return
    raise SparkUnavailableError(
        f"{what} does not answer", hint="check the address and that it runs", retryable=True
    ) from problem
