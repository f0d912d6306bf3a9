"""The one place where errors become a line of text, a JSON object and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer
from typer.exceptions import TyperException
from typer.main import get_command

from lumos.core.errors import EXIT_DONE, EXIT_INTERNAL, EXIT_USAGE, LumosError
from lumos.core.redaction import PROCESS_SECRETS

if TYPE_CHECKING:
    from pydantic import JsonValue

_EXIT_INTERRUPTED = 130


def run_within_boundary(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code; no exception gets past."""
    debug, as_json = "--debug" in arguments, "--json" in arguments
    try:
        result = get_command(app).main(
            args=list(arguments), prog_name="lumos", standalone_mode=False
        )
        sys.stdout.flush()
    except TyperException as error:
        return _usage_error(error, as_json=as_json)
    except LumosError as error:
        _report(error, as_json=as_json, debug=debug)
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("interrupted", err=True)
        return _EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader, such as `head`, has all it wants. What is still buffered must go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_DONE
    except Exception as error:  # noqa: BLE001 - the boundary is where unexpected errors end
        _report(_unexpected(error), as_json=as_json, debug=debug)
        return EXIT_INTERNAL
    return result if isinstance(result, int) else EXIT_DONE


def _usage_error(error: TyperException, *, as_json: bool) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(error.format_message())
        return EXIT_USAGE
    context: typer.Context | None = getattr(error, "ctx", None)
    command = context.command_path if context else "lumos"
    _write(
        message=error.format_message(),
        hint=f"see {command} --help",
        as_json={"code": "LUM-110", "message": error.format_message(), "retryable": False}
        if as_json
        else None,
    )
    return EXIT_USAGE


def _unexpected(error: Exception) -> LumosError:
    raised = LumosError(
        f"internal error: {type(error).__name__}: {error}",
        hint="run again with --debug for the trace, and please report it",
    )
    return raised.with_traceback(error.__traceback__)


def _report(error: LumosError, *, as_json: bool, debug: bool) -> None:
    if debug:
        trace = "".join(traceback.format_exception(error))
        typer.echo(PROCESS_SECRETS.redact(trace), err=True)
    _write(message=error.message, hint=error.hint, as_json={**error.as_json()} if as_json else None)


def _write(*, message: str, hint: str | None, as_json: dict[str, JsonValue] | None) -> None:
    """Write one line to standard error and, for machines, one object to standard output."""
    line = f"lumos: {message}" + (f" ({hint})" if hint else "")
    typer.echo(PROCESS_SECRETS.redact(" ".join(line.split())), err=True)
    if as_json is not None:
        import orjson

        texts = {
            name: PROCESS_SECRETS.redact(value) if isinstance(value, str) else value
            for name, value in as_json.items()
        }
        typer.echo(orjson.dumps({"error": texts}, option=orjson.OPT_INDENT_2).decode())
