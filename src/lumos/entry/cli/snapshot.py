"""`lumos snapshot create`, `list` and `verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from lumos.bootstrap import Application
from lumos.core.errors import CorruptSnapshotError
from lumos.entry.cli.output import AsJson, counted, print_badge, print_json, print_line

app = typer.Typer(
    help="Create, list and verify snapshots.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.command()
def create(
    context: typer.Context,
    platform: Annotated[
        str | None, typer.Option(help="The catalog to take it from; else that of the settings.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Store what the catalog holds now.

    Example: lumos snapshot create
    """
    application: Application = context.obj
    before = application.snapshots.list().snapshots
    info = application.snapshots.create(platform)
    if as_json:
        print_json(info.model_dump(mode="json"))
    else:
        datasets = counted(info.statistics.datasets, "dataset")
        print_line(f"snapshot {info.id}: {datasets}, {info.bytes:,} bytes")
        if before and before[-1].content_hash == info.content_hash:
            print_line(f"same content as {before[-1].id}")


@app.command("list")
def list_(context: typer.Context, as_json: AsJson = False) -> None:
    """List the stored snapshots, oldest first.

    Example: lumos snapshot list
    """
    application: Application = context.obj
    listing = application.snapshots.list()
    if as_json:
        print_json(listing.as_json())
        return
    for info in listing.snapshots:
        print_line(f"{info.id}  {info.problem or counted(info.statistics.datasets, 'dataset')}")
    if not listing.snapshots:
        print_line("no snapshot yet; make one with: lumos snapshot create")


@app.command()
def verify(
    context: typer.Context,
    snapshot: Annotated[
        str | None, typer.Argument(help="An id or `latest`; all snapshots if not given.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check every byte of a snapshot against its checksums. Ends with 3 when one is damaged.

    Example: lumos snapshot verify latest
    """
    application: Application = context.obj
    result = application.snapshots.verify(snapshot)
    if as_json:
        print_json(result.as_json())
    for report in result.reports:
        for problem in report.problems:
            typer.echo(f"lumos: {problem}", err=True)
        if not as_json and not report.problems:
            print_badge(
                "ok", f"{report.id}: {counted(report.parts, 'part')}, {report.bytes:,} bytes"
            )
    if not result.ok:
        raise typer.Exit(CorruptSnapshotError.exit_code)
