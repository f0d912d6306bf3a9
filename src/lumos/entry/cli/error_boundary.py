"""The one place where errors become a line of text, a JSON object and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

import typer
from typer.exceptions import TyperException
from typer.main import get_command

from lumos.core.errors import EXIT_DONE, EXIT_USAGE, LumosError, UsageError, notes_of
from lumos.core.redaction import PROCESS_SECRETS
from lumos.entry.cli.output import OutputError, StoppedError, print_json, printable, writing_output

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.entry.cli.log_options import CommandLog

_LOGS: list[CommandLog] = []
_COMPLETION_VARIABLE = "_LUMOS_COMPLETE"


class InterruptedRunError(LumosError):
    """The user stopped the command."""

    code = "LUM-600"
    exit_code = 130


def run_within_boundary(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code; no exception gets past."""
    _hold_closed_streams()
    code = _within_boundary(app, arguments)
    while _LOGS:
        _LOGS.pop().end(code)
    return code


def log_end_to(log: CommandLog) -> None:
    """Let a log hear how the command ends; asking for help makes none."""
    _LOGS.append(log)


def _within_boundary(app: typer.Typer, arguments: Sequence[str]) -> int:
    try:
        code = _run(app, arguments)
        with writing_output():
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as `head`, has all it wants.
        _silence(sys.stdout)
        return EXIT_DONE
    except BaseException as error:  # noqa: BLE001 - the boundary is where unexpected errors end
        return _reported(error, arguments)
    return code


def _run(app: typer.Typer, arguments: Sequence[str]) -> int:
    command = get_command(app)
    if _COMPLETION_VARIABLE in os.environ:
        command.main(args=list(arguments), prog_name="lumos")
    try:
        # Not `main`: that would end the process itself when a pipe breaks or Ctrl-C is pressed.
        with command.make_context("lumos", list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except TyperException as error:
        if type(error).__name__ != "NoArgsIsHelpError":
            raise
        typer.echo(error.format_message())
        return EXIT_USAGE
    return EXIT_DONE


def _reported(error: BaseException, arguments: Sequence[str]) -> int:
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else EXIT_DONE
    answer: dict[str, JsonValue] = {}
    if isinstance(error, StoppedError):
        answer, error = error.answer, error.reason
    told = _as_lumos_error(error, arguments)
    if "--debug" in arguments:
        trace = "".join(traceback.format_exception(error))
        _write_error(trace.rstrip("\n"))
    for log in _LOGS:
        log.failed(told)
    if not any(log.is_json_on_standard_error for log in _LOGS):  # whose lines are all JSON
        line = f"lumos: {told.message}" + (f" ({told.hint})" if told.hint else "")
        _write_error(" ".join("; ".join((line, *notes_of(error))).split()))
    if isinstance(told, OutputError):
        _silence(sys.stdout)
    elif "--json" in arguments:
        _write_answer({**answer, "error": _detail(told, notes_of(error))})
    return told.exit_code


def _as_lumos_error(error: BaseException, arguments: Sequence[str]) -> LumosError:
    if isinstance(error, LumosError):
        return error
    if isinstance(error, TyperException):
        context: typer.Context | None = getattr(error, "ctx", None)
        command = context.command_path if context else "lumos"
        return UsageError(error.format_message(), hint=f"see {command} --help")
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return InterruptedRunError("interrupted")
    if isinstance(error, OSError) and _is_from_printing(error):
        return OutputError.of(error)
    for place, argument in enumerate(arguments, start=1):
        if not _is_text(argument):
            return UsageError(
                f"argument {place} is not UTF-8 text: {argument}",
                hint="check the encoding of the terminal or of the script",
            )
    return LumosError(
        f"internal error: {type(error).__name__}: {error}",
        hint="run again with --debug for the trace, and please report it",
    )


def _detail(error: LumosError, notes: Sequence[str]) -> dict[str, JsonValue]:
    from lumos.core.settings.problems import InvalidSettingsError

    detail: dict[str, JsonValue] = {
        name: _harmless(value) if isinstance(value, str) else value
        for name, value in error.as_json().items()
    }
    if isinstance(error, InvalidSettingsError):
        detail["problems"] = [_harmless(line) for line in error.lines()]
    if notes:
        detail["notes"] = [_harmless(note) for note in notes]
    return detail


def _harmless(text: str) -> str:
    return printable(PROCESS_SECRETS.redact(text))


def _write_error(text: str) -> None:
    """Write to standard error; where that fails too, give up."""
    try:
        typer.echo(_harmless(text), err=True)
    except (OSError, ValueError):
        _silence(sys.stderr)


def _write_answer(document: dict[str, JsonValue]) -> None:
    try:
        print_json(document)
    except (OSError, OutputError):
        _silence(sys.stdout)  # the line on standard error has said what failed


def _is_text(argument: str) -> bool:
    try:
        argument.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_from_printing(error: OSError) -> bool:
    """Return whether typer raised it: all that it writes is help on standard output."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return str(frames[-1].f_globals.get("__name__")).startswith("typer.")


def _silence(stream: TextIO) -> None:
    """Let what is still buffered go nowhere; else Python tries again as it ends, and complains."""
    with suppress(OSError, ValueError):  # a stream of a test or a notebook has no file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _hold_closed_streams() -> None:
    """Keep files that Lumos opens off the numbers of standard streams that were closed.

    A closed standard output refuses what is written, as a full one does.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - it lives with the process
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open until the end
