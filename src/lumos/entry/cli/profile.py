"""`lumos profile`: what the data of datasets shows, column by column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lumos.bootstrap import Dispatcher
from lumos.core.errors import EXIT_GATE_FAILED, UsageError
from lumos.core.requests.base import Listener
from lumos.core.requests.sources import ProfileRequest
from lumos.entry.cli.ingest import Strict
from lumos.entry.cli.output import AsJson, print_json, print_line, print_report, refuse_if_behind
from lumos.entry.cli.profile_text import profile_lines, profile_summary
from lumos.entry.cli.progress import progress

if TYPE_CHECKING:
    from lumos.core.controllers.results import ProfileResult

_LARGEST_SEED = 2**31 - 1


def profile(
    context: typer.Context,
    datasets: Annotated[
        list[str] | None, typer.Argument(help="URNs, or names that only one dataset has.")
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option("--source", help="All datasets of this source; may be repeated."),
    ] = None,
    sample: Annotated[
        float | None, typer.Option(help="Look at this share of the rows, such as 0.1.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Look at about this many rows, from all over.")
    ] = None,
    seed: Annotated[
        int,
        typer.Option(min=0, max=_LARGEST_SEED, help="Another seed takes another sample."),
    ] = 0,
    values: Annotated[
        bool,
        typer.Option(
            "--values/--no-values",
            help="Show the smallest, largest, mean and quantiles of numbers and times.",
        ),
    ] = True,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Count nulls, different values, ranges and lengths in the data of datasets.

    The figures are kept with the dataset; no text of the data is kept. All rows are read
    unless a sample is asked for.

    Example: lumos profile orders --sample 0.1
    """
    if sample is not None and not 0 < sample <= 1:
        raise UsageError("--sample takes a share above 0 and up to 1", hint="such as 0.1")
    if sample is not None and rows is not None:
        raise UsageError("--sample and --rows exclude each other", hint="give one of them")
    dispatcher: Dispatcher = context.obj
    request = ProfileRequest(
        datasets=tuple(datasets or ()),
        sources=tuple(source or ()),
        sample=sample,
        rows=rows,
        seed=seed,
        values=values,
    )
    with progress("profile") as shown:
        result = dispatcher.dispatch(request, Listener(shown))
    if as_json:
        print_json(result.as_json())
    else:
        _print(result)
    refuse_if_behind(result)
    if strict and result.failed:
        raise typer.Exit(EXIT_GATE_FAILED)


def _print(result: ProfileResult) -> None:
    for number, each in enumerate(result.profiles):
        if number:
            print_line()
        print_line(each.dataset)
        print_line(profile_summary(each.profile))
        for line in profile_lines(each.profile):
            print_line(line)
    if result.failed or result.warnings:
        print_line()
        print_report(result)
