"""What dbt measured: sizes of tables in its catalog, and results of tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

from lumos.core.errors import LumosError
from lumos.core.json_reading import as_object, list_at, object_at, text_at
from lumos.core.models import (
    AssertionResult,
    AssertionStatus,
    DatasetQuality,
    Observation,
    ObservationKind,
    OperationalMetadata,
    Urn,
)
from lumos.core.models.base import LARGEST_INTEGER
from lumos.feature.ingestion.handlers.dbt.relations import name_of
from lumos.feature.ingestion.handlers.dbt.shapes import printable_dbt_name, unread_item
from lumos.feature.ingestion.records import ScanWarning, UnreadableItem

if TYPE_CHECKING:
    from lumos.core.json_reading import Json
    from lumos.feature.ingestion.handlers.dbt.artifacts import Artifact
    from lumos.feature.ingestion.handlers.dbt.datasets import Assertions
    from lumos.feature.ingestion.handlers.dbt.project import Project

_ROWS: Final = ("row_count", "num_rows", "rows")
_BYTES: Final = ("bytes", "num_bytes")
_ESTIMATING: Final = frozenset({"redshift"})
"""Platforms whose catalogs hold about how many rows there are."""
_STATUSES: Final[Mapping[str, AssertionStatus]] = {
    "pass": AssertionStatus.PASSED,
    "success": AssertionStatus.PASSED,
    "fail": AssertionStatus.FAILED,
    "warn": AssertionStatus.WARNING,
    "error": AssertionStatus.ERROR,
    "runtime error": AssertionStatus.ERROR,
    "skipped": AssertionStatus.SKIPPED,
}


class DbtTables:
    """The tables of `catalog.json` that belong to nodes of the manifest."""

    def __init__(self, catalog: Artifact, manifest: Artifact, project: Project) -> None:
        self.of: dict[str, Json] = {}
        """The table of each node, by unique id."""
        self.broken: set[str] = set()
        """Nodes whose table cannot be read: without it their columns would look removed."""
        self.notices: list[ScanWarning | UnreadableItem] = []
        tables = {**catalog.section("nodes"), **catalog.section("sources")}
        elsewhere = 0
        for unique_id in sorted(tables.keys() & project.datasets.keys()):
            try:
                table = as_object(tables[unique_id], unique_id)
                object_at(table, "columns")
                is_same = _is_same(project.datasets[unique_id], object_at(table, "metadata"))
            except LumosError as error:
                item = f"{catalog.file_name}: {printable_dbt_name(unique_id)}"
                self.notices.append(unread_item(item, error, project.urns[unique_id]))
                self.broken.add(unique_id)
                continue
            elsewhere += not is_same
            if is_same:
                self.of[unique_id] = table
        self._compare(catalog, manifest, elsewhere=elsewhere, is_empty=not tables)
        missing = len(project.datasets) - len(self.of) - len(self.broken) - elsewhere
        if missing and (self.of or self.broken):
            self._warn(
                catalog,
                f"{missing} of {len(project.datasets)} tables and views of {manifest.file_name} "
                "are not in it; only their documented columns are read",
            )

    def _compare(
        self, catalog: Artifact, manifest: Artifact, *, elsewhere: int, is_empty: bool
    ) -> None:
        """Warn of a catalog that was written for something else."""
        if not (is_empty or self.of or self.broken or elsewhere):
            self._warn(catalog, f"no table of it is in {manifest.file_name}: another project?")
        elif elsewhere:
            self._warn(
                catalog,
                f"tables in another database or schema than in {manifest.file_name} are not read "
                f"({elsewhere}): another target?",
            )
        elif catalog.invocation != manifest.invocation:
            self._warn(
                catalog,
                f"it was not written together with {manifest.file_name} and may be older; "
                "dbt docs generate writes both",
            )

    def statistics(self, project: Project, at: datetime) -> Iterator[Observation]:
        """Yield the sizes of the tables."""
        for unique_id, table in self.of.items():
            figures = _figures(table, is_estimate=project.relations.platform in _ESTIMATING)
            if figures:
                yield Observation(
                    urn=project.urns[unique_id],
                    kind=ObservationKind.STATISTICS,
                    at=at,
                    document=OperationalMetadata.from_json(figures).to_json(),
                )

    def _warn(self, catalog: Artifact, text: str) -> None:
        self.notices.append(ScanWarning(catalog.file_name, text))


def quality(
    results: Artifact, assertions: Assertions, at: datetime
) -> Iterator[Observation | ScanWarning | UnreadableItem]:
    """Yield how the tests of each dataset came out; of failures only their number is kept."""
    checks: defaultdict[Urn, dict[str, AssertionResult]] = defaultdict(dict)
    unknown = 0
    for value in list_at(results.document, "results"):
        try:
            result = as_object(value, "results")
            unique_id = text_at(result, "unique_id") or ""
            if not unique_id.startswith("test."):
                continue
            status = _STATUSES.get((text_at(result, "status") or "").lower())
        except LumosError as error:
            yield unread_item(f"{results.file_name}: a result", error)
            continue
        unknown += unique_id not in assertions.named
        if status is None or unique_id not in assertions.named:
            continue
        check = AssertionResult(
            name=assertions.named[unique_id],
            status=status,
            details=_failures(result),
            timestamp=at,
        )
        for urn in assertions.datasets[unique_id]:
            checks[urn][check.name] = check
    if unknown:
        yield ScanWarning(
            results.file_name, f"{unknown} of its test results belong to no test of the manifest"
        )
    elif not checks:
        yield ScanWarning(
            results.file_name, "it holds no results of tests; dbt build and dbt test write them"
        )
    for urn in sorted(checks):
        found = DatasetQuality(
            last_validated=at,
            validator="dbt",
            checks=tuple(checks[urn][name] for name in sorted(checks[urn])),
        )
        yield Observation(urn=urn, kind=ObservationKind.QUALITY, at=at, document=found.to_json())


def _is_same(node: Json, metadata: Json) -> bool:
    """Return whether a table of the catalog has the name that the manifest gives it."""
    expected = (text_at(node, "database"), text_at(node, "schema"), name_of(node))
    found = (text_at(metadata, key) for key in ("database", "schema", "name"))
    return all(
        one is None or two is None or one.casefold() == two.casefold()
        for one, two in zip(expected, found, strict=True)
    )


def _figures(table: Json, *, is_estimate: bool) -> dict[str, int]:
    stats = table.get("stats")
    if not isinstance(stats, dict):
        return {}
    rows, size = _count(stats, _ROWS), _count(stats, _BYTES)
    figures = {
        "row_count_estimate" if is_estimate else "row_count": rows,
        "total_size_bytes": size,
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def _count(stats: Json, names: tuple[str, ...]) -> int | None:
    for name in names:
        entry = stats.get(name)
        value = entry.get("value") if isinstance(entry, dict) else None
        try:
            number = float(value) if isinstance(value, int | float | str) else -1.0
        except (ValueError, OverflowError):
            continue
        if 0 <= number <= LARGEST_INTEGER and number.is_integer():
            return min(int(number), LARGEST_INTEGER)
    return None


def _failures(result: Json) -> str | None:
    failures = result.get("failures")
    if not isinstance(failures, int) or isinstance(failures, bool) or failures <= 0:
        return None
    return f"{failures:,} failure{'' if failures == 1 else 's'}"
