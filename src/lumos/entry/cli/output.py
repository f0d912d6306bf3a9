"""How commands print: JSON for machines, plain text for people."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.controllers.results import ReportedChange
    from lumos.core.run_report import RunReport

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]

_COLOURS = {
    "BREAKING": "red",
    "NON_BREAKING": "yellow",
    "INFORMATIONAL": "cyan",
    "ok": "green",
    "warn": "yellow",
    "fail": "red",
}


def print_json(document: JsonValue) -> None:
    """Print one JSON document."""
    import orjson

    typer.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())


def print_line(text: str = "") -> None:
    """Print text for people; what would steer their terminal is spelt out."""
    typer.echo(_printable(text))


def print_badge(badge: str, text: str) -> None:
    """Print a line behind a status or level such as `[ok]`, coloured on a terminal."""
    mark = f"[{badge}]"
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        mark = typer.style(mark, fg=_COLOURS.get(badge))
    typer.echo(f"{mark} {_printable(text)}")


def print_changes(changes: Iterable[ReportedChange]) -> None:
    """Print changes grouped by dataset, the worst of each first."""
    ranks = tuple(_COLOURS)
    dataset = None
    for change in sorted(changes, key=lambda each: (each.dataset, ranks.index(each.level))):
        if change.dataset != dataset:
            dataset = change.dataset
            print_line(dataset)
        notes = [change.rule]
        if change.caution:
            notes.append("caution")
        if change.widening:
            notes.append("widening")
        typer.echo("  ", nl=False)
        print_badge(change.level, f"{change.message} ({', '.join(notes)})")


def print_report(report: RunReport) -> None:
    """Print what a run did."""
    for line in report.as_text().splitlines():
        print_line(line)


def _printable(text: str) -> str:
    return "".join(
        char if char.isprintable() or char == "\n" else f"\\x{ord(char):02x}" for char in text
    )
