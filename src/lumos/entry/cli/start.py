"""`lumos init` and `lumos doctor`."""

from __future__ import annotations

import typer

from lumos.bootstrap import Dispatcher
from lumos.core.errors import EXIT_GATE_FAILED
from lumos.core.requests.base import Listener
from lumos.core.requests.project import DoctorRequest, InitRequest
from lumos.entry.cli.output import AsJson, print_badge, print_json, print_line
from lumos.entry.cli.progress import progress


def init(context: typer.Context, as_json: AsJson = False) -> None:
    """Write a first lumos.yaml here and make the state database. Nothing is overwritten.

    Example: lumos init
    """
    dispatcher: Dispatcher = context.obj
    result = dispatcher.dispatch(InitRequest())
    if as_json:
        print_json(result.as_json())
        return
    made = "wrote" if result.settings_created else "kept"
    print_line(f"{made} {result.settings_file}")
    print_line(f"state database: {result.state}")
    if result.ignored:
        print_line(f"added to .gitignore: {' '.join(result.ignored)}")
    print_line("next: name your sources in lumos.yaml, then lumos ingest")


def doctor(context: typer.Context, as_json: AsJson = False) -> None:
    """Check Python, Java, Spark, settings, state and disk; connect to each source and catalog.

    Ends with exit code 1 when a check fails. Example: lumos doctor
    """
    dispatcher: Dispatcher = context.obj
    with progress("doctor") as told:
        report = dispatcher.dispatch(DoctorRequest(), Listener(told))
    if as_json:
        print_json(report.as_json())
    else:
        for check in report.checks:
            hint = f" ({check.hint})" if check.hint else ""
            detail = check.detail.replace("\n", "\n  ")
            print_badge(check.status, f"{check.name}: {detail}{hint}")
    if not report.ok:
        raise typer.Exit(EXIT_GATE_FAILED)
