"""How a program writes the log: as lines for people or for machines, to standard error or a file.

Only programs use this; the library emits events and leaves handlers to the program that uses it.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from lumos.core.errors import ConfigurationError
from lumos.core.event_kinds import EVENT_KINDS
from lumos.core.events import one_line
from lumos.core.redaction import RedactingFilter

if TYPE_CHECKING:
    from collections.abc import Mapping

FOREIGN: Final = "message"
"""The event of a record that plain `logging` made, such as one of a plug-in."""
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
_MODE: Final = 0o600


class LineFormatter(logging.Formatter):
    """One line for each event, without secrets and control characters."""

    _redacting = RedactingFilter()

    @override
    def format(self, record: logging.LogRecord) -> str:
        if not hasattr(record, "event"):
            self._redacting.filter(record)
            text = "\n".join(filter(None, (record.getMessage(), record.exc_text)))
            return self.line(FOREIGN, one_line(text), record=record, fields={})
        return self.line(
            record.event,
            record.getMessage(),
            record=record,
            fields=getattr(record, "fields", {}),
        )

    def line(
        self,
        event: str,
        message: str,
        *,
        record: logging.LogRecord,
        fields: Mapping[str, object],
    ) -> str:
        """Return the line of an event."""
        raise NotImplementedError


class HumanFormatter(LineFormatter):
    """Time, level, event, run and text; fields that the text does not have stand behind it."""

    @override
    def line(
        self,
        event: str,
        message: str,
        *,
        record: logging.LogRecord,
        fields: Mapping[str, object],
    ) -> str:
        run, operation = getattr(record, "run", None), getattr(record, "operation", None)
        inside = f" [{run} {operation}]" if run else ""
        kind = EVENT_KINDS.get(event)
        further = "".join(
            f" {key}={_shown(value)}"
            for key, value in fields.items()
            if kind is None or f"{{{key}}}" not in kind.text
        )
        return f"{_time(record)} {record.levelname:<7} {event}{inside} {message}{further}"


class JsonFormatter(LineFormatter):
    """One JSON object; `docs/reference/log-events.md` has its keys."""

    @override
    def line(
        self,
        event: str,
        message: str,
        *,
        record: logging.LogRecord,
        fields: Mapping[str, object],
    ) -> str:
        run, operation = getattr(record, "run", None), getattr(record, "operation", None)
        document: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "event": event,
            "pid": record.process,
            **({"run": run, "operation": operation} if run else {}),
            "message": message,
            **fields,
        }
        return json.dumps(document, ensure_ascii=False)


class StandardErrorHandler(logging.Handler):
    """Writes lines to standard error; where nobody hears it, nothing is lost."""

    @override
    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError, ValueError):
            encoding = sys.stderr.encoding or "utf-8"
            line = self.format(record).encode(encoding, "backslashreplace").decode(encoding)
            sys.stderr.write(f"{line}\n")


class FileHandler(logging.Handler):
    """Appends lines to a file, which several processes may do at once.

    Each line is one write at the end of the file. A file that was renamed or removed, as
    `logrotate` does, is made anew.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, or make it readable by its owner alone.

        Raises:
            ConfigurationError: it cannot be written, or is not a regular file.
        """
        super().__init__()
        self._path = path.absolute()
        self._shown = path
        self._failed = False
        self._file = -1
        try:
            self._open()
        except OSError as error:
            raise ConfigurationError(
                f"the log file {path} cannot be written: {os.strerror(error.errno or 0)}",
                hint="give --log-file, or file in the section logging, another path",
            ) from None

    @override
    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = f"{self.format(record)}\n".encode("utf-8", "backslashreplace")
            if self._was_moved():
                self._open()
            os.write(self._file, line)
        except OSError as error:
            self._report_once(error)

    @override
    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        super().close()

    def _open(self) -> None:
        opened = os.open(self._path, _FLAGS, _MODE)
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            os.close(opened)
            raise ConfigurationError(
                f"the log file {self._shown} is not a regular file",
                hint="without a log file, the log goes to standard error",
            )
        os.set_blocking(opened, True)
        if self._file >= 0:
            os.close(self._file)
        self._file = opened

    def _was_moved(self) -> bool:
        try:
            there, ours = os.stat(self._path), os.fstat(self._file)
        except FileNotFoundError:
            return True
        return (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino)

    def _report_once(self, error: OSError) -> None:
        """Say that the log is not whole; a run does not end for that."""
        if not self._failed:
            self._failed = True
            reason = os.strerror(error.errno or 0)
            with suppress(OSError, ValueError):
                sys.stderr.write(f"lumos: the log file cannot be written: {reason}\n")


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return json.dumps(text, ensure_ascii=False) if not text or {" ", '"'} & set(text) else text
