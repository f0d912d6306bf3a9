"""`lumos version show`, `compute`, `apply` and `history`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.bootstrap import Dispatcher
from lumos.core.errors import EXIT_GATE_FAILED
from lumos.core.requests.base import Listener
from lumos.core.requests.versions import (
    VersionApplyRequest,
    VersionComputeRequest,
    VersionShowRequest,
)
from lumos.entry.cli.history import history
from lumos.entry.cli.look import is_text
from lumos.entry.cli.output import (
    AsJson,
    counted,
    print_badge,
    print_json,
    print_line,
    print_report,
    refuse_if_behind,
)
from lumos.entry.cli.progress import progress
from lumos.entry.cli.snapshot_options import Edited

if TYPE_CHECKING:
    from lumos.feature.versioning.results import (
        ComputedVersion,
        VersionCounts,
        VersionScanResult,
        VersionsResult,
    )

app = typer.Typer(
    help="Show, compute and apply versions of datasets.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
app.command("history")(history)

_SHOWN = 50
_LISTED = 1_000
_BATCH = 500
From = Annotated[
    str | None,
    typer.Option("--from", help="The snapshot to compare with; the history if not given."),
]
To = Annotated[
    str | None,
    typer.Option("--to", help="The snapshot that gets versions; the state if not given."),
]
Retire = Annotated[
    bool, typer.Option("--retire", help="Also version datasets that are gone, as removed.")
]
Listed = Annotated[
    int, typer.Option("--limit", min=0, max=10**9, help="How many to list; 0 for all.")
]


@app.command()
def show(
    context: typer.Context,
    dataset: Annotated[
        str | None,
        typer.Argument(callback=is_text, help="A URN or a name; all datasets if not given."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10**9, help="How many to show.")] = _SHOWN,
    after: Annotated[
        str, typer.Option(callback=is_text, help="Go on after this URN, the last one shown.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Show the versions that datasets have now, with their cloud versions.

    Example: lumos version show orders
    """
    dispatcher: Dispatcher = context.obj
    found = dispatcher.dispatch(VersionShowRequest(dataset=dataset, limit=limit, after=after))
    if as_json:
        print_json(found.as_json())
        return
    for line in _current_lines(found):
        print_line(line)


@app.command()
def compute(
    context: typer.Context,
    source: From = None,
    target: To = None,
    retire: Retire = False,
    edited: Edited = False,
    limit: Listed = _LISTED,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="End with 1 when a declared version is too low or an item cannot be read.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say which version each dataset would get; nothing is written.

    Example: lumos version compute --from january.json --to february.json
    """
    dispatcher: Dispatcher = context.obj
    request = VersionComputeRequest(
        source=source, target=target, retire=retire, edited=edited, limit=limit
    )
    with progress("version") as told:
        found = dispatcher.dispatch(request, Listener(told))
    if as_json:
        print_json(found.as_json())
    else:
        _print_scan(found)
    if strict and (found.declared or found.failed):
        raise typer.Exit(EXIT_GATE_FAILED)


@app.command()
def apply(
    context: typer.Context,
    source: From = None,
    target: To = None,
    retire: Retire = False,
    edited: Edited = False,
    limit: Listed = _LISTED,
    batch_size: Annotated[
        int, typer.Option(min=1, max=100_000, help="How many are written at once.")
    ] = _BATCH,
    alert: Annotated[
        bool | None,
        typer.Option(
            "--alert/--no-alert",
            help="Alert owners of breaking changes, or do not; by default not of snapshots.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the versions that datasets get; running it again writes nothing twice.

    Example: lumos version apply
    """
    dispatcher: Dispatcher = context.obj
    request = VersionApplyRequest(
        source=source,
        target=target,
        retire=retire,
        edited=edited,
        limit=limit,
        batch_size=batch_size,
        alert=alert,
    )
    with progress("version") as told:
        found = dispatcher.dispatch(request, Listener(told))
    if as_json:
        print_json(found.as_json())
    else:
        _print_scan(found)
        if found.report.failed:
            print_report(found.report)
    refuse_if_behind(found.report)


def _current_lines(found: VersionsResult) -> Iterator[str]:
    width = max((len(each.dataset) for each in found.datasets), default=0)
    for each in found.datasets:
        cloud = f"  {each.cloud_version}" if each.cloud_version else ""
        kind = each.change_type or "FIRST"
        when = f"{each.timestamp:%Y-%m-%d %H:%M}"
        yield f"{each.dataset:<{width}}  {each.version:<9}{when}{cloud}  {kind}"
    if found.mapping:
        pairs = (f"{each.cloud_version} = {each.schema_version}" for each in found.mapping)
        yield "  " + ", ".join(pairs)
    left = found.total - len(found.datasets)
    if left > 0 and found.datasets:
        last = found.datasets[-1].dataset
        yield f"{len(found.datasets):,} of {found.total:,}; the next: --after {last}"
    if not found.datasets:
        yield "no versions"


def _print_scan(found: VersionScanResult) -> None:
    for version in found.versions:
        print_line(_computed_line(version))
    if found.omitted:
        print_line(f"... and {found.omitted:,} more; --limit 0 lists all")
    for change in found.declared:
        print_badge(change.level.value, f"{change.dataset}: {change.message} ({change.rule})")
    verb = "would get" if found.dry_run else "got"
    print_line(f"{counted(found.counts.new, 'dataset')} {verb} a version: {_counted(found.counts)}")
    if found.gone:
        hint = "--retire says so in the history"
        print_line(f"{counted(found.gone, 'dataset')} gone from {found.target}; {hint}")
    if found.outdated:
        why = f"the history is newer than {found.target}"
        print_line(f"{counted(found.outdated, 'dataset')} left alone: {why}")
    for item in found.failed if found.dry_run else ():
        print_badge("fail", f"{item.item}: {item.reason} ({item.hint})")


def _computed_line(version: ComputedVersion) -> str:
    before = f"{version.previous_version} -> " if version.previous_version else ""
    kind = version.change_type or "FIRST"
    mark = "  BREAKING" if version.backward_compatible is False else ""
    cloud = f"  {version.cloud_version}" if version.cloud_version else ""
    return f"{version.dataset}  {before}{version.version}{cloud}  {kind}{mark}"


def _counted(counts: VersionCounts) -> str:
    return (
        f"{counts.first:,} first, {counts.major:,} major, {counts.minor:,} minor, "
        f"{counts.patch:,} patch; {counts.unchanged:,} unchanged"
    )
