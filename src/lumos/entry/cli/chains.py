"""`lumos run`: several operations in a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lumos.bootstrap import Dispatcher
from lumos.core.errors import EXIT_GATE_FAILED
from lumos.core.requests.base import Listener
from lumos.core.requests.project import RunRequest
from lumos.core.run_report import RunReport
from lumos.entry.cli.output import AsJson, StoppedError, print_json, print_report

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import BaseModel, JsonValue


def run(
    context: typer.Context,
    steps: Annotated[
        list[str], typer.Argument(metavar="OPERATION", help="What to do, as listed above.")
    ],
    strict: Annotated[bool, typer.Option("--strict", help="End with 1 if an item failed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run operations in order; an error ends the chain.

    \b
    ingest:FILE            scan the sources of a settings file on Spark
    import:FILE            read a snapshot into the catalog
    export:FILE            write the catalog to a file
    validate:FILE          check a snapshot
    snapshot               store what the catalog holds
    create-users:FILE      create the users of a file
    create-groups:FILE     create the groups of a file
    assign-ownership:FILE  give datasets their owners
    enrich:FILE            add tags, documentation and properties
    report:FILE            write the page on the catalog
    sync:CATALOG           bring another catalog up to date

    Steps after ingest:FILE work on the project of that FILE.

    Example: lumos run import:january.json enrich:docs.yaml snapshot
    """  # noqa: D301 - the help needs the character itself
    dispatcher: Dispatcher = context.obj
    done: list[RunReport] = []

    def on_step(report: BaseModel) -> None:
        if isinstance(report, RunReport):
            done.append(report)
            if not as_json:
                print_report(report)

    try:
        dispatcher.dispatch(RunRequest(steps=tuple(steps)), Listener(on_interim=on_step))
    except BaseException as error:
        if not done:
            raise
        raise StoppedError(error, answer=_answer(done)) from error
    if as_json:
        print_json(_answer(done))
    if strict and any(report.failed for report in done):
        raise typer.Exit(EXIT_GATE_FAILED)


def _answer(reports: Iterable[RunReport]) -> dict[str, JsonValue]:
    return {"steps": [report.as_json() for report in reports]}
