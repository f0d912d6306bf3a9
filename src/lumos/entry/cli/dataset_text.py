"""A dataset as `lumos show` prints it: all that is known, short where there is much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lumos.core.models.origin import folder_of
from lumos.entry.cli.output import counted
from lumos.entry.cli.profile_text import profile_lines, profile_summary

if TYPE_CHECKING:
    from lumos.core.controllers.catalog_results import ShownContribution
    from lumos.core.models import Field, FieldType, LumosDataset
    from lumos.core.models.quality import DatasetQuality

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP = 1024
_WIDTH = 13


def dataset_lines(dataset: LumosDataset) -> Iterator[str]:
    """Yield the lines that show all of a dataset, leaving out what is not known."""
    version = f"  version {dataset.version}" if dataset.version else ""
    yield f"{dataset.name}{version}"
    yield dataset.urn
    yield from _deprecation(dataset)
    if dataset.documentation.description:
        yield dataset.documentation.description
    for facts in (_place(dataset), _people(dataset), _observed(dataset), _relations(dataset)):
        yield from (_fact(name, value) for name, value in facts if value)
    for link in dataset.documentation.links:
        yield _fact("link", f"{link.url}  {link.description or ''}".rstrip())
    for name, value in sorted(dataset.properties.items()):
        yield _fact("property", f"{name}: {_plain(value)}")
    yield f"columns ({len(dataset.schema.fields)}):"
    for field in dataset.schema.fields:
        yield from _field_lines(field, dataset.schema.primary_key, depth=1)
    if dataset.profile:
        yield f"profile ({profile_summary(dataset.profile)}):"
        yield from profile_lines(dataset.profile)


def contribution_lines(contributions: Sequence[ShownContribution]) -> Iterator[str]:
    """Yield who says what of a dataset, facet by facet."""
    if not contributions:
        yield "  nobody is known to have said anything of it"
        return
    widest = max(len(each.facet) for each in contributions)
    known = max(len(each.contributor) for each in contributions)
    before = ""
    for each in contributions:
        facet = each.facet if each.facet != before else ""
        before = each.facet
        sure = "" if each.confidence >= 1 else f"  confidence {each.confidence:.2f}"
        yield f"  {facet:<{widest}}  {each.contributor:<{known}}  {moment(each.at)}{sure}"


def moment(at: datetime) -> str:
    """Write a time to the minute."""
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _fact(name: str, value: str) -> str:
    indented = value.replace("\n", "\n" + " " * (_WIDTH + 2))
    return f"  {name:<{_WIDTH}}{indented}"


def _deprecation(dataset: LumosDataset) -> Iterator[str]:
    deprecation = dataset.governance.deprecation
    if deprecation is None:
        return
    parts = [
        f"until {deprecation.sunset}" if deprecation.sunset else "",
        f"use {deprecation.replacement}" if deprecation.replacement else "",
        deprecation.note or "",
    ]
    said = "; ".join(part for part in parts if part)
    yield f"DEPRECATED: {said}" if said else "DEPRECATED"


def _place(dataset: LumosDataset) -> Iterator[tuple[str, str | None]]:
    yield "kind", dataset.kind.lower() if dataset.kind else None
    yield "platform", dataset.platform
    yield "environment", dataset.environment
    yield "database", dataset.database
    yield "namespace", dataset.namespace
    yield "format", dataset.format
    if location := dataset.location:
        folder = location.path or folder_of(dataset.extensions)
        root = "/".join(part for part in (location.bucket, folder) if part)
        prefix = (location.prefix or "").lstrip("/")
        yield "location", "/".join(part for part in (root, prefix) if part)
        yield "partitions", location.partitioning or ", ".join(location.partition_keys)


def _people(dataset: LumosDataset) -> Iterator[tuple[str, str | None]]:
    owners = (f"{owner.name} ({owner.type})" for owner in dataset.ownership.owners)
    yield "owners", ", ".join(owners)
    yield "tags", ", ".join(dataset.tags)
    yield "domains", ", ".join(dataset.governance.domains)
    yield "terms", ", ".join(dataset.governance.glossary_terms)
    yield "context", dataset.documentation.business_context
    yield "sla", dataset.documentation.sla


def _observed(dataset: LumosDataset) -> Iterator[tuple[str, str | None]]:
    if facts := dataset.statistics:
        rows = None if facts.row_count is None else f"{facts.row_count:,}"
        if rows is None and facts.row_count_estimate is not None:
            rows = f"about {facts.row_count_estimate:,}"
        yield "rows", rows
        size = None if facts.total_size_bytes is None else size_text(facts.total_size_bytes)
        files = None if facts.file_count is None else counted(facts.file_count, "file")
        yield "size", " in ".join(part for part in (size, files) if part)
        yield "partitioned", _counted_or_none(facts.partition_count, "partition")
        yield "modified", moment(facts.last_modified) if facts.last_modified else None
        queried = [_counted_or_none(facts.query_count, "time")]
        queried.append(f"last {moment(facts.last_queried)}" if facts.last_queried else None)
        yield "queried", ", ".join(part for part in queried if part)
    if dataset.quality:
        yield "quality", ", ".join(_quality(dataset.quality))
    yield "checks", ", ".join(check.name for check in dataset.assertions)
    if cost := dataset.cost:
        yield "cost", f"{cost.amount} {cost.currency} for {cost.kind} in {cost.period}"


def _quality(quality: DatasetQuality) -> Iterator[str]:
    if quality.score is not None:
        yield f"{quality.score:g}%"
    if quality.completeness is not None:
        yield f"completeness {quality.completeness:g}%"
    if quality.dimensions:
        for name in type(quality.dimensions).model_fields:
            value = getattr(quality.dimensions, name)
            if isinstance(value, float) and (name, value) != ("completeness", quality.completeness):
                yield f"{name} {value:g}%"
    if quality.freshness is not None:
        yield _freshness(quality.freshness)
    outcomes = Counter(check.status.lower() for check in quality.checks)
    yield from (f"{counted(count, 'check')} {status}" for status, count in outcomes.items())
    if quality.sla:
        status = f" ({quality.sla.status})" if quality.sla.status else ""
        yield f"target {quality.sla.target:g}%{status}"
    if quality.last_validated or quality.validator:
        by = f" by {quality.validator}" if quality.validator else ""
        on = f" {moment(quality.last_validated)}" if quality.last_validated else ""
        yield f"validated{on}{by}"


def _freshness(freshness: datetime | timedelta) -> str:
    if isinstance(freshness, datetime):
        return f"fresh as of {moment(freshness)}"
    return f"{freshness} old"


def _relations(dataset: LumosDataset) -> Iterator[tuple[str, str | None]]:
    schema = dataset.schema
    yield "primary key", ", ".join(schema.primary_key)
    for columns in schema.unique_keys:
        yield "unique key", ", ".join(columns)
    for key in schema.foreign_keys:
        target = f" ({', '.join(key.referenced_columns)})" if key.referenced_columns else ""
        yield "foreign key", f"{', '.join(key.columns)} -> {key.references}{target}"
    yield "upstream", "\n".join(dataset.lineage.upstream)
    yield "downstream", "\n".join(dataset.lineage.downstream)


def _field_lines(field: Field, primary_key: tuple[str, ...], *, depth: int) -> Iterator[str]:
    marks = [
        "" if field.nullable else "required",
        "key" if depth == 1 and field.name in primary_key else "",
        "pii" if field.pii else "",
        f"default {field.default}" if field.default is not None else "",
        f"[{', '.join((*field.tags, *field.glossary_terms))}]"
        if field.tags or field.glossary_terms
        else "",
    ]
    notes = " ".join(mark for mark in marks if mark)
    text = f"  -- {field.description}" if field.description else ""
    yield f"{'  ' * depth}{field.name}: {_type_text(field)} {notes}".rstrip() + text
    for member in field.fields:
        yield from _field_lines(member, (), depth=depth + 1)


def _type_text(field: FieldType) -> str:
    return "STRUCT" if field.fields else field.signature()


def size_text(count: int) -> str:
    """Write a number of bytes in the unit that fits."""
    size, unit = float(count), 0
    while size >= _STEP and unit < len(_UNITS) - 1:
        size, unit = size / _STEP, unit + 1
    return f"{count:,} {_UNITS[0]}" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def _counted_or_none(count: int | None, noun: str) -> str | None:
    return None if count is None else counted(count, noun)


def _plain(value: object) -> str:
    from lumos.core.models.base import canonical_json

    return value if isinstance(value, str) else canonical_json(value).decode()
