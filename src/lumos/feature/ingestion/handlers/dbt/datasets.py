"""Datasets, their assertions and their lineage, from the nodes of a project."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from lumos.core.errors import LumosError
from lumos.core.json_reading import as_object, object_at, text_at
from lumos.core.models import DQAssertion, Job, LineageEdge, LumosDataset, Urn
from lumos.feature.ingestion.handlers.dbt.artifacts import day_at
from lumos.feature.ingestion.handlers.dbt.columns import SchemaReader, tags_of
from lumos.feature.ingestion.handlers.dbt.meta import (
    People,
    flattened,
    meta_of,
    properties_of,
    text_properties,
    without_secrets,
)
from lumos.feature.ingestion.handlers.dbt.project import Project, is_enabled, materialized
from lumos.feature.ingestion.handlers.dbt.relations import name_of
from lumos.feature.ingestion.handlers.dbt.shapes import printable_dbt_name, unread_item

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.feature.ingestion.records import UnreadableItem

_KINDS: Final[Mapping[str, str]] = {
    "table": "TABLE",
    "incremental": "TABLE",
    "seed": "TABLE",
    "snapshot": "TABLE",
    "dynamic_table": "TABLE",
    "streaming_table": "TABLE",
    "external": "TABLE",
    "view": "VIEW",
    "materialized_view": "VIEW",
    "materializedview": "VIEW",
    "base table": "TABLE",
    "local temporary": "TABLE",
    "materialized view": "VIEW",
}
"""Kinds by dbt's materializations, and by the types that catalogs give tables."""
_ACCESSES: Final = frozenset({"private", "protected", "public"})
_OWN_ARGUMENTS: Final = frozenset({"model", "column_name"})


class DatasetReader:
    """Builds the datasets of a project."""

    def __init__(self, project: Project, tables: Mapping[str, Json]) -> None:
        self._project = project
        self._tables = tables
        self._schemas = SchemaReader(project.relations.platform, project.by_relation)
        self.people = People()

    def dataset_of(
        self, unique_id: str, node: Json, *, assertions: list[DQAssertion]
    ) -> LumosDataset:
        """Return the dataset of a model, seed, snapshot or source.

        Raises:
            LumosError: a part of the node does not have the shape that dbt gives it.
        """
        table = self._tables.get(unique_id, {})
        urn = self._project.urns[unique_id]
        meta = meta_of(node)
        owners = self.people.owners_of(meta, group=self._project.group_of(node))
        comment = text_at(object_at(table, "metadata"), "comment")
        document: dict[str, object] = {
            "urn": urn,
            "name": name_of(node),
            "platform": urn.platform,
            "kind": _kind(node, table),
            "database": text_at(node, "database"),
            "namespace": text_at(node, "schema"),
            "schema": self._schemas.schema_of(node, table),
            "ownership": {"owners": owners},
            "tags": tags_of(node),
            "governance": self._governance(node),
            "documentation": {"description": text_at(node, "description") or comment},
            "properties": properties_of(meta),
            "assertions": assertions,
            "extensions": {"dbt": _extension(unique_id, node)},
        }
        return LumosDataset.from_json(document)

    def edges_of(self, unique_id: str, node: Json) -> Iterator[LineageEdge]:
        """Yield the lineage into a dataset.

        Raises:
            LumosError: what it depends on is not listed as dbt does it.
        """
        urn = self._project.urns[unique_id]
        kind = "VIEW" if _kind(node, {}) == "VIEW" else "TRANSFORMED"
        for upstream in self._project.upstream_of(unique_id, node):
            if upstream != urn:
                yield LineageEdge.from_json(
                    {
                        "upstream_urn": upstream,
                        "downstream_urn": urn,
                        "lineage_type": kind,
                        "provenance": "dbt",
                    }
                )

    def _governance(self, node: Json) -> Json:
        access = text_at(node, "access") or text_at(object_at(node, "config"), "access")
        governance: Json = {"access": access.upper()} if access in _ACCESSES else {}
        if sunset := day_at(node, "deprecation_date"):
            latest = self._project.latest_of(node)
            governance["deprecation"] = {
                "sunset": sunset.isoformat(),
                "replacement": str(latest) if latest else None,
            }
        return governance


