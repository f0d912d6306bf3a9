"""`lumos run`: several operations in a row."""

from __future__ import annotations

from typing import Annotated

import typer

from lumos.bootstrap import Application
from lumos.core.errors import EXIT_GATE_FAILED
from lumos.entry.cli.output import AsJson, print_json, print_report


def run(
    context: typer.Context,
    steps: Annotated[list[str], typer.Argument(metavar="OP[:ARG]...", help="The operations.")],
    strict: Annotated[bool, typer.Option("--strict", help="End with 1 if an item failed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run operations in order; an error ends the chain.

    Operations: import:FILE, export:FILE, validate:FILE, snapshot, create-users:FILE,
    create-groups:FILE, assign-ownership:FILE, enrich:FILE.

    Example: lumos run import:january.json enrich:docs.yaml snapshot
    """
    application: Application = context.obj
    result = application.chains.run(steps)
    if as_json:
        print_json(result.as_json())
    else:
        for report in result.steps:
            print_report(report)
    if strict and any(report.failed for report in result.steps):
        raise typer.Exit(EXIT_GATE_FAILED)
