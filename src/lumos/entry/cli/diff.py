"""`lumos diff`: what changed from one snapshot to another."""

from __future__ import annotations

from contextlib import ExitStack
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.bootstrap import Dispatcher
from lumos.core.errors import EXIT_GATE_FAILED
from lumos.core.requests.base import Listener
from lumos.core.requests.snapshots import DiffRequest
from lumos.entry.cli.output import AsJson, print_badge
from lumos.entry.cli.snapshot_options import Edited, one_pair, shown_late

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.feature.snapshot.diff import StreamedDiff

_LEVELS = ("informational", "non_breaking", "breaking")


class FailOn(StrEnum):
    """The mildest finding that makes `diff` fail."""

    BREAKING = "breaking"
    CAUTION = "caution"
    ANY = "any"
    NEVER = "never"


class Level(StrEnum):
    """The mildest change that is shown."""

    BREAKING = "breaking"
    NON_BREAKING = "non_breaking"
    INFORMATIONAL = "informational"


def diff(
    context: typer.Context,
    old: Annotated[
        str | None,
        typer.Argument(
            metavar="OLD",
            help="The older side: a file, folder, id, `latest`, a catalog or git:REVISION:PATH.",
            show_default=False,
        ),
    ] = None,
    new: Annotated[
        str | None,
        typer.Argument(metavar="NEW", help="The newer side, in the same form.", show_default=False),
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="The same as OLD.", metavar="OLD", show_default=False)
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="The same as NEW.", metavar="NEW", show_default=False)
    ] = None,
    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            help="End with 1 if there is such a change; else as the settings say.",
            show_default=False,
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(help="Whom the rules protect; else as the settings say.", show_default=False),
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(help="Show changes of these rules only: field.*", show_default=False),
    ] = None,
    level: Annotated[
        Level, typer.Option(help="Show changes of this level or worse.")
    ] = Level.INFORMATIONAL,
    observations: Annotated[
        bool,
        typer.Option("--observations", help="Also compare rows, sizes, checks and costs."),
    ] = False,
    edited: Edited = False,
    details: Annotated[
        bool, typer.Option("--details", help="Show path, values, direction and fingerprint.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two snapshots or catalogs and classify every change.

    Of two catalogs it also says how much of the first is in the second, concept by concept.

    --rule and --level choose what is shown; the totals and --fail-on are of every change.

    Example: lumos diff january.json february.json --fail-on breaking

    Example in a git repository: lumos diff git:main:metadata.json metadata.json
    """
    from lumos.entry.cli.diff_text import print_diff, print_diff_json
    from lumos.entry.cli.migration_text import print_migration

    dispatcher: Dispatcher = context.obj
    least = _LEVELS.index(level)

    def keep(change: dict[str, JsonValue]) -> bool:
        name = str(change["rule"])
        return _LEVELS.index(str(change["level"]).lower()) >= least and (
            not rule or any(fnmatchcase(name, pattern) for pattern in rule)
        )

    before, after = one_pair((old, new), (source, target), names=("--source", "--target"))
    request = DiffRequest(
        source=before, target=after, profile=profile, observations=observations, edited=edited
    )
    with ExitStack() as stack:
        with shown_late("diff") as shown:
            opened = dispatcher.stream(request, Listener(shown))
            found, checks = stack.enter_context(opened)
        if as_json:
            print_diff_json(found, keep, checks=checks)
        else:
            print_migration(checks or ())
            print_diff(found, keep, details=details)
            for each in (*found.unreadable_in_old, *found.unreadable_in_new):
                print_badge("warn", f"not readable: {each.item}: {each.error.message}")
        if _fails(found, fail_on or FailOn(dispatcher.project.settings.change_policy.fail_on)):
            raise typer.Exit(EXIT_GATE_FAILED)


def _fails(found: StreamedDiff, fail_on: FailOn) -> bool:
    totals = found.totals
    breaking = totals.worst_level == "BREAKING"
    match fail_on:
        case FailOn.NEVER:
            return False
        case FailOn.ANY:
            others = totals.other_sections.values()
            return (
                totals.weighed > 0
                or (found.canonical is not None and found.canonical.datasets > 0)
                or any(section.added or section.removed or section.changed for section in others)
            )
        case FailOn.CAUTION:
            return breaking or totals.cautions > 0
        case FailOn.BREAKING:
            return breaking
