"""The log of a command: options win over the environment, and that over the settings."""

from __future__ import annotations

import logging
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from lumos import __version__
from lumos.core.errors import ConfigurationError, UsageError
from lumos.core.events import LEVELS, ROOT_LOGGER, emit, since

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lumos.core.errors import LumosError
    from lumos.core.log_settings import LoggingSettings

_MOST_HELD: Final = 1_000
_VARIABLES: Final = {"level": "LUMOS_LOG_LEVEL", "format": "LUMOS_LOG_FORMAT"}
_CHOICES: Final = {"level": tuple(LEVELS), "format": ("human", "json")}


@dataclass(frozen=True)
class LogOptions:
    """What was asked for; None leaves it to what comes next."""

    level: str | None = None
    format: str | None = None
    file: Path | None = None

    @classmethod
    def given(
        cls,
        environment: Mapping[str, str],
        *,
        verbose: int,
        quiet: bool,
        level: str | None,
        format_: str | None,
        file: Path | None,
    ) -> LogOptions:
        """Return what the options of a command and the environment ask for.

        Raises:
            UsageError: options contradict each other, or one has no such value.
        """
        if sum((bool(verbose), quiet, level is not None)) > 1:
            raise UsageError("-v, -q and --log-level say the same; give one of them")
        if verbose:
            level = "info" if verbose == 1 else "debug"
        elif quiet:
            level = "error"
        chosen = {"level": level, "format": format_}
        for name, variable in _VARIABLES.items():
            if chosen[name] is None:
                chosen[name] = environment.get(variable) or None
            if (value := chosen[name]) is not None and value not in _CHOICES[name]:
                raise UsageError(
                    f"there is no log {name} '{value}'", hint=f"one of {', '.join(_CHOICES[name])}"
                )
        path = environment.get("LUMOS_LOG_FILE") if file is None else file
        return cls(chosen["level"], chosen["format"], Path(path) if path else None)

    def over(self, settings: LoggingSettings) -> LogOptions:
        """Return them, completed from the settings."""
        return LogOptions(
            self.level or settings.level,
            self.format or (settings.format if "format" in settings.model_fields_set else None),
            self.file or settings.file,
        )

    @property
    def is_anything(self) -> bool:
        """Whether a log is wanted at all."""
        return self != LogOptions()

    @property
    def effective_level(self) -> str:
        """The level; a file without one gets what a person looks for in it."""
        return self.level or ("info" if self.file else "warning")


class _Buffer(logging.Handler):
    """Keeps the first events of a command until its settings say where they go."""

    def __init__(self, decide: Callable[[], None]) -> None:
        """Get ready; `decide` is called when there are too many to keep."""
        super().__init__()
        self.records: list[logging.LogRecord] = []
        self._decide = decide

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)
        if len(self.records) >= _MOST_HELD:
            self._decide()


@dataclass
class CommandLog:
    """The log of one command of this process."""

    command: str = ""
    options: LogOptions = LogOptions()
    _handler: logging.Handler | None = None
    _level_before: int = logging.NOTSET
    _began: float = 0.0

    @property
    def is_on_standard_error(self) -> bool:
        """Whether lines of the log go where people read."""
        return self.options.is_anything and self.options.file is None

    @property
    def is_json_on_standard_error(self) -> bool:
        return self.is_on_standard_error and self.options.format == "json"

    def begin(self, command: str, options: LogOptions) -> None:
        """Begin to log as options and environment ask; the settings may complete it.

        Raises:
            ConfigurationError: the log file cannot be written.
        """
        self.command, self.options, self._began = command, options, time.monotonic()
        if options.file is not None:
            self._attach()
        else:
            level = options.level if options.is_anything else "info"
            self._put(_Buffer(self._decide), LEVELS[level or "warning"])
        emit("command.started", command=command, version=__version__)

    def complete(self, settings: LoggingSettings) -> None:
        """Take what the settings say.

        Raises:
            ConfigurationError: the log file cannot be written.
        """
        options = self.options.over(settings)
        before, self.options = self.options, options
        if isinstance(self._handler, _Buffer):
            self._decide()
        elif options != before:
            self._attach()

    def notice(self, text: str) -> None:
        """Print one line that is no error, in the log or as it is."""
        from lumos.entry.cli.output import print_notice

        emit("notice", text=text)
        if not self.is_on_standard_error:
            print_notice(text)

    def failed(self, error: LumosError) -> None:
        """Log the error that ends the command."""
        self._decide()
        if self._handler is not None:
            emit(
                "command.failed",
                command=self.command,
                reason=error.message,
                code=error.code,
                hint=error.hint,
            )

    def end(self, exit_code: int) -> None:
        """Log how the command ended, and leave logging as it was."""
        self._decide()
        if self._handler is not None:
            emit(
                "command.finished",
                command=self.command,
                exit_code=exit_code,
                seconds=since(self._began),
            )
        self._detach()
        self.command, self.options = "", LogOptions()

    def _decide(self) -> None:
        """Let what was held go where the options say, if anywhere."""
        if not isinstance(self._handler, _Buffer):
            return
        held = self._handler.records
        if not self.options.is_anything:
            self._detach()
            return
        handler = self._attach()
        for record in held:
            if record.levelno >= LEVELS[self.options.effective_level]:
                handler.handle(record)

    def _attach(self) -> logging.Handler:
        from lumos.core.logs import (
            FileHandler,
            HumanFormatter,
            JsonFormatter,
            StandardErrorHandler,
        )

        options = self.options
        try:
            handler = FileHandler(options.file) if options.file else StandardErrorHandler()
        except ConfigurationError:
            self._detach()
            self.options = LogOptions()
            raise
        handler.setFormatter(JsonFormatter() if options.format == "json" else HumanFormatter())
        self._put(handler, LEVELS[options.effective_level])
        return handler

    def _put(self, handler: logging.Handler, level: int) -> None:
        self._detach()
        logger = logging.getLogger(ROOT_LOGGER)
        self._level_before = logger.level
        logger.setLevel(level)
        logger.addHandler(handler)
        self._handler = handler

    def _detach(self) -> None:
        if self._handler is not None:
            logger = logging.getLogger(ROOT_LOGGER)
            logger.removeHandler(self._handler)
            logger.setLevel(self._level_before)
            self._handler.close()
            self._handler = None


LOG: Final = CommandLog()
"""That of the command which this process runs; Python has one set of loggers for each process."""


def watched_by_a_person() -> bool:
    """Return whether a progress display may have standard error for itself."""
    return sys.stderr.isatty() and not LOG.is_on_standard_error
