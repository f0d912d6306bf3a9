"""How commands print: JSON for machines, plain text for people."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Self

import typer

from lumos.core.errors import EXIT_UNREADABLE, LumosError

if TYPE_CHECKING:
    from pydantic import BaseModel, JsonValue

    from lumos.core.run_report import RunReport
    from lumos.feature.versioning.reported_change import ReportedChange

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]

_COLOURS = {
    "BREAKING": "red",
    "NON_BREAKING": "yellow",
    "INFORMATIONAL": "cyan",
    "ok": "green",
    "warn": "yellow",
    "fail": "red",
}


class OutputError(LumosError):
    """Standard output cannot be written."""

    code = "LUM-211"
    exit_code = EXIT_UNREADABLE

    @classmethod
    def of(cls, error: OSError) -> Self:
        """Say why standard output cannot be written."""
        reason = error.strerror or type(error).__name__
        return cls(
            f"cannot write to standard output: {reason}",
            hint="check where the output goes: the disk may be full",
        )


class StoppedError(Exception):
    """A command ended early and has part of its answer; `reason` says why."""

    def __init__(self, reason: BaseException, *, answer: dict[str, JsonValue]) -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.answer = answer


@contextmanager
def writing_output() -> Iterator[None]:
    """Return whether it is standard output that is full, not another file."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError.of(error) from error


def print_json(document: JsonValue) -> None:
    """Print one JSON document, in UTF-8 whatever the terminal's encoding is."""
    import orjson

    try:
        content = orjson.dumps(document, option=orjson.OPT_INDENT_2)
    except TypeError:  # a name that is no Unicode, which the operating system allows
        import json

        content = json.dumps(document, indent=2, ensure_ascii=False).encode("utf-8", "replace")
    with writing_output():
        typer.echo(content)


def print_json_line(document: JsonValue) -> None:
    """Print one JSON document on one line, for programs that read line by line."""
    import orjson

    with writing_output():
        typer.echo(orjson.dumps(document))


def print_line(text: str = "") -> None:
    """Print text for people; what would steer their terminal is spelt out."""
    _echo(printable(text))


def print_notice(text: str) -> None:
    """Print one line on standard error that is no error; where nobody hears it, nothing is lost."""
    with suppress(OSError, ValueError):
        sys.stderr.write(f"lumos: {printable(text)}\n")


def print_badge(badge: str, text: str, *, indent: str = "") -> None:
    """Print a line behind a status or level such as `[ok]`, coloured on a terminal."""
    mark = f"[{badge}]"
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        mark = typer.style(mark, fg=_COLOURS.get(badge))
    _echo(f"{indent}{mark} {printable(text)}")


def counted(count: int, noun: str) -> str:
    """Write a number and what it counts: `1 dataset`, `2,000 datasets`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


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
        print_badge(change.level, f"{change.message} ({', '.join(notes)})", indent="  ")


def print_report(report: RunReport) -> None:
    """Print what a run did."""
    for line in report.as_text().splitlines():
        print_line(line)


def print_unread(parts: Iterable[BaseModel]) -> None:
    """Print on standard error what an operation could not read."""
    from lumos.core.run_report import RunReport

    for report in parts:
        if isinstance(report, RunReport):
            for line in report.as_text().splitlines():
                print_notice(line)


def print_warnings(report: RunReport) -> None:
    """Print what people should know of a run."""
    for warning in report.warnings:
        print_badge("warn", warning)


def printable(text: str) -> str:
    """Return text with everything spelt out that would steer a terminal or is no character."""
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode()
        for char in text
    )


def _echo(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    with writing_output():
        typer.echo(text.encode(encoding, "backslashreplace").decode(encoding))


def refuse_if_behind(report: RunReport) -> None:
    """Say why the catalog of the settings could not be brought up to date, and end with 3."""
    from lumos.feature.sync.following_sync import CATALOG_IS_BEHIND

    for item in report.failed:
        if item.item == CATALOG_IS_BEHIND:
            hint = f" ({item.hint})" if item.hint else ""
            print_notice(f"{item.code} the state is written, and {item.item}: {item.reason}{hint}")
            raise typer.Exit(EXIT_UNREADABLE)
