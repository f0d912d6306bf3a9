"""`lumos init` and `lumos doctor`."""

from __future__ import annotations

from pathlib import Path

import typer

from lumos.bootstrap import Application
from lumos.core.errors import EXIT_GATE_FAILED
from lumos.entry.cli.output import AsJson, print_badge, print_json, print_line
from lumos.entry.cli.progress import progress


def init(context: typer.Context, as_json: AsJson = False) -> None:
    """Write a first lumos.yaml here and make the state database. Nothing is overwritten.

    Example: lumos init
    """
    application: Application = context.obj
    result = application.system.init(Path())
    if as_json:
        print_json(result.as_json())
        return
    made = "wrote" if result.settings_created else "kept"
    print_line(f"{made} {result.settings_file}")
    print_line(f"state database: {result.state}")
    print_line("next: name your sources in lumos.yaml, then lumos ingest")


def doctor(context: typer.Context, as_json: AsJson = False) -> None:
    """Check Python, Java, Spark, settings, state and disk; connect to each source and catalog.

    Ends with exit code 1 when a check fails. Example: lumos doctor
    """
    application: Application = context.obj
    with progress("doctor") as told:
        report = application.system.doctor(told)
    if as_json:
        print_json(report.as_json())
    else:
        for check in report.checks:
            hint = f" ({check.hint})" if check.hint else ""
            detail = check.detail.replace("\n", "\n  ")
            print_badge(check.status, f"{check.name}: {detail}{hint}")
    if not report.ok:
        raise typer.Exit(EXIT_GATE_FAILED)
