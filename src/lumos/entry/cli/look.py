"""`lumos search`, `show`, `history` and `compare`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.bootstrap import Application
from lumos.entry.cli.output import AsJson, print_changes, print_json, print_line

if TYPE_CHECKING:
    from lumos.core.models import Field, FieldType, LumosDataset
    from lumos.core.platform.interface import SearchHit

Dataset = Annotated[str, typer.Argument(help="A URN, or a name that only one dataset has.")]
_LAST_OFFSET = 1_000_000_000


def _is_a_number(value: float | None) -> float | None:
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is not a number")
    return value


def search(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="Words, or beginnings of words.")] = "",
    min_quality: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=100,
            callback=_is_a_number,
            help="Only datasets with at least this quality, in percent.",
        ),
    ] = None,
    platform: Annotated[str | None, typer.Option(help="Only this platform, such as s3.")] = None,
    owner: Annotated[str | None, typer.Option(help="Only datasets of this user or group.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only datasets with this tag.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many to show.")] = 20,
    offset: Annotated[
        int, typer.Option(min=0, max=_LAST_OFFSET, help="How many to pass over.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Find datasets by words in names, columns, descriptions, tags and owners.

    Example: lumos search customer --min-quality 95
    """
    from lumos.core.platform.interface import SearchFilters

    application: Application = context.obj
    filters = SearchFilters(platform=platform, owner=owner, tag=tag, min_quality=min_quality)
    page = application.catalog.search(text, filters, limit=limit, offset=offset)
    if as_json:
        print_json(page.model_dump(mode="json"))
        return
    everything = page.total + page.excluded_total
    if min_quality is None:
        print_line(f"Results ({page.total:,} datasets):")
    else:
        print_line(f"Results ({page.total:,} of {everything:,} datasets meet quality threshold):")
    for number, hit in enumerate(page.hits, start=offset + 1):
        print_line(f"\n{number}. {_display_name(hit)}\n   {_facts(hit)}\n   {hit.urn}")
    if page.excluded:
        print_line(f"\n# Excluded (below {min_quality:g}% threshold):")
        for hit in page.excluded:
            score = "unknown" if hit.quality_score is None else f"{hit.quality_score:g}%"
            print_line(f"# - {_display_name(hit)} (Quality: {score})")


def _display_name(hit: SearchHit) -> str:
    separator = "/" if hit.platform in {"s3", "gcs", "hdfs", "local"} else "."
    return separator.join((hit.platform, *hit.urn.parts))


def _facts(hit: SearchHit) -> str:
    platform = f"{hit.platform} ({hit.format})" if hit.format else hit.platform
    facts = [f"Platform: {platform}", f"Owner: {', '.join(hit.owners) or 'none'}"]
    if hit.quality_score is not None:
        facts.append(f"Quality: {hit.quality_score:g}%")
    if isinstance(hit.freshness, datetime):
        facts.append(f"Last updated: {hit.freshness:%Y-%m-%d %H:%M} UTC")
    elif hit.freshness is not None:
        facts.append(f"Freshness: {hit.freshness}")
    if hit.version:
        facts.append(f"Version: {hit.version}")
    return " | ".join(facts)


def show(context: typer.Context, dataset: Dataset, as_json: AsJson = False) -> None:
    """Show all that is known of a dataset.

    Example: lumos show lumos://postgres/shop/public/orders
    """
    application: Application = context.obj
    found = application.catalog.show(dataset)
    if as_json:
        print_json(found.to_json())
        return
    for line in _dataset_lines(found):
        print_line(line)


def _dataset_lines(dataset: LumosDataset) -> Iterator[str]:
    version = f"  version {dataset.version}" if dataset.version else ""
    yield f"{dataset.name}{version}"
    yield dataset.urn
    if dataset.documentation.description:
        yield dataset.documentation.description
    owners = [f"{owner.name} ({owner.type})" for owner in dataset.ownership.owners]
    facts = {
        "platform": dataset.platform,
        "format": dataset.format,
        "owners": ", ".join(owners),
        "tags": ", ".join(dataset.tags),
        "domains": ", ".join(dataset.governance.domains),
        "partitions": dataset.location.partitioning if dataset.location else None,
        "rows": _rows(dataset),
        "quality": f"{dataset.quality.score:g}%"
        if dataset.quality and dataset.quality.score
        else "",
        "upstream": ", ".join(dataset.lineage.upstream),
        "downstream": ", ".join(dataset.lineage.downstream),
    }
    yield from (f"  {name:<11}{value}" for name, value in facts.items() if value)
    yield f"columns ({len(dataset.schema.fields)}):"
    for field in dataset.schema.fields:
        yield from _field_lines(field, dataset.schema.primary_key, depth=1)


def _rows(dataset: LumosDataset) -> str:
    facts = dataset.statistics
    if facts is None:
        return ""
    if facts.row_count is not None:
        return f"{facts.row_count:,}"
    return f"about {facts.row_count_estimate:,}" if facts.row_count_estimate is not None else ""


def _field_lines(field: Field, primary_key: tuple[str, ...], *, depth: int) -> Iterator[str]:
    marks = [
        "" if field.nullable else "required",
        "key" if depth == 1 and field.name in primary_key else "",
        "pii" if field.pii else "",
    ]
    notes = " ".join(mark for mark in marks if mark)
    text = f"  -- {field.description}" if field.description else ""
    yield f"{'  ' * depth}{field.name}: {_type_text(field)} {notes}".rstrip() + text
    for member in field.fields:
        yield from _field_lines(member, (), depth=depth + 1)


def _type_text(field: FieldType) -> str:
    return "STRUCT" if field.fields else field.signature()


def history(context: typer.Context, dataset: Dataset, as_json: AsJson = False) -> None:
    """List the versions of a dataset, newest last.

    Example: lumos history orders
    """
    application: Application = context.obj
    found = application.catalog.history(dataset)
    if as_json:
        document = found.to_json()
        print_json({"schema_history": [], **document})
        return
    print_line(found.dataset)
    for version in found.schema_history:
        kind = version.change_type or "FIRST"
        mark = "  BREAKING" if version.backward_compatible is False else ""
        author = f"  by {version.author}" if version.author else ""
        print_line(
            f"  {version.version:<9}{version.timestamp:%Y-%m-%d %H:%M}  {kind}{mark}{author}"
        )


def compare(
    context: typer.Context,
    dataset: Dataset,
    v1: Annotated[str, typer.Argument(help="The older version, such as 1.0.0.")],
    v2: Annotated[str, typer.Argument(help="The newer version.")],
    as_json: AsJson = False,
) -> None:
    """Compare two versions of a dataset.

    Example: lumos compare orders 1.0.0 2.0.0
    """
    application: Application = context.obj
    result = application.catalog.compare(dataset, v1, second=v2)
    if as_json:
        print_json(result.as_json())
    elif result.changes:
        print_changes(result.changes)
    else:
        print_line("no change")
