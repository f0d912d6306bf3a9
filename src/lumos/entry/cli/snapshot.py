"""`lumos snapshot create`, `list`, `verify`, `sign` and `prune`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.bootstrap import Dispatcher
from lumos.core.errors import CorruptSnapshotError
from lumos.core.requests.base import Listener
from lumos.core.requests.snapshots import (
    SnapshotCreateRequest,
    SnapshotListRequest,
    SnapshotPruneRequest,
    SnapshotSignRequest,
    SnapshotVerifyRequest,
)
from lumos.entry.cli.output import (
    AsJson,
    counted,
    print_badge,
    print_json,
    print_line,
    print_unread,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

_MOST = 100_000

app = typer.Typer(
    help="Create, list, verify, sign and prune snapshots.",
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
    dispatcher: Dispatcher = context.obj
    before = dispatcher.dispatch(SnapshotListRequest()).snapshots
    unread: list[BaseModel] = []
    request = SnapshotCreateRequest(platform=platform)
    info = dispatcher.dispatch(request, Listener(on_interim=unread.append))
    if as_json:
        print_json(info.model_dump(mode="json"))
    else:
        datasets = counted(info.statistics.datasets, "dataset")
        print_line(f"snapshot {info.id}: {datasets}, {info.bytes:,} bytes")
        if before and before[-1].content_hash == info.content_hash:
            print_line(f"same content as {before[-1].id}")
    print_unread(unread)


@app.command("list")
def list_(context: typer.Context, as_json: AsJson = False) -> None:
    """List the stored snapshots in the order in which they were stored.

    Example: lumos snapshot list
    """
    dispatcher: Dispatcher = context.obj
    listing = dispatcher.dispatch(SnapshotListRequest())
    if as_json:
        print_json(listing.as_json())
        return
    for info in listing.snapshots:
        print_line(f"{info.id}  {info.problem or counted(info.statistics.datasets, 'dataset')}")
    if not listing.snapshots:
        print_line("no snapshot yet; make one with: lumos snapshot create")
    for warning in listing.warnings:
        print_badge("warn", warning)


@app.command()
def verify(
    context: typer.Context,
    snapshot: Annotated[
        str | None,
        typer.Argument(help="An id, `latest`, a folder or a file; all stored ones if not given."),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(help="A file with a public key: the snapshot has to be signed with it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check every byte of a snapshot against its checksums. Ends with 3 when one is damaged.

    Example: lumos snapshot verify latest

    Example of a signature: lumos snapshot verify backup.json --key release.pub
    """
    dispatcher: Dispatcher = context.obj
    result = dispatcher.dispatch(SnapshotVerifyRequest(snapshot=snapshot, key=key))
    if as_json:
        print_json(result.as_json())
    for report in result.reports:
        for problem in report.problems:
            typer.echo(f"lumos: {problem}", err=True)
        if not as_json and not report.problems:
            parts = f"{counted(report.parts, 'part')}, " if report.parts else ""
            signed = f", signed by {report.signed_by}" if report.signed_by else ""
            print_badge("ok", f"{report.id}: {parts}{report.bytes:,} bytes{signed}")
    if not result.ok:
        raise typer.Exit(CorruptSnapshotError.exit_code)


@app.command()
def sign(
    context: typer.Context,
    snapshot: Annotated[str, typer.Argument(help="An id, `latest`, a folder or a file.")],
    key: Annotated[
        Path, typer.Option(help="A file with a private Ed25519 key, such as ssh-keygen makes.")
    ],
    as_json: AsJson = False,
) -> None:
    """Put a signature beside a snapshot, once every byte of it has been checked.

    Example: lumos snapshot sign backup.json --key release
    """
    dispatcher: Dispatcher = context.obj
    report = dispatcher.dispatch(SnapshotSignRequest(snapshot=snapshot, key=key))
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        print_line(f"signed {report.id} by {report.signed_by}")


@app.command()
def prune(
    context: typer.Context,
    keep_last: Annotated[
        int | None, typer.Option(min=1, max=_MOST, help="Keep so many of the newest.")
    ] = None,
    keep_days: Annotated[
        int | None, typer.Option(min=1, max=_MOST, help="Keep all of the last so many days.")
    ] = None,
    keep_daily: Annotated[
        int | None, typer.Option(min=1, max=_MOST, help="Keep the last of each day, so many days.")
    ] = None,
    keep_weekly: Annotated[
        int | None,
        typer.Option(min=1, max=_MOST, help="Keep the last of each week, so many weeks."),
    ] = None,
    keep_monthly: Annotated[
        int | None,
        typer.Option(min=1, max=_MOST, help="Keep the last of each month, so many months."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove stored snapshots that no rule keeps; the newest always stays.

    Without an option, the rules of `snapshots.retention` in lumos.yaml hold.

    Example: lumos snapshot prune --keep-last 30 --keep-monthly 12 --dry-run
    """
    from lumos.core.store.settings import RetentionSettings

    rules = RetentionSettings(
        keep_last=keep_last,
        keep_days=keep_days,
        keep_daily=keep_daily,
        keep_weekly=keep_weekly,
        keep_monthly=keep_monthly,
    )
    dispatcher: Dispatcher = context.obj
    result = dispatcher.dispatch(SnapshotPruneRequest(rules=rules, dry_run=dry_run))
    if as_json:
        print_json(result.as_json())
        return
    for identity in result.removed:
        print_line(identity)
    verb = "would remove" if dry_run else "removed"
    print_line(
        f"{verb} {counted(len(result.removed), 'snapshot')}, {result.bytes:,} bytes; "
        f"{result.kept:,} stay"
    )
    for warning in result.warnings:
        print_badge("warn", warning)
    if result.unreadable:
        print_badge("warn", f"not readable, so kept: {', '.join(result.unreadable)}")
