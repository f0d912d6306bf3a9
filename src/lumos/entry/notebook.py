"""Answers of the SDK: the canonical models, with a short `repr` and a table in a notebook.

Each class is the model it is named after and adds only how it is shown, so that an answer goes
wherever that model goes. Everything that comes from outside is escaped.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel
from typing_extensions import override

from lumos.core.controllers.catalog_results import ComparisonResult, TrendResult
from lumos.core.controllers.results import (
    DiffResult,
    ExportResult,
    ImportResult,
    IngestResult,
    MigrationResult,
    ProfileResult,
    ValidationResult,
)
from lumos.core.models import LumosDataset, SchemaHistory
from lumos.core.platform.interface import SearchPage
from lumos.core.store.snapshots.manifest import SnapshotInfo
from lumos.feature.sync.results import SyncResult
from lumos.feature.versioning.results import BlameResult, VersionScanResult

if TYPE_CHECKING:
    from pandas import DataFrame

    from lumos.feature.versioning.reported_change import ReportedChange

M = TypeVar("M", bound=BaseModel)
ROWS_SHOWN = 100
_STYLE = "text-align:left;vertical-align:top"
_RANKS = ("BREAKING", "NON_BREAKING", "INFORMATIONAL")


def table(title: str, headers: Sequence[str], *, rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table of plain text; what is beyond the first rows is counted."""
    iterator = iter(rows)
    head = "".join(f'<th style="{_STYLE}">{escape(header)}</th>' for header in headers)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_STYLE}">{_cell(cell)}</td>' for cell in row) + "</tr>"
        for row in islice(iterator, ROWS_SHOWN)
    )
    rest = sum(1 for _ in iterator)
    more = f"<p>and {rest:,} more</p>" if rest else ""
    return (
        f'<table><caption style="text-align:left">{escape(title)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
    )


def _cell(value: object) -> str:
    return "" if value is None else f"<bdi>{escape(str(value))}</bdi>"


def answer(kind: type[M], model: BaseModel) -> M:
    """Return a model as the answer that shows it, without validating it again."""
    values = {name: getattr(model, name) for name in type(model).model_fields}
    return kind.model_construct(_fields_set=set(model.model_fields_set), **values)


class _Answer:
    """What the answers share: they are summed up in one line."""

    @abstractmethod
    def one_line(self) -> str:
        """Say in one line what this is."""

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.one_line())}</p>"

    @override
    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.one_line()}>"

    @override
    def __str__(self) -> str:
        return self.one_line()


