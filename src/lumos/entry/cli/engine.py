"""`lumos engine start`, `stop` and `status`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lumos.bootstrap import Dispatcher
from lumos.core.errors import EXIT_GATE_FAILED
from lumos.core.requests.project import (
    EngineStartRequest,
    EngineStatusRequest,
    EngineStopRequest,
)
from lumos.entry.cli.output import AsJson, print_json, print_line
from lumos.entry.cli.progress import progress

if TYPE_CHECKING:
    from lumos.core.controllers.results import EngineResult

app = typer.Typer(
    help="Keep Spark warm on this machine, so that commands start at once.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
IDLE_MINUTES = 30.0


@app.command()
def start(
    context: typer.Context,
    idle_minutes: Annotated[
        float, typer.Option("--idle-minutes", help="End it after so long without use.")
    ] = IDLE_MINUTES,
    as_json: AsJson = False,
) -> None:
    """Start a Spark that later commands on this machine use. Nothing happens if one runs.

    Example: lumos engine start
    """
    dispatcher: Dispatcher = context.obj
    with progress("engine") as shown:
        shown.note("starting Spark")
        result = dispatcher.dispatch(EngineStartRequest(idle_minutes=idle_minutes))
    _print(result, "started" if result.changed else "runs already", as_json=as_json)


@app.command()
def stop(context: typer.Context, as_json: AsJson = False) -> None:
    """End the engine, also while it is used. Nothing happens if none runs.

    Example: lumos engine stop
    """
    dispatcher: Dispatcher = context.obj
    result = dispatcher.dispatch(EngineStopRequest())
    if as_json:
        print_json(result.as_json())
    else:
        print_line("engine: stopped" if result.changed else "engine: none was running")


@app.command()
def status(context: typer.Context, as_json: AsJson = False) -> None:
    """Return whether an engine runs and fits this project. Ends with 1 if none runs.

    Example: lumos engine status
    """
    dispatcher: Dispatcher = context.obj
    result = dispatcher.dispatch(EngineStatusRequest())
    _print(result, "runs", as_json=as_json)
    if not result.running:
        raise typer.Exit(EXIT_GATE_FAILED)


def _print(result: EngineResult, what: str, *, as_json: bool) -> None:
    if as_json:
        print_json(result.as_json())
    elif (engine := result.engine) is None:
        print_line("engine: none is running")
    else:
        print_line(
            f"engine: {what}, Spark {engine.spark} on {engine.master}, Java {engine.java},"
            f" process {engine.pid}, since {engine.started_at:%Y-%m-%d %H:%M} UTC"
        )
        print_line(f"  ends after {engine.idle_minutes:g} minutes without use; log: {engine.log}")
        if engine.unfit:
            print_line(f"  not used here: {engine.unfit}")
