"""dbt projects by their artifacts: `manifest.json`, and `catalog.json` and `run_results.json`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import Field
from typing_extensions import override

from lumos.core.errors import LumosError, UnexpectedJsonError
from lumos.core.json_reading import text_at
from lumos.core.models import ContributorKind, Job, LineageEdge, LumosDataset
from lumos.feature.ingestion.handlers.base_ingestion_handler import (
    BaseIngestionHandler,
    RecordSourceSettings,
)
from lumos.feature.ingestion.handlers.dbt.artifacts import (
    CATALOG,
    MANIFEST,
    RUN_RESULTS,
    Artifact,
    ArtifactKind,
    read_artifact,
    unreachable,
)
from lumos.feature.ingestion.handlers.dbt.columns import missing_columns
from lumos.feature.ingestion.handlers.dbt.datasets import Assertions, DatasetReader, job_of
from lumos.feature.ingestion.handlers.dbt.observations import DbtTables, quality
from lumos.feature.ingestion.handlers.dbt.project import Project
from lumos.feature.ingestion.handlers.dbt.relations import Relations, relation_platform
from lumos.feature.ingestion.handlers.dbt.shapes import printable_dbt_name, unread_item
from lumos.feature.ingestion.records import (
    PreviousScan,
    ScanMark,
    ScannedScope,
    ScanRecord,
    ScanUnit,
    ScanWarning,
    UnreadableItem,
)

EVERYTHING: Final = "lumos://"
"""The scope of a source that declares: all that it ever said, wherever that is."""


class DbtSettings(RecordSourceSettings):
    """Where the artifacts of a dbt project lie; relative paths begin at the settings file."""

    manifest_path: Path = Field(description="The manifest.json that dbt writes to `target/`.")
    catalog_path: Path | None = Field(
        default=None,
        description="The catalog.json of `dbt docs generate`: all columns, types and sizes.",
    )
    run_results_path: Path | None = Field(
        default=None,
        description="The run_results.json of `dbt build` or `dbt test`: results of tests.",
    )


class DbtHandler(BaseIngestionHandler[DbtSettings]):
    """Reads what a dbt project declares of the tables and views that it makes and reads."""

    source_type = "dbt"
    settings_model = DbtSettings
    contributes_as = ContributorKind.DECLARED

    @override
    def plan(self, previous: PreviousScan) -> Iterator[ScanUnit]:
        for path, kind in self._files():
            try:
                os.stat(path)
            except OSError as error:
                raise unreachable(path, kind, source=self.name, error=error) from None
        yield ScanUnit(str(self.settings.manifest_path))

    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        artifacts = {
            kind: read_artifact(path, kind, source=self.name) for path, kind in self._files()
        }
        for artifact in artifacts.values():
            yield from _notices(artifact)
        manifest = artifacts[MANIFEST]
        platform = relation_platform(_adapter(manifest))
        project = Project(manifest, Relations(platform, instance=self.settings.instance))
        yield from project.problems
        if project.not_read:
            yield ScanWarning(manifest.file_name, f"not read: {', '.join(project.not_read)}")
        tables = None
        if catalog := artifacts.get(CATALOG):
            tables = DbtTables(catalog, manifest, project)
            yield from tables.notices
            yield from _undeclared(project, tables, catalog)
        assertions = Assertions(project)
        yield from assertions.problems
        yield from _statements(project, assertions, tables)
        yield from _observations(artifacts, project, assertions=assertions, tables=tables)
        for artifact in artifacts.values():
            yield ScanMark(artifact.kind.mark, artifact.sha256)
        if not project.has_unnamed:
            yield ScannedScope(EVERYTHING)

    def _files(self) -> Iterator[tuple[Path, ArtifactKind]]:
        yield self.settings.manifest_path.expanduser(), MANIFEST
        if self.settings.catalog_path is not None:
            yield self.settings.catalog_path.expanduser(), CATALOG
        if self.settings.run_results_path is not None:
            yield self.settings.run_results_path.expanduser(), RUN_RESULTS


def _statements(
    project: Project, assertions: Assertions, tables: DbtTables | None
) -> Iterator[ScanRecord]:
    reader = DatasetReader(project, tables.of if tables else {})
    broken = tables.broken if tables else frozenset[str]()
    for unique_id, node in project.datasets.items():
        urn = project.urns[unique_id]
        records: list[LumosDataset | LineageEdge] = []
        try:
            records += reader.edges_of(unique_id, node)
            if unique_id not in broken:
                checks = list(assertions.of.get(urn, {}).values())
                records.insert(0, reader.dataset_of(unique_id, node, assertions=checks))
        except LumosError as error:
            yield unread_item(printable_dbt_name(unique_id), error, urn)
        yield from records
    yield from _jobs(project)
    yield from reader.people.records()


def _jobs(project: Project) -> Iterator[Job | UnreadableItem]:
    for unique_id, value in sorted(project.exposures.items()):
        try:
            if job := job_of(project, unique_id, value):
                yield job
        except LumosError as error:
            yield unread_item(printable_dbt_name(unique_id), error, project.urn_of_exposure(value))


def _observations(
    artifacts: dict[ArtifactKind, Artifact],
    project: Project,
    *,
    assertions: Assertions,
    tables: DbtTables | None,
) -> Iterator[ScanRecord]:
    catalog, results = artifacts.get(CATALOG), artifacts.get(RUN_RESULTS)
    if catalog and tables and (at := catalog.generated_at):
        yield from tables.statistics(project, at)
    if results and (at := results.generated_at):
        try:
            yield from quality(results, assertions, at)
        except UnexpectedJsonError as error:
            yield unread_item(results.file_name, error)


def _notices(artifact: Artifact) -> Iterator[ScanWarning]:
    kind = artifact.kind
    if artifact.is_newer_than_known:
        yield ScanWarning(
            artifact.file_name,
            f"it is of version v{artifact.version}, newer than v{kind.newest}, which Lumos knows; "
            "what is new in it is not read",
        )
    if kind is not MANIFEST and artifact.generated_at is None:
        yield ScanWarning(
            artifact.file_name, "it does not say when it was written; no figures read"
        )


def _undeclared(project: Project, tables: DbtTables, catalog: Artifact) -> Iterator[ScanWarning]:
    """Yield one warning for all documented columns that no table has."""
    missing: list[tuple[str, str]] = []
    for unique_id, table in tables.of.items():
        try:
            found = missing_columns(project.datasets[unique_id], table)
        except LumosError:
            continue  # reported when the dataset is read
        missing += [(unique_id, name) for name in found]
    if missing:
        (unique_id, name), count = missing[0], len(missing)
        yield ScanWarning(
            catalog.file_name,
            f"{count} documented column{'' if count == 1 else 's'} not in the table, "
            f"such as {printable_dbt_name(name)} of {printable_dbt_name(unique_id)}",
        )


def _adapter(manifest: Artifact) -> str | None:
    try:
        return text_at(manifest.metadata, "adapter_type")
    except UnexpectedJsonError:
        return None
