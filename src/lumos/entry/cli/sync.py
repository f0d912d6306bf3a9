"""`lumos sync`: another catalog is brought up to what Lumos knows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.bootstrap import Dispatcher
from lumos.core.errors import EXIT_GATE_FAILED, UsageError
from lumos.core.requests.base import Listener
from lumos.core.requests.sources import SyncRequest
from lumos.entry.cli.output import (
    AsJson,
    counted,
    print_badge,
    print_json,
    print_line,
    print_report,
)
from lumos.entry.cli.snapshot_options import shown_late

if TYPE_CHECKING:
    from pydantic import BaseModel

    from lumos.core.platform.fidelity import FidelityReport
    from lumos.entry.cli.snapshot_options import LateProgress
    from lumos.feature.sync.results import SyncResult

_MOST_NAMED = 10
_NOTHING_HERE = "the state holds no such dataset: fill it with lumos ingest or lumos import"


def sync(
    context: typer.Context,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", help="The catalog to bring up to date; or sqlite:///FILE of another."
        ),
    ],
    everything: Annotated[
        bool, typer.Option("--all", help="All datasets; the only way in which any is removed.")
    ] = False,
    source: Annotated[
        list[str] | None,
        typer.Option(help="Only datasets of this source; may be repeated.", show_default=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Compare everything, not only what changed here.")
    ] = False,
    max_removals: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="How many may be removed this time, whatever share of all they are.",
            show_default=False,
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="End with 1 if an item failed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Send a catalog what changed since it was last brought up to date, and nothing else.

    Descriptions, tags and owners that people changed there stay, unless sync.truth says otherwise.

    Example: lumos sync --all --output datahub --dry-run
    """
    if everything == bool(source):
        raise UsageError("give either --all or --source", hint="lumos sync --all --output CATALOG")
    dispatcher: Dispatcher = context.obj
    request = SyncRequest(
        output=output,
        sources=tuple(source or ()),
        full=full,
        dry_run=dry_run,
        max_removals=max_removals,
    )
    with shown_late("sync") as shown:
        listener = Listener(shown) if as_json else Listener(shown, partial(print_planned, shown))
        result = dispatcher.dispatch(request, listener)
    if as_json:
        print_json(result.as_json())
    else:
        print_sync(result)
        if "dataset" not in result.kinds:
            print_badge("warn", _NOTHING_HERE)
    if strict and result.report.failed:
        raise typer.Exit(EXIT_GATE_FAILED)


def print_sync(result: SyncResult) -> None:
    """Print what a sync did."""
    verb = "would send" if result.dry_run else "sent"
    for kind, each in result.kinds.items():
        if each.new or each.changed or each.removed or each.failed or kind == "dataset":
            print_line(
                f"{kind.replace('_', ' ')}: {each.new:,} new, {each.changed:,} changed, "
                f"{each.unchanged:,} unchanged, {each.removed:,} removed"
                + (f", {each.failed:,} failed" if each.failed else "")
            )
    if result.conflicts:
        changed = counted(len(result.conflicts), "part")
        print_badge("warn", f"{changed} changed on both sides; the catalog's state was kept:")
        for name in result.conflicts[:_MOST_NAMED]:
            print_line(f"  {name}")
        if (more := len(result.conflicts) - _MOST_NAMED) > 0:
            print_line(f"  and {more:,} more, which --json names")
    for warning in result.report.warnings:
        print_badge("warn", warning)
    if result.report.failed:
        print_report(result.report)
    writes = result.writes
    if result.dry_run:
        writes = sum(each.new + each.changed + each.removed for each in result.kinds.values())
    print_line(f"{verb} {counted(writes, 'write')} to {result.target}")


def print_planned(shown: LateProgress, report: BaseModel) -> None:
    """Print what the catalog keeps of each concept, once nothing else is on the line."""
    from lumos.core.platform.fidelity import FidelityReport

    shown.rest()
    if isinstance(report, FidelityReport):
        print_fidelity(report)


def print_fidelity(report: FidelityReport) -> None:
    """Print what the catalog keeps of each concept."""
    from lumos.core.platform.fidelity import Fidelity

    for fidelity in Fidelity:
        rows = [row for row in report.rows if row.fidelity is fidelity]
        if rows:
            badge = "warn" if fidelity is Fidelity.DROPPED else "ok"
            parts = ", ".join(f"{row.count:,} {row.concept.replace('_', ' ')}" for row in rows)
            print_badge(badge, f"{fidelity.value}: {parts}")
