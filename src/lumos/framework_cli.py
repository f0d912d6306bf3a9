"""The `lumos` command: global options, the table of commands, the error boundary."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from lumos import __version__
from lumos.entry.cli.lazy_group import LazyCommand, LazyGroup

_START, _SOURCES, _LOOK, _SNAPSHOTS, _PEOPLE, _CHAINS = (
    "Start",
    "Sources",
    "Look",
    "Snapshots and changes",
    "People and docs",
    "Chains",
)
_CLI = "lumos.entry.cli"
OBJECTS_BETWEEN_COLLECTIONS = 100_000

COMMANDS = (
    LazyCommand(
        "init", _START, "Write a first lumos.yaml and make the state.", f"{_CLI}.start:init"
    ),
    LazyCommand("demo", _START, "See Lumos work on a small lake.", f"{_CLI}.demo:demo"),
    LazyCommand("doctor", _START, "Check what Lumos needs here.", f"{_CLI}.start:doctor"),
    LazyCommand("state", _START, "Move the state database.", f"{_CLI}.state:app"),
    LazyCommand(
        "discover", _SOURCES, "Find the datasets below a folder.", f"{_CLI}.ingest:discover"
    ),
    LazyCommand("ingest", _SOURCES, "Scan the sources on Spark.", f"{_CLI}.ingest:ingest"),
    LazyCommand("sync", _SOURCES, "Bring another catalog up to date.", f"{_CLI}.sync:sync"),
    LazyCommand("profile", _SOURCES, "Look at the data of datasets.", f"{_CLI}.profile:profile"),
    LazyCommand("watch", _SOURCES, "Keep the catalog current from events.", f"{_CLI}.watch:watch"),
    LazyCommand("engine", _SOURCES, "Keep Spark warm on this machine.", f"{_CLI}.engine:app"),
    LazyCommand("search", _LOOK, "Find datasets by words.", f"{_CLI}.look:search"),
    LazyCommand("list", _LOOK, "List datasets.", f"{_CLI}.look:list_"),
    LazyCommand("show", _LOOK, "Show all that is known of a dataset.", f"{_CLI}.look:show"),
    LazyCommand("history", _LOOK, "List the versions of a dataset.", f"{_CLI}.history:history"),
    LazyCommand("compare", _LOOK, "Compare two versions of a dataset.", f"{_CLI}.history:compare"),
    LazyCommand(
        "version", _LOOK, "Show, compute and apply versions in bulk.", f"{_CLI}.version:app"
    ),
    LazyCommand(
        "alerts", _LOOK, "Send alerts on breaking changes, and list them.", f"{_CLI}.alerts:app"
    ),
    LazyCommand("report", _LOOK, "Write a page on the catalog.", f"{_CLI}.report:report"),
    LazyCommand(
        "snapshot", _SNAPSHOTS, "Create, list and verify snapshots.", f"{_CLI}.snapshot:app"
    ),
    LazyCommand("export", _SNAPSHOTS, "Write a catalog to one file.", f"{_CLI}.portable:export"),
    LazyCommand("validate", _SNAPSHOTS, "Check a snapshot.", f"{_CLI}.portable:validate"),
    LazyCommand(
        "import", _SNAPSHOTS, "Read a snapshot into a catalog.", f"{_CLI}.portable:import_"
    ),
    LazyCommand("diff", _SNAPSHOTS, "Compare two snapshots or catalogs.", f"{_CLI}.diff:diff"),
    LazyCommand("migrate", _SNAPSHOTS, "Move one catalog to another.", f"{_CLI}.migrate:migrate"),
    LazyCommand("rules", _SNAPSHOTS, "List the rules that judge changes.", f"{_CLI}.rules:rules"),
    LazyCommand("ownership", _PEOPLE, "Users, groups and owners by file.", f"{_CLI}.people:app"),
    LazyCommand(
        "enrich", _PEOPLE, "Add tags, docs and properties by file.", f"{_CLI}.people:enrich"
    ),
    LazyCommand("run", _CHAINS, "Run several operations in a row.", f"{_CLI}.chains:run"),
)


class LumosGroup(LazyGroup):
    """The top level of `lumos`."""

    table = COMMANDS


app = typer.Typer(
    cls=LumosGroup,
    name="lumos",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help costs a third of the start-up time of rich help
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"lumos {__version__}")
        raise typer.Exit


@app.callback()
def lumos(
    context: typer.Context,
    *,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            metavar="PATH",
            help="Settings file; lumos.yaml of this folder if not given.",
        ),
    ] = None,
    state_dir: Annotated[
        Path | None,
        typer.Option(
            "--state-dir",
            metavar="PATH",
            help="State folder; .lumos beside the settings if not given.",
        ),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the trace of an error.")] = False,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            show_default=False,
            help="Log what is done; -vv also why.",
        ),
    ] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Log errors only.")] = False,
    log_level: Annotated[
        str | None,
        typer.Option("--log-level", help="error, warning, info or debug.", metavar="LEVEL"),
    ] = None,
    log_format: Annotated[
        str | None, typer.Option("--log-format", help="human or json.", metavar="FORMAT")
    ] = None,
    log_file: Annotated[
        Path | None,
        typer.Option(
            "--log-file", metavar="PATH", help="Append the log to a file, not to standard error."
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """The layer between your data and your catalog: find it, version it, keep it current."""
    from lumos.bootstrap import Dispatcher
    from lumos.core.errors import InputUnreadableError
    from lumos.core.runtime.project import Project
    from lumos.entry.cli.error_boundary import log_end_to
    from lumos.entry.cli.log_options import LOG, LogOptions

    try:
        Path.cwd()
    except FileNotFoundError:
        raise InputUnreadableError(
            "the current folder no longer exists", hint="change to one that does"
        ) from None
    options = LogOptions.given(
        os.environ,
        verbose=verbose,
        quiet=quiet,
        level=log_level,
        format_=log_format,
        file=log_file,
    )
    log_end_to(LOG)
    LOG.begin(context.invoked_subcommand or "", options)
    context.obj = Dispatcher(
        Project(
            config=config,
            given_state_dir=state_dir,
            environment=os.environ,
            notice=LOG.notice,
            on_logging=LOG.complete,
        )
    )


def main() -> None:
    """Run the command line and end the process with the documented exit code."""
    from lumos.core.own_process import claim_process

    claim_process()
    # Looking for cycles every 700 objects takes a quarter of the CPU of a short command.
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)

    from lumos.entry.cli.error_boundary import run_within_boundary

    sys.exit(run_within_boundary(app, sys.argv[1:]))
