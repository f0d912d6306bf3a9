"""`lumos state move`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lumos.bootstrap import Dispatcher
from lumos.core.requests.base import Listener
from lumos.core.requests.project import StateMoveRequest
from lumos.entry.cli.output import AsJson, counted, print_badge, print_json, print_line
from lumos.entry.cli.progress import progress

if TYPE_CHECKING:
    from lumos.core.controllers.results import StateMoveResult

app = typer.Typer(
    help="Move the state database.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.callback()
def state() -> None:
    """Move the state database."""


@app.command()
def move(
    context: typer.Context,
    to: Annotated[
        str,
        typer.Option("--to", help="An empty place: a file, sqlite:///PATH or postgresql://…"),
    ],
    as_json: AsJson = False,
) -> None:
    """Copy the whole state, history included, to another database, and compare both.

    The settings and the present database are not changed.

    Example: lumos state move --to postgresql://lumos@db.example.com/lumos
    """
    dispatcher: Dispatcher = context.obj
    with progress("state move") as shown:
        result = dispatcher.dispatch(StateMoveRequest(to=to), Listener(shown))
    if as_json:
        print_json(result.as_json())
    else:
        _print(result)


def _print(result: StateMoveResult) -> None:
    print_line(f"copied {result.source} to {result.destination}")
    for table in result.tables:
        print_line(f"  {table.name:<20} {table.rows:>10,}  sha256 {table.checksum[:16]}")
    rows = sum(table.rows for table in result.tables)
    print_line(f"{counted(rows, 'row')}, equal in both databases")
    if result.damaged:
        left = result.damaged - len(result.damaged_rows)
        more = f" and {left:,} more" if left else ""
        print_badge(
            "warn",
            f"{counted(result.damaged, 'row')} did not match their checksums before and were "
            f"copied unchanged: {', '.join(result.damaged_rows)}{more}",
        )
    for path in result.left_in_place:
        print_line(f"stays where it is: {path}")
    print_line(f"next: {result.next_step}")
