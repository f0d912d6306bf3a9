"""`lumos report`: the state of the catalog on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lumos.bootstrap import Dispatcher
from lumos.core.requests.project import ReportRequest
from lumos.entry.cli.output import AsJson, print_json, print_line


def report(
    context: typer.Context,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The page to write; report.html if not given."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write one HTML page on the state of the catalog and on what changed.

    With --json, the same facts are printed, and a page is written only where --output names one.

    Example: lumos report --output report.html
    """
    from lumos.feature.extraction.wording import verdict

    dispatcher: Dispatcher = context.obj
    if as_json and output is None:
        print_json(dispatcher.dispatch(ReportRequest()).as_json())
        return
    page = output or Path("report.html")
    written = dispatcher.dispatch(ReportRequest(output=page))
    if as_json:
        print_json(written.as_json())
    else:
        print_line(f"{verdict(written)}\nwrote {page}")
