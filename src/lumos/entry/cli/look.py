"""`lumos search`, `list` and `show`."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.bootstrap import Dispatcher
from lumos.core.errors import EXIT_UNREADABLE
from lumos.core.requests.catalog import SearchRequest, ShowRequest, TrendRequest
from lumos.entry.cli.dataset_text import contribution_lines, dataset_lines, moment
from lumos.entry.cli.output import AsJson, counted, print_json, print_line, print_notice
from lumos.entry.cli.trend_text import trend_lines

if TYPE_CHECKING:
    from lumos.core.platform.search_page import SearchHit, SearchPage

_LAST_OFFSET = 1_000_000_000


def is_text(value: str | None) -> str | None:
    """Refuse what is no text, as the operating system allows in arguments."""
    if value is not None and any("\ud800" <= char <= "\udfff" for char in value):
        raise typer.BadParameter("it is not UTF-8 text")
    return value


def moment_given(value: str | None) -> str | None:
    """Refuse what is no time, before anything is opened."""
    if value is not None:
        try:
            datetime.fromisoformat(value)
        except ValueError:
            raise typer.BadParameter(
                "not a time; expected e.g. 2024-01-31 or 2024-01-31T09:00Z"
            ) from None
    return value


def moment_of(value: str | None) -> datetime | None:
    """Return the time that the user gave; without a zone it is UTC."""
    if value is None:
        return None
    given = datetime.fromisoformat(value)
    return given if given.tzinfo else given.replace(tzinfo=UTC)


Dataset = Annotated[
    str,
    typer.Argument(callback=is_text, help="A URN, or a name that only one dataset has."),
]

Column = Annotated[
    str | None,
    typer.Option(help="Only datasets with a column of this name, or a beginning of it."),
]
Owner = Annotated[str | None, typer.Option(help="Only datasets of this user or group.")]
WithTag = Annotated[str | None, typer.Option(help="Only datasets with this tag.")]
Platforms = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A catalog to ask, such as datahub, or only this platform of data, such as s3; "
        "again for more catalogs.",
        show_default=False,
    ),
]
Offset = Annotated[int, typer.Option(min=0, max=_LAST_OFFSET, help="How many to pass over.")]


def _is_a_number(value: float | None) -> float | None:
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is not a number")
    return value


def search(
    context: typer.Context,
    text: Annotated[
        str,
        typer.Argument(
            help="Words, or beginnings of words; also column:NAME, tag:NAME, owner:NAME and "
            "platform:NAME."
        ),
    ] = "",
    column: Column = None,
    min_quality: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=100,
            callback=_is_a_number,
            help="Only datasets with at least this quality, in percent.",
        ),
    ] = None,
    platform: Platforms = None,
    owner: Owner = None,
    tag: WithTag = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many to show.")] = 20,
    offset: Offset = 0,
    as_json: AsJson = False,
) -> None:
    """Find datasets by words in names, columns, descriptions, tags and owners.

    Asks the catalogs of `platforms` in the settings at once, or else the one of `platform`.
    Ends with 3 where one of several does not answer; what the others found is printed.

    Example: lumos search customer --min-quality 95

    Example: lumos search "column:email owner:ada"
    """
    dispatcher: Dispatcher = context.obj
    page = dispatcher.dispatch(
        SearchRequest(
            text=text,
            platforms=tuple(platform or ()),
            owner=owner,
            tag=tag,
            column=column,
            min_quality=min_quality,
            limit=limit,
            offset=offset,
        )
    )
    if as_json:
        print_json(page.model_dump(mode="json"))
    else:
        _print_page(page, min_quality)
    _end_with_problems(page)


def list_(
    context: typer.Context,
    platform: Platforms = None,
    owner: Owner = None,
    tag: WithTag = None,
    column: Column = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many to list.")] = 100,
    offset: Offset = 0,
    as_json: AsJson = False,
) -> None:
    """List datasets in the order of their URNs.

    Example: lumos list --platform s3 --tag pii
    """
    dispatcher: Dispatcher = context.obj
    page = dispatcher.dispatch(
        SearchRequest(
            platforms=tuple(platform or ()),
            owner=owner,
            tag=tag,
            column=column,
            limit=limit,
            offset=offset,
        )
    )
    if as_json:
        print_json(page.model_dump(mode="json"))
    else:
        for hit in page.hits:
            facts = (hit.format, hit.version, ", ".join(hit.owners))
            shown = "; ".join(fact for fact in facts if fact)
            print_line(f"{hit.urn}  ({shown})" if shown else hit.urn)
        _print_place(page, "dataset")
    _end_with_problems(page)


def _end_with_problems(page: SearchPage) -> None:
    for answer in page.problems:
        hint = f" ({answer.hint})" if answer.hint else ""
        print_notice(f"{answer.catalog} is missing from the results: {answer.problem}{hint}")
    if page.problems:
        raise typer.Exit(EXIT_UNREADABLE)


def _print_page(page: SearchPage, min_quality: float | None) -> None:
    about = "" if page.exact else "about "
    if min_quality is None:
        print_line(f"Results ({about}{counted(page.total, 'dataset')}):")
    else:
        everything = counted(page.total + page.excluded_total, "dataset")
        print_line(f"Results ({about}{page.total:,} of {everything} meet quality threshold):")
    for number, hit in enumerate(page.hits, start=page.offset + 1):
        print_line(f"\n{number}. {_display_name(hit)}\n   {_facts(hit)}\n   {hit.urn}")
    if page.suggestions:
        print_line(f"did you mean {' or '.join(page.suggestions)}?")
    elif page.total > len(page.hits):
        print_line()
        _print_place(page, "result")
    if page.excluded:
        print_line(f"\n# Excluded (below {min_quality:g}% threshold):")
        for hit in page.excluded:
            score = "unknown" if hit.quality_score is None else f"{hit.quality_score:g}%"
            print_line(f"# - {_display_name(hit)} (Quality: {score})")


def _print_place(page: SearchPage, what: str) -> None:
    """Say which part of all results is shown, and how to see the next."""
    if page.total <= len(page.hits):
        print_line(counted(page.total, what))
        return
    last = page.offset + len(page.hits)
    more = f"; more with --offset {last}" if last < page.total and page.hits else ""
    about = "" if page.exact else "about "
    first = min(page.offset + 1, last)
    print_line(f"showing {first:,} to {last:,} of {about}{counted(page.total, what)}{more}")


def _display_name(hit: SearchHit) -> str:
    separator = "/" if hit.platform in {"s3", "gcs", "hdfs", "local"} else "."
    return separator.join((hit.platform, *hit.urn.parts))


def _facts(hit: SearchHit) -> str:
    platform = f"{hit.platform} ({hit.format})" if hit.format else hit.platform
    facts = [f"Platform: {platform}", f"Owner: {', '.join(hit.owners) or 'none'}"]
    if hit.quality_score is not None:
        facts.append(f"Quality: {hit.quality_score:g}%")
    updated = hit.freshness if isinstance(hit.freshness, datetime) else hit.last_modified
    if updated is None and hit.freshness is None and hit.catalogs:
        updated = hit.updated_at
    if updated:
        facts.append(f"Last updated: {moment(updated)}")
    elif hit.freshness is not None:
        facts.append(f"Freshness: {hit.freshness}")
    if hit.version:
        facts.append(f"Version: {hit.version}")
    if hit.matched and hit.matched != ("name",):
        facts.append(f"Found in: {', '.join(hit.matched)}")
    if hit.catalogs:
        facts.append(f"In: {', '.join(held.catalog for held in hit.catalogs)}")
    return " | ".join(facts)


def show(
    context: typer.Context,
    dataset: Dataset,
    who: Annotated[
        bool, typer.Option("--who", help="Show who says what of it: sources, files, people.")
    ] = False,
    trend: Annotated[
        bool, typer.Option("--trend", help="Show what was measured of it over time, newest last.")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            callback=moment_given, help="With --trend: only what was measured then or later."
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, max=100_000, help="With --trend: only the newest so many of a kind."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show all that is known of a dataset.

    Example: lumos show lumos://postgres/shop/public/orders
    """
    dispatcher: Dispatcher = context.obj
    if trend and who:
        raise typer.BadParameter("--trend and --who are two answers: ask for one of them")
    if not trend and (since is not None or limit is not None):
        raise typer.BadParameter("--since and --limit go with --trend")
    if trend:
        request = TrendRequest(dataset=dataset, since=moment_of(since), limit=limit)
        measured = dispatcher.dispatch(request)
        if as_json:
            print_json(measured.as_json())
            return
        for line in trend_lines(measured):
            print_line(line)
        return
    found = dispatcher.dispatch(ShowRequest(dataset=dataset, contributions=as_json or who))
    if as_json:
        print_json(found.to_json())
    elif who:
        print_line(found.urn)
        for line in contribution_lines(found.contributions):
            print_line(line)
    else:
        for line in dataset_lines(found):
            print_line(line)
