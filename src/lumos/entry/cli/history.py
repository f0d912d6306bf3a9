"""`lumos history` and `compare`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.bootstrap import Dispatcher
from lumos.core.requests.catalog import BlameRequest, CompareRequest, HistoryRequest
from lumos.entry.cli.look import Dataset, moment_given, moment_of
from lumos.entry.cli.output import AsJson, counted, print_changes, print_json, print_line

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models import DatasetVersion, SchemaHistory
    from lumos.feature.versioning.results import BlameResult

_MOST_SHOWN = 8
_FIRST_DETAILS = ("change_type", "rule", "level", "column", "type")
_INDENT = " " * 11


class Format(StrEnum):
    """How an answer is printed."""

    TEXT = "text"
    YAML = "yaml"
    JSON = "json"


Since = Annotated[
    str | None,
    typer.Option(callback=moment_given, help="Only versions made at this time or later."),
]
Limit = Annotated[int | None, typer.Option(min=1, max=10**9, help="Only the newest so many.")]


def history(
    context: typer.Context,
    dataset: Dataset,
    form: Annotated[Format, typer.Option("--format", help="How to print it.")] = Format.TEXT,
    limit: Limit = None,
    since: Since = None,
    blame: Annotated[
        bool, typer.Option("--blame", help="Show who brought in and last changed each column.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the versions of a dataset, newest last.

    Example: lumos history orders --format yaml
    """
    dispatcher: Dispatcher = context.obj
    if blame and (limit is not None or since is not None):
        raise typer.BadParameter("--blame looks at every version: leave out --limit and --since")
    chosen = Format.JSON if as_json else form
    if blame:
        told = dispatcher.dispatch(BlameRequest(dataset=dataset))
        print_in(chosen, _blame_document(told), lines=_blame_lines(told))
        return
    request = HistoryRequest(dataset=dataset, since=moment_of(since), limit=limit)
    print_history(dispatcher.dispatch(request), chosen)


def compare(
    context: typer.Context,
    dataset: Dataset,
    v1: Annotated[
        str,
        typer.Argument(help="A version: 1.0.0, its cloud version, latest, previous or first."),
    ] = "previous",
    v2: Annotated[
        str, typer.Argument(help="The version to compare with, in the same form.")
    ] = "latest",
    as_json: AsJson = False,
) -> None:
    """Compare two versions of a dataset, by default the last with the one before.

    Example: lumos compare orders 1.0.0 latest
    """
    dispatcher: Dispatcher = context.obj
    result = dispatcher.dispatch(CompareRequest(dataset=dataset, first=v1, second=v2))
    if as_json:
        print_json(result.as_json())
        return
    if (v1, v2) != (result.from_version, result.to_version):
        print_line(f"from {result.from_version} to {result.to_version}")
    if result.changes:
        print_changes(result.changes)
    else:
        print_line("no change")


def print_history(found: SchemaHistory, form: Format) -> None:
    """Print the versions of a dataset in the form asked for."""
    document = found.to_json()
    document["schema_history"] = [
        {**entry, "change_details": details_in_order(version.change_details)}
        if version.change_details
        else entry
        for version in found.schema_history
        for entry in [version.to_json()]
    ]
    print_in(form, document, lines=history_lines(found))


def details_in_order(details: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return details as the product documents order them: which column, what was, what is."""
    ordered: dict[str, JsonValue] = {}
    for name in sorted(details, key=_place):
        value = details[name]
        if name == "changes" and isinstance(value, list | tuple):
            value = [
                details_in_order(each) if isinstance(each, Mapping) else each for each in value
            ]
        ordered[name] = value
    return ordered


def _place(name: str) -> tuple[int, str]:
    if name in _FIRST_DETAILS:
        return _FIRST_DETAILS.index(name), name
    ranks = {"old": 20, "new": 30, "changes": 90}
    return ranks.get(name.partition("_")[0], 10), name


def print_in(form: Format, document: dict[str, JsonValue], *, lines: Iterator[str]) -> None:
    """Print a document as JSON or YAML, or as lines for people."""
    match form:
        case Format.JSON:
            print_json(document)
        case Format.YAML:
            from lumos.entry.cli.yaml_text import yaml_text

            print_line(yaml_text(document).removesuffix("\n"))
        case Format.TEXT:
            for line in lines:
                print_line(line)


def history_lines(found: SchemaHistory) -> Iterator[str]:
    """Yield the versions of a dataset as lines for people."""
    yield found.urn or found.dataset
    for version in found.schema_history:
        yield f"  {version.version:<9}{_when_and_who(version)}"
        if details := _details(version):
            yield f"{_INDENT}{details}"


def _when_and_who(version: DatasetVersion) -> str:
    mark = "  BREAKING" if version.backward_compatible is False else ""
    alert = f"  alert {version.breaking_change_alert}" if version.breaking_change_alert else ""
    cloud = f"  {version.cloud_version}" if version.cloud_version else ""
    author = f"  by {version.author}" if version.author else ""
    kind = version.change_type or "FIRST"
    return f"{version.timestamp:%Y-%m-%d %H:%M}{cloud}  {kind}{mark}{alert}{author}"


def _details(version: DatasetVersion) -> str:
    if version.fields:
        shown = ", ".join(version.fields[:_MOST_SHOWN])
        more = len(version.fields) - _MOST_SHOWN
        return f"columns: {shown}" + (f" and {more:,} more" if more > 0 else "")
    told = details_in_order(version.change_details)
    parts = [f"{key}: {value}" for key, value in told.items() if key != "changes"]
    changes = version.change_details.get("changes")
    if isinstance(changes, list | tuple) and len(changes) > 1:
        parts.append(f"and {counted(len(changes) - 1, 'more change')}")
    return ", ".join(parts)


def _blame_document(told: BlameResult) -> dict[str, JsonValue]:
    columns: list[JsonValue] = [column.to_json() for column in told.columns]
    return {**told.as_json(), "columns": columns}


def _blame_lines(told: BlameResult) -> Iterator[str]:
    yield f"{told.urn}  {told.version or 'has no version'}"
    width = max((len(column.path) for column in told.columns), default=0)
    for column in told.columns:
        mark = column.latest
        verb = "changed" if column.changed else "added"
        author = f"  by {mark.author}" if mark.author else ""
        since = f"  since {column.added.version}" if column.changed else ""
        yield (
            f"  {column.path:<{width}}  {mark.version:<9}{mark.timestamp:%Y-%m-%d %H:%M}  "
            f"{verb}{author}{since}"
        )