class _Rows(_Answer):
    """What answers with rows share: iteration, a length, and a frame of pandas.

    A model would iterate over its fields, which is why the type checker objects to each class.
    """

    @abstractmethod
    def _rows(self) -> Sequence[BaseModel]:
        """Return what there is one of in each row."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows())

    def __len__(self) -> int:
        return len(self._rows())

    def to_pandas(self) -> DataFrame:
        """Return a frame with one row for each item, and a column for each of its fields."""
        from pandas import DataFrame

        rows = self._rows()
        columns = [*type(rows[0]).model_fields] if rows else None
        return DataFrame([row.model_dump(mode="json") for row in rows], columns=columns)


class Dataset(_Answer, LumosDataset):
    """A dataset of the catalog."""

    @override
    def one_line(self) -> str:
        columns = len(self.schema.fields)
        version = f", version {self.version}" if self.version else ""
        return f"{self.urn}: {columns} columns{version}"

    @override
    def _repr_html_(self) -> str:
        key = set(self.schema.primary_key)
        rows = (
            (
                field.name,
                field.signature(),
                " ".join(
                    mark
                    for mark, given in (
                        ("required", not field.nullable),
                        ("key", field.name in key),
                        ("pii", field.pii),
                    )
                    if given
                ),
                field.description,
            )
            for field in self.schema.fields
        )
        owners = ", ".join(owner.name for owner in self.ownership.owners) or "none"
        about = self.documentation.description or "no description"
        return (
            f"<p><b>{_cell(self.name)}</b> {escape(self.version or '')}<br>{_cell(about)}<br>"
            f"Owners: {_cell(owners)}</p>"
            + table(self.urn, ("column", "type", "", "description"), rows=rows)
        )


class SearchResults(_Rows, SearchPage):  # type: ignore[misc]
    """What a search found."""

    @override
    def _rows(self) -> Sequence[BaseModel]:
        return self.hits

    @override
    def one_line(self) -> str:
        missing = ", ".join(answer.catalog for answer in self.problems)
        without = f", without {missing}" if missing else ""
        return f"{len(self.hits):,} of {self.total:,} datasets{without}"

    @override
    def _repr_html_(self) -> str:
        rows = (
            (hit.name, hit.platform, hit.format, ", ".join(hit.owners), hit.version, hit.urn)
            for hit in self.hits
        )
        headers = ("name", "platform", "format", "owners", "version", "urn")
        return table(self.one_line(), headers, rows=rows)


class History(_Rows, SchemaHistory):  # type: ignore[misc]
    """The versions of a dataset, newest last."""

    @override
    def _rows(self) -> Sequence[BaseModel]:
        return self.schema_history

    @override
    def one_line(self) -> str:
        newest = self.schema_history[-1].version if self.schema_history else "none"
        return f"{self.urn}: {len(self.schema_history):,} versions, newest {newest}"

    @override
    def _repr_html_(self) -> str:
        rows = (
            (
                version.version,
                f"{version.timestamp:%Y-%m-%d %H:%M} UTC",
                version.change_type or "FIRST",
                "BREAKING" if version.backward_compatible is False else "",
                version.author,
            )
            for version in reversed(self.schema_history)
        )
        return table(self.one_line(), ("version", "when", "change", "", "author"), rows=rows)


class Trend(_Rows, TrendResult):  # type: ignore[misc]
    """What was measured of a dataset over time, by kind, newest last."""

    @override
    def _rows(self) -> Sequence[BaseModel]:
        return self.observations

    @override
    def one_line(self) -> str:
        return f"{self.urn}: {len(self.observations):,} measurements"

    @override
    def _repr_html_(self) -> str:
        headers = ("kind", "when", "rows", "bytes", "files", "quality", "change", "by")
        rows = (
            (
                point.kind.lower(),
                f"{point.at:%Y-%m-%d %H:%M} UTC",
                point.rows,
                point.size_bytes,
                point.files,
                point.quality_score,
                point.change,
                point.contributor,
            )
            for point in reversed(self.observations)
        )
        return table(self.one_line(), headers, rows=rows)


class Blame(_Rows, BlameResult):  # type: ignore[misc]
    """Which version brought each column of a dataset in, and which one changed it last."""

    @override
    def _rows(self) -> Sequence[BaseModel]:
        return self.columns

    @override
    def one_line(self) -> str:
        return f"{self.urn}: {len(self.columns):,} columns of version {self.version or 'none'}"

    @override
    def _repr_html_(self) -> str:
        rows = (
            (
                column.path,
                column.type,
                column.added.version,
                column.changed.version if column.changed else "",
                f"{column.latest.timestamp:%Y-%m-%d %H:%M} UTC",
                column.latest.author,
            )
            for column in self.columns
        )
        headers = ("column", "type", "added in", "changed in", "when", "author")
        return table(self.one_line(), headers, rows=rows)


class Versions(_Rows, VersionScanResult):  # type: ignore[misc]
    """The versions that datasets get, or got."""

    @override
    def _rows(self) -> Sequence[BaseModel]:
        return self.versions

    @override
    def one_line(self) -> str:
        counts, verb = self.counts, "would get" if self.dry_run else "got"
        return (
            f"{counts.new:,} datasets {verb} a version: {counts.first:,} first, "
            f"{counts.major:,} major, {counts.minor:,} minor, {counts.patch:,} patch"
        )

    @override
    def _repr_html_(self) -> str:
        rows = (
            (each.dataset, each.previous_version, each.version, each.change_type)
            for each in self.versions
        )
        return table(self.one_line(), ("dataset", "was", "is", "change"), rows=rows)


class Comparison(_Rows, ComparisonResult):  # type: ignore[misc]
    """How two versions of a dataset differ."""

    @override
    def _rows(self) -> Sequence[BaseModel]:
        return self.changes

    @override
    def one_line(self) -> str:
        return (
            f"{self.dataset}: {_counted(self.changes)} from {self.from_version} "
            f"to {self.to_version}"
        )

    @override
    def _repr_html_(self) -> str:
        return _changes_table(self.one_line(), self.changes)


class Diff(_Rows, DiffResult):  # type: ignore[misc]
    """How two snapshots or catalogs differ."""

    @override
    def _rows(self) -> Sequence[BaseModel]:
        return self.changes

    @override
    def one_line(self) -> str:
        return (
            f"{self.source} to {self.target}: {_counted(self.changes)}; datasets: "
            f"{len(self.added):,} added, {len(self.removed):,} removed, "
            f"{len(self.changed):,} changed"
        )

    @override
    def _repr_html_(self) -> str:
        return _changes_table(self.one_line(), self.changes)


class Profiles(_Rows, ProfileResult):  # type: ignore[misc]
    """What the data of datasets showed."""

    @override
    def _rows(self) -> Sequence[BaseModel]:
        return self.profiles

    @override
    def one_line(self) -> str:
        rows = sum(each.profile.row_count for each in self.profiles)
        return f"{len(self.profiles):,} profiled, {rows:,} rows; {len(self.failed):,} failed"

    @override
    def _repr_html_(self) -> str:
        headers = ("column", "type", "nulls", "distinct", "min", "max", "mean")
        return "".join(
            table(
                f"{each.dataset}: {each.profile.row_count:,} rows",
                headers,
                rows=(
                    (
                        column.path,
                        column.type,
                        column.null_count,
                        column.distinct_count,
                        column.min,
                        column.max,
                        column.mean,
                    )
                    for column in each.profile.columns
                ),
            )
            for each in self.profiles
        )


class Ingestion(_Rows, IngestResult):  # type: ignore[misc]
    """What an ingestion found and what had changed."""

    @override
    def _rows(self) -> Sequence[BaseModel]:
        return self.changes

    @override
    def one_line(self) -> str:
        return (
            f"{self.datasets.found:,} datasets in {self.files.listed:,} files, "
            f"{_counted(self.changes)}, {self.files.unreadable:,} unreadable files"
        )

    @override
    def _repr_html_(self) -> str:
        return _changes_table(self.one_line(), self.changes)


class StoredSnapshot(_Answer, SnapshotInfo):
    """A snapshot in the store."""

    @override
    def one_line(self) -> str:
        return f"{self.id}: {self.statistics.datasets:,} datasets"


class Export(_Answer, ExportResult):
    """What was written, and where to."""

    @override
    def one_line(self) -> str:
        return f"{self.output}: {self.statistics.datasets:,} datasets of {self.source}"


class Import(_Answer, ImportResult):
    """What an import did, or would do."""

    @override
    def one_line(self) -> str:
        verb = "would import" if self.dry_run else "imported"
        return (
            f"{verb}: {len(self.created):,} new, {len(self.updated):,} changed, "
            f"{self.unchanged:,} unchanged, {self.skipped:,} skipped, "
            f"{self.report.counts.failed:,} failed"
        )


class Validation(_Rows, ValidationResult):  # type: ignore[misc]
    """What a check of a snapshot found."""

    @override
    def _rows(self) -> Sequence[BaseModel]:
        return self.checks

    @override
    def one_line(self) -> str:
        return f"{self.status}: {'; '.join(check.message for check in self.checks)}"

    @override
    def _repr_html_(self) -> str:
        rows = ((check.status, check.message) for check in self.checks)
        return table(self.status, ("", "check"), rows=rows)


class Sync(_Answer, SyncResult):
    """What a sync did, or would do."""

    @override
    def one_line(self) -> str:
        verb = "would bring" if self.dry_run else "brought"
        datasets = self.kinds.get("dataset")
        if datasets is None:
            return f"{verb} no dataset to {self.target}"
        return (
            f"{verb} to {self.target}: {datasets.new:,} new, {datasets.changed:,} changed, "
            f"{datasets.unchanged:,} unchanged, {datasets.removed:,} removed, "
            f"{datasets.failed:,} failed datasets"
        )

    @override
    def _repr_html_(self) -> str:
        names = ("new", "changed", "unchanged", "removed", "failed")
        rows = (
            (kind.replace("_", " "), *(f"{getattr(each, name):,}" for name in names))
            for kind, each in self.kinds.items()
        )
        return table(self.one_line(), ("", *names), rows=rows)


class Migration(_Answer, MigrationResult):
    """What a migration did, or would do."""

    @override
    def one_line(self) -> str:
        way = f"{self.source} to {self.target}"
        if self.dry_run:
            return f"{way}: nothing was written"
        return f"{way}: {'; '.join(check.message for check in self.checks)}"

    @override
    def _repr_html_(self) -> str:
        checks = self.validation.checks if self.dry_run else self.checks
        rows = ((check.status, check.message) for check in checks)
        return table(f"{self.source} to {self.target}", ("", "check"), rows=rows)


def _counted(changes: Sequence[ReportedChange]) -> str:
    breaking = sum(change.level == "BREAKING" for change in changes)
    return f"{len(changes):,} changes, {breaking:,} breaking"


def _changes_table(title: str, changes: Iterable[ReportedChange]) -> str:
    worst_first = sorted(changes, key=lambda each: (_RANKS.index(each.level), each.dataset))
    rows = ((each.level, each.dataset, each.message, each.rule) for each in worst_first)
    return table(title, ("class", "dataset", "change", "rule"), rows=rows)
