"""`lumos ingest` and `lumos discover`: what Spark finds in the sources."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.bootstrap import Dispatcher
from lumos.core.errors import EXIT_GATE_FAILED, EXIT_UNREADABLE
from lumos.core.requests.base import Listener
from lumos.core.requests.sources import DiscoverRequest, IngestRequest
from lumos.entry.cli.output import (
    AsJson,
    print_changes,
    print_json,
    print_line,
    print_notice,
    print_report,
)
from lumos.entry.cli.progress import progress
from lumos.entry.cli.sync import print_sync

if TYPE_CHECKING:
    from lumos.core.controllers.results import IngestResult

Strict = Annotated[
    bool, typer.Option("--strict", help="End with 1 if something could not be read.")
]


def ingest(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="Settings file with the sources.")
    ] = None,
    source: Annotated[
        list[str] | None, typer.Option("--source", help="Only this source; may be repeated.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would change, write nothing.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Open every file, also unchanged ones.")
    ] = False,
    run_timestamp: Annotated[
        str | None,
        typer.Option(
            "--run-timestamp", help="Only the partition of this time, such as 2024-01-31."
        ),
    ] = None,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Scan the sources on Spark, version what changed and store a snapshot.

    Files that cannot be read are named and do not stop the run. A second run opens only files
    that changed.

    Example: lumos ingest --config sources.yaml
    """
    dispatcher: Dispatcher = context.obj
    request = IngestRequest(
        sources=tuple(source or ()), dry_run=dry_run, full=full, run_timestamp=run_timestamp
    )
    with progress("ingest") as shown:
        result = dispatcher.of(config).dispatch(request, Listener(shown))
    _print(result, strict=strict, as_json=as_json)


def discover(
    context: typer.Context,
    prefix: Annotated[
        str, typer.Argument(help="A folder, or an address such as s3://bucket/prefix.")
    ],
    write_config: Annotated[
        bool, typer.Option("--write-config", help="Write settings with which to ingest it.")
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file for --write-config.")
    ] = Path("sources.yaml"),
    instance: Annotated[
        str | None,
        typer.Option("--instance", help="The first part of the URNs, as the setting instance."),
    ] = None,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Find the datasets below a folder or an address; the catalog is left alone.

    Example: lumos discover s3://data-lake/raw --write-config
    """
    dispatcher: Dispatcher = context.obj
    request = DiscoverRequest(
        address=prefix, instance=instance, config=output if write_config else None
    )
    with progress("discover") as shown:
        result = dispatcher.dispatch(request, Listener(shown))
    _print(result, strict=strict, as_json=as_json)
    if write_config and not as_json:
        print_line()
        print_line(f"written: {output}; read it through, then: lumos ingest --config {output}")


def _print(result: IngestResult, *, strict: bool, as_json: bool) -> None:
    if as_json:
        print_json(result.as_json())
    else:
        print_ingestion(result)
    if result.sync_error is not None:
        hint = f" ({result.sync_error.hint})" if result.sync_error.hint else ""
        print_notice(
            f"{result.sync_error.code} the sources are ingested, and the catalog is not up to date:"
            f" {result.sync_error.message}{hint}; to go on: lumos ingest"
        )
        raise typer.Exit(EXIT_UNREADABLE)
    failed_there = result.sync is not None and result.sync.report.failed
    if strict and (result.failed or failed_there):
        raise typer.Exit(EXIT_GATE_FAILED)


def print_ingestion(result: IngestResult) -> None:
    """Print what a run found, what changed and what could not be read."""
    files, datasets = result.files, result.datasets
    if files.listed or not datasets.found:  # else no source has files
        print_line(
            f"files: {files.listed:,} listed, {files.opened:,} opened, "
            f"{files.unchanged:,} unchanged, {files.unreadable:,} unreadable"
        )
    for dataset in result.found:
        rows = dataset.statistics.row_count if dataset.statistics else None
        size = f", {rows:,} rows" if rows is not None else ""
        columns = len(dataset.schema.fields)
        print_line(f"  {dataset.urn}  ({dataset.format}, {columns} columns{size})")
    formats = ", ".join(f"{count:,} {name}" for name, count in result.formats.items())
    what_happened = (
        f", {datasets.created:,} new, {datasets.updated:,} updated, "
        f"{datasets.unchanged:,} unchanged, {datasets.removed:,} removed"
    )
    print_line(
        f"datasets: {datasets.found:,} found ({formats or 'none'})"
        + (what_happened if result.operation == "ingest" else "")
    )
    for partition in result.partitions:
        state = partition.state.replace("_", " ")
        print_line(f"  {partition.partition} {state}  {partition.dataset}")
    if result.changes:
        print_line()
        print_changes(result.changes)
        print_line()
    for version in result.versions:
        print_line(f"  {version.previous_version or 'new'} -> {version.version}  {version.dataset}")
    if result.snapshot:
        print_line(f"snapshot: {result.snapshot}")
    if result.failed or result.warnings:
        print_line()
        print_report(result)
    if result.sync is not None:
        print_line()
        print_sync(result.sync)
