"""`lumos demo`: from nothing to a reported change."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.bootstrap import Dispatcher
from lumos.core.requests.base import Listener
from lumos.core.requests.project import DemoCleanRequest, DemoRequest
from lumos.entry.cli.ingest import print_ingestion
from lumos.entry.cli.output import AsJson, print_json, print_line
from lumos.entry.cli.progress import progress

if TYPE_CHECKING:
    from lumos.core.controllers.results import DemoResult


def demo(
    context: typer.Context,
    path: Annotated[Path, typer.Option("--path", help="The folder to work in.")] = Path(
        "lumos-demo"
    ),
    clean: Annotated[bool, typer.Option("--clean", help="Only remove an earlier demo.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make a small data lake, ingest it, change it, and show what Lumos noticed.

    Works offline, in a new folder, and can be repeated.

    Example: lumos demo
    """
    dispatcher: Dispatcher = context.obj
    if clean:
        removed = dispatcher.dispatch(DemoCleanRequest(folder=path)).removed
        print_line(f"removed {path}" if removed else f"there is no demo in {path}")
        return
    with progress("demo") as shown:
        result = dispatcher.dispatch(DemoRequest(folder=path), Listener(shown))
    if as_json:
        print_json(result.as_json())
    else:
        _print_text(result)


def _print_text(result: DemoResult) -> None:
    print_line(f"A shop's data lake in {result.lake}, as it was on the first day:")
    print_line()
    print_ingestion(result.first)
    print_line()
    print_line("The next day some of it has changed:")
    print_line()
    print_ingestion(result.second)
    print_line()
    print_line(result.verdict)
    print_line(f"report: {result.report}")
    folder, lumos = shlex.quote(str(result.folder)), _own_command()
    print_line(f"look around: cd {folder} && {lumos} search customer && {lumos} history orders")
    print_line(f"clean up: {lumos} demo --path {folder} --clean")


def _own_command() -> str:
    """Return how this command is called from any folder: `lumos`, where that is on the PATH."""
    own = Path(sys.argv[0]).absolute()
    found = shutil.which("lumos")
    if own.name != "lumos":  # run as a module
        return "lumos" if found else f"{shlex.quote(sys.executable)} -m lumos"
    return "lumos" if found and Path(found).absolute() == own else shlex.quote(str(own))
