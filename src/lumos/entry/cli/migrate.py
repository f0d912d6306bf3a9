"""`lumos migrate`: all metadata of one catalog moves to another, with proof."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lumos.bootstrap import Dispatcher
from lumos.core.errors import EXIT_GATE_FAILED, UsageError
from lumos.core.requests.base import Listener
from lumos.core.requests.snapshots import MigrateRequest
from lumos.entry.cli.migration_text import print_migration
from lumos.entry.cli.output import (
    AsJson,
    counted,
    print_badge,
    print_json,
    print_line,
    print_warnings,
)
from lumos.entry.cli.snapshot_options import one_pair, shown_late

if TYPE_CHECKING:
    from pydantic import BaseModel

    from lumos.core.controllers.results import MigrationResult

_LARGEST_BATCH = 100_000


def migrate(
    context: typer.Context,
    read: Annotated[
        str | None,
        typer.Argument(metavar="FROM", help="The catalog to read.", show_default=False),
    ] = None,
    filled: Annotated[
        str | None, typer.Argument(metavar="TO", help="The catalog to fill.", show_default=False)
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="FROM", help="The same as FROM.", show_default=False),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--to", metavar="TO", help="The same as TO.", show_default=False)
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Export and check, but write nothing to the target.")
    ] = False,
    skip_existing: Annotated[
        bool, typer.Option("--skip-existing", help="Leave what the target has as it is.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Give what the target has the source's state alone.")
    ] = False,
    batch_size: Annotated[
        int, typer.Option(min=1, max=_LARGEST_BATCH, help="Datasets between two checkpoints.")
    ] = 500,
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin anew, also where one was interrupted.")
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="End with 1 also if anything else is lacking or not the same."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Move all metadata from one catalog to another and compare both afterwards.

    Ends with 1 unless all datasets and lineage edges arrived. What the target says it drops, which
    is printed before the first write, is no reason to do so.

    Example: lumos migrate datahub openmetadata --dry-run
    """
    from lumos.core.controllers.results import MigrationResult
    from lumos.feature.importing.plan import ImportMode

    if skip_existing and overwrite:
        raise UsageError("give one of --skip-existing and --overwrite")
    mode = ImportMode.OVERWRITE if overwrite else ImportMode.UPDATE
    origin, destination = one_pair((read, filled), (source, target), names=("--from", "--to"))
    dispatcher: Dispatcher = context.obj
    with shown_late("migrate") as shown:

        def planned(result: BaseModel) -> None:
            shown.rest()
            if not as_json and isinstance(result, MigrationResult):
                _print_plan(result)

        request = MigrateRequest(
            source=origin,
            target=destination,
            mode=ImportMode.SKIP_EXISTING if skip_existing else mode,
            dry_run=dry_run,
            restart=restart,
            batch_size=batch_size,
        )
        result = dispatcher.dispatch(request, Listener(shown, planned))
    if as_json:
        print_json(result.as_json())
    elif dry_run:
        _print_plan(result)
        if result.imported is not None:
            print_line(f"would import: {result.imported.in_words}")
        print_line(f"would migrate {result.source} to {result.target}; nothing was written")
    else:
        _print_outcome(result)
    if not (dry_run or (result.arrived if strict else result.verified)):
        raise typer.Exit(EXIT_GATE_FAILED)


def _print_plan(result: MigrationResult) -> None:
    from lumos.entry.cli.sync import print_fidelity

    if result.resumed:
        print_badge(
            "warn",
            f"goes on with what an interrupted migration had read of {result.source}; "
            "--restart reads it anew",
        )
    for check in result.validation.checks:
        print_badge(check.status, check.message)
    print_fidelity(result.fidelity)
    for each in result.unreadable:
        print_badge("warn", f"not readable: {each.item}: {each.reason}")


def _print_outcome(result: MigrationResult) -> None:
    if result.imported is not None:
        print_line(f"imported: {result.imported.in_words}")
        print_warnings(result.imported.report)
    print_migration(result.checks)
    if result.imported is not None and result.imported.report.failed:
        refused = counted(len(result.imported.report.failed), "item")
        print_badge("warn", f"{refused} refused by {result.target}; the report names them")
    for file in result.reports:
        print_line(f"report: {file}")