class Assertions:
    """The tests of a project, by the datasets that they are about."""

    def __init__(self, project: Project) -> None:
        self.of: defaultdict[Urn, dict[str, DQAssertion]] = defaultdict(dict)
        """The assertions of each dataset, by name."""
        self.named: dict[str, str] = {}
        """The name that each test has as an assertion, by unique id."""
        self.datasets: dict[str, list[Urn]] = {}
        self.problems: list[UnreadableItem] = []
        for unique_id, node in project.tests.items():
            try:
                self._add(unique_id, node, project.tested_by(unique_id, node))
            except LumosError as error:
                self.problems.append(unread_item(printable_dbt_name(unique_id), error))
        for unique_id, node in project.datasets.items():
            try:
                freshness = _freshness(node)
            except LumosError as error:
                self.problems.append(unread_item(printable_dbt_name(unique_id), error))
                continue
            if freshness:
                self.of[project.urns[unique_id]].setdefault(freshness.name, freshness)

    def _add(self, unique_id: str, node: Json, urns: list[Urn]) -> None:
        name = text_at(node, "name") or unique_id
        if any(name in self.of[urn] for urn in urns if urn in self.of):
            name = unique_id
        assertion = _assertion(name, node)
        for urn in urns:
            self.of[urn][name] = assertion
        self.named[unique_id] = name
        self.datasets[unique_id] = urns


def job_of(project: Project, unique_id: str, value: JsonValue) -> Job | None:
    """Return the job that an exposure is; None for one that is switched off.

    Raises:
        LumosError: a part of it does not have the shape that dbt gives it.
    """
    node = as_object(value, unique_id)
    if not is_enabled(node):
        return None
    urn = project.relations.urn_of_exposure(node)
    owner = object_at(node, "owner")
    own: Mapping[str, str | None] = {
        "label": text_at(node, "label"),
        "maturity": text_at(node, "maturity"),
        "url": text_at(node, "url"),
        "owner": text_at(owner, "name"),
        "owner_email": text_at(owner, "email"),
    }
    properties = flattened(meta_of(node)) | text_properties(own)
    if tags := tags_of(node):
        properties["tags"] = [*tags]
    return Job.from_json(
        {
            "urn": urn,
            "name": text_at(node, "name"),
            "orchestrator": "dbt",
            "flow_id": text_at(node, "package_name"),
            "job_id": unique_id,
            "type": text_at(node, "type"),
            "description": text_at(node, "description"),
            "inputs": project.upstream_of(unique_id, node),
            "properties": properties,
        }
    )


def _kind(node: Json, table: Json) -> str | None:
    how = materialized(node) or text_at(object_at(table, "metadata"), "type") or ""
    return _KINDS.get(how.lower())


def _extension(unique_id: str, node: Json) -> Json:
    group = text_at(node, "group") or text_at(object_at(node, "config"), "group")
    extension: Json = {
        "unique_id": unique_id,
        "resource_type": text_at(node, "resource_type"),
        "package": text_at(node, "package_name"),
        "original_file_path": text_at(node, "original_file_path"),
        "materialized": materialized(node),
        "group": group,
        "version": _version(node, "version"),
        "latest_version": _version(node, "latest_version"),
    }
    return {name: value for name, value in extension.items() if value is not None}


def _version(node: Json, key: str) -> str | None:
    """Return a version as text: dbt has numbers and texts."""
    value = node.get(key)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return text_at(node, key)


def _assertion(name: str, node: Json) -> DQAssertion:
    metadata, config = object_at(node, "test_metadata"), object_at(node, "config")
    arguments = object_at(metadata, "kwargs")
    kind, namespace = text_at(metadata, "name"), text_at(metadata, "namespace")
    is_warning = (text_at(config, "severity") or "").lower().startswith("warn")
    return DQAssertion.from_json(
        {
            "name": name,
            "kind": f"{namespace}.{kind}" if kind and namespace else kind or "sql",
            "column": text_at(node, "column_name") or text_at(arguments, "column_name"),
            "parameters": without_secrets(
                {key: arguments[key] for key in arguments if key not in _OWN_ARGUMENTS}
            ),
            "severity": "WARNING" if is_warning else "ERROR",
            "validator": "dbt",
            "description": text_at(node, "description"),
        }
    )


def _freshness(node: Json) -> DQAssertion | None:
    """Return what a source promises of its freshness, if it does."""
    freshness = node.get("freshness")
    if not isinstance(freshness, dict) or node.get("resource_type") != "source":
        return None
    limits: Json = {}
    for name in ("warn_after", "error_after"):
        limit = freshness.get(name)
        if isinstance(limit, dict):
            count, period = limit.get("count"), limit.get("period")
            if isinstance(count, int) and isinstance(period, str):
                limits[name] = f"{count} {period}{'' if count == 1 else 's'}"
    column = node.get("loaded_at_field")
    if not limits:
        return None
    return DQAssertion.from_json(
        {
            "name": "freshness",
            "kind": "freshness",
            "column": column if isinstance(column, str) else None,
            "parameters": limits,
            "severity": "ERROR" if "error_after" in limits else "WARNING",
            "validator": "dbt",
        }
    )
