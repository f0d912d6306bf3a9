"""`lumos diff`: what changed from one snapshot to another."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.bootstrap import Application
from lumos.core.errors import EXIT_GATE_FAILED
from lumos.entry.cli.output import (
    AsJson,
    counted,
    print_changes,
    print_json,
    print_line,
)
from lumos.entry.cli.snapshot_options import EngineOption, told
from lumos.feature.snapshot.engine_choice import Engine

if TYPE_CHECKING:
    from lumos.core.controllers.results import DiffResult

_CHANGES_OF_A_SECTION = ("added", "removed", "changed")


class FailOn(StrEnum):
    """The mildest finding that makes `diff` fail."""

    BREAKING = "breaking"
    CAUTION = "caution"
    ANY = "any"
    NEVER = "never"


def diff(
    context: typer.Context,
    source: Annotated[
        str, typer.Option(help="The older side: a file, folder, id, `latest` or a catalog.")
    ],
    target: Annotated[str, typer.Option(help="The newer side, named likewise.")],
    fail_on: Annotated[
        FailOn, typer.Option(help="End with 1 if there is such a change.")
    ] = FailOn.NEVER,
    engine: EngineOption = Engine.AUTO,
    as_json: AsJson = False,
) -> None:
    """Compare two snapshots or catalogs and classify every change.

    Example: lumos diff --source january.json --target february.json --fail-on breaking

    Example on Spark: lumos diff --source snapshots/january --target latest --engine spark
    """
    application: Application = context.obj
    with told("diff") as tell:
        result = application.snapshots.diff(source, target, engine=engine, tell=tell)
    if as_json:
        print_json(result.as_json())
    else:
        print_changes(result.changes)
        for line in _section_lines(result):
            print_line(line)
        levels = ", ".join(
            f"{count:,} {name.lower().replace('_', '-')}"
            for name, count in result.summary.levels.items()
        )
        print_line(f"{counted(result.summary.changes, 'change')}: {levels}")
        if unobserved := len(result.unobserved):
            verb = "was" if unobserved == 1 else "were"
            print_line(f"{counted(unobserved, 'dataset')} {verb} not observed, so not removed")
    if _fails(result, fail_on):
        raise typer.Exit(EXIT_GATE_FAILED)


def _section_lines(result: DiffResult) -> Iterator[str]:
    """Say how the sections beside the datasets differ, where they do."""
    for name, counts in result.summary.sections.items():
        found = [f"{counts[kind]:,} {kind}" for kind in _CHANGES_OF_A_SECTION if counts[kind]]
        if found:
            yield f"{name.replace('_', ' ')}: {', '.join(found)}"


def _fails(result: DiffResult, fail_on: FailOn) -> bool:
    match fail_on:
        case FailOn.NEVER:
            return False
        case FailOn.ANY:
            return bool(result.changes) or any(_section_lines(result))
        case FailOn.CAUTION:
            return any(change.caution or change.level == "BREAKING" for change in result.changes)
        case FailOn.BREAKING:
            return any(change.level == "BREAKING" for change in result.changes)
