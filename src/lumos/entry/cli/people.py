"""`lumos ownership users`, `groups` and `assign`, and `lumos enrich`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.bootstrap import Dispatcher
from lumos.core.errors import EXIT_GATE_FAILED
from lumos.core.requests.people import (
    EnrichRequest,
    OwnershipAssignRequest,
    OwnershipGroupsRequest,
    OwnershipUsersRequest,
)
from lumos.entry.cli.output import AsJson, print_json, print_report, refuse_if_behind

if TYPE_CHECKING:
    from lumos.core.run_report import RunReport

app = typer.Typer(
    help="Users, groups and owners by file.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
File = Annotated[Path, typer.Argument(help="A YAML or JSON file.")]
Lenient = Annotated[bool, typer.Option("--lenient", help="End with 0 also if an item failed.")]
Strict = Annotated[bool, typer.Option("--strict", hidden=True, help="What happens anyway.")]


@app.command()
def users(
    context: typer.Context,
    file: File,
    lenient: Lenient = False,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Create the users of a file. Ends with 1 if an item of the file failed.

    Example: lumos ownership users users.yaml
    """
    dispatcher: Dispatcher = context.obj
    _print(
        dispatcher.dispatch(OwnershipUsersRequest(file=file)),
        lenient=lenient and not strict,
        as_json=as_json,
    )


@app.command()
def groups(
    context: typer.Context,
    file: File,
    lenient: Lenient = False,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Create the groups of a file. Ends with 1 if an item of the file failed.

    Example: lumos ownership groups groups.yaml
    """
    dispatcher: Dispatcher = context.obj
    _print(
        dispatcher.dispatch(OwnershipGroupsRequest(file=file)),
        lenient=lenient and not strict,
        as_json=as_json,
    )


@app.command()
def assign(
    context: typer.Context,
    file: File,
    lenient: Lenient = False,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Give datasets their owners. Ends with 1 if an item of the file failed.

    Example: lumos ownership assign owners.yaml
    """
    dispatcher: Dispatcher = context.obj
    _print(
        dispatcher.dispatch(OwnershipAssignRequest(file=file)),
        lenient=lenient and not strict,
        as_json=as_json,
    )


def enrich(
    context: typer.Context,
    file: File,
    lenient: Lenient = False,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Add tags, documentation, properties and glossary terms. Ends with 1 if an item failed.

    Example: lumos enrich docs.yaml
    """
    dispatcher: Dispatcher = context.obj
    _print(
        dispatcher.dispatch(EnrichRequest(file=file)),
        lenient=lenient and not strict,
        as_json=as_json,
    )


def _print(report: RunReport, *, lenient: bool, as_json: bool) -> None:
    if as_json:
        print_json(report.as_json())
    else:
        print_report(report)
    refuse_if_behind(report)
    if report.failed and not lenient:
        raise typer.Exit(EXIT_GATE_FAILED)
