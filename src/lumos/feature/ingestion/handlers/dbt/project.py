"""A dbt project from its manifest: which nodes are datasets, and what is between them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from lumos.core.errors import LumosError
from lumos.core.json_reading import as_object, flag_at, object_at, text_at
from lumos.feature.ingestion.handlers.dbt.columns import unquoted
from lumos.feature.ingestion.handlers.dbt.shapes import (
    one_or_more_texts_at,
    printable_dbt_name,
    unread_item,
)
from lumos.feature.ingestion.records import SkippedItem, UnreadableItem

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.models import Urn
    from lumos.feature.ingestion.handlers.dbt.artifacts import Artifact
    from lumos.feature.ingestion.handlers.dbt.relations import Relations

_DATASETS: Final = ("model", "seed", "snapshot", "source")
"""Resource types that are tables or views; the first of two that mean one table describes it."""
_NOT_READ: Final = {
    "metrics": ("metric", "metrics"),
    "semantic_models": ("semantic model", "semantic models"),
    "saved_queries": ("saved query", "saved queries"),
    "unit_tests": ("unit test", "unit tests"),
    "functions": ("function", "functions"),
}


class Project:
    """The nodes of a manifest, sorted by what they are to Lumos."""

    def __init__(self, manifest: Artifact, relations: Relations) -> None:
        self.relations = relations
        self.datasets: dict[str, Json] = {}
        """Nodes that describe a dataset, by unique id."""
        self.tests: dict[str, Json] = {}
        self.urns: dict[str, Urn] = {}
        """The dataset of each node that is one, also of those that are described elsewhere."""
        self.by_relation: dict[str, Urn] = {}
        """Datasets by the names that SQL has for them."""
        self.problems: list[UnreadableItem | SkippedItem] = []
        self.has_unnamed = False
        """Whether a node could not be read so far that its dataset is known."""
        self._ephemeral: dict[str, Json] = {}
        self._parents = manifest.section("parent_map")
        self._described: dict[Urn, str] = {}
        self.exposures = manifest.section("exposures")
        self._groups = manifest.section("groups")
        self._versions: dict[tuple[str, str, str], Urn] = {}
        nodes = {**manifest.section("nodes"), **manifest.section("sources")}
        for unique_id in sorted(nodes, key=_rank):
            self._sort(unique_id, nodes[unique_id])
        self.not_read = [
            f"{len(found)} {one if len(found) == 1 else many}"
            for name, (one, many) in _NOT_READ.items()
            if (found := manifest.section(name))
        ]

    def upstream_of(self, unique_id: str, node: Json) -> list[Urn]:
        """Return the datasets that a node is made from, through ephemeral models."""
        return self._datasets_of(self._parents_of(unique_id, node))

    def tested_by(self, unique_id: str, node: Json) -> list[Urn]:
        """Return the datasets that a test is about: one, or all that a singular test reads."""
        if attached := text_at(node, "attached_node"):
            return self._datasets_of([attached])
        parents = self._parents_of(unique_id, node)
        if object_at(node, "test_metadata") and len(parents) > 1:
            parents = [_tested_source(node, parents)]
        return self._datasets_of(parents)

    def group_of(self, node: Json) -> Json | None:
        """Return the dbt group that a node belongs to."""
        name = text_at(node, "group") or text_at(object_at(node, "config"), "group")
        if name is None:
            return None
        for unique_id, group in self._groups.items():
            if isinstance(group, dict) and group.get("name") == name:
                return as_object(group, unique_id)
        return {"name": name}

    def latest_of(self, node: Json) -> Urn | None:
        """Return the dataset of the latest version of a versioned model, if it is another one."""
        if (latest := node.get("latest_version")) is None or latest == node.get("version"):
            return None
        return self._versions.get(_version_key(node, latest))

    def urn_of_exposure(self, value: JsonValue) -> Urn | None:
        """Return the URN of the job that an exposure is, as far as it is known."""
        try:
            return self.relations.urn_of_exposure(value) if isinstance(value, dict) else None
        except LumosError:
            return None

    def _sort(self, unique_id: str, value: JsonValue) -> None:
        kind = unique_id.partition(".")[0]
        try:
            node = as_object(value, unique_id)
            kind = text_at(node, "resource_type") or kind
            if not is_enabled(node):
                return
            if kind == "test":
                self.tests[unique_id] = node
            elif kind in _DATASETS and is_ephemeral(node):
                self._ephemeral[unique_id] = node
            elif kind in _DATASETS:
                self._place(unique_id, node, self.relations.urn_of(node))
        except LumosError as error:
            urn = self._urn_if_known(value)
            self.has_unnamed = self.has_unnamed or (urn is None and kind in _DATASETS)
            self.problems.append(unread_item(printable_dbt_name(unique_id), error, urn))

    def _urn_if_known(self, value: JsonValue) -> Urn | None:
        try:
            return self.relations.urn_of(value) if isinstance(value, dict) else None
        except LumosError:
            return None

    def _place(self, unique_id: str, node: Json, urn: Urn) -> None:
        self.urns[unique_id] = urn
        if relation := text_at(node, "relation_name"):
            self.by_relation.setdefault(unquoted(relation), urn)
        if (first := self._described.setdefault(urn, unique_id)) != unique_id:
            reason = f"{printable_dbt_name(first)} describes the same table"
            self.problems.append(SkippedItem(printable_dbt_name(unique_id), reason))
            return
        self.datasets[unique_id] = node
        if node.get("version") is not None:
            self._versions[_version_key(node, node["version"])] = urn

    def _parents_of(self, unique_id: str, node: Json) -> list[str]:
        depends_on = object_at(node, "depends_on")
        if depends_on.get("nodes") is None:
            return one_or_more_texts_at(self._parents, unique_id)
        return one_or_more_texts_at(depends_on, "nodes")

    def _datasets_of(self, unique_ids: Iterable[str]) -> list[Urn]:
        found: dict[Urn, None] = {}
        waiting, seen = list(unique_ids), set[str]()
        while waiting:
            unique_id = waiting.pop()
            if unique_id in seen:
                continue
            seen.add(unique_id)
            if urn := self.urns.get(unique_id):
                found[urn] = None
            elif ephemeral := self._ephemeral.get(unique_id):
                waiting += self._parents_of(unique_id, ephemeral)
        return sorted(found)


def is_enabled(node: Json) -> bool:
    return flag_at(object_at(node, "config"), "enabled", default=True)


def materialized(node: Json) -> str | None:
    return text_at(object_at(node, "config"), "materialized")


def is_ephemeral(node: Json) -> bool:
    return materialized(node) == "ephemeral"


def _rank(unique_id: str) -> tuple[int, str]:
    kind = unique_id.partition(".")[0]
    return (_DATASETS.index(kind) if kind in _DATASETS else len(_DATASETS)), unique_id


def _version_key(node: Json, version: object) -> tuple[str, str, str]:
    return text_at(node, "package_name") or "", text_at(node, "name") or "", str(version)


def _tested_source(node: Json, parents: list[str]) -> str:
    """Return which of its parents a test of a source is about, as its `model` argument says."""
    metadata = object_at(node, "test_metadata")
    model = text_at(object_at(metadata, "kwargs"), "model") or ""
    for parent in parents:
        names = parent.split(".")[2:]
        if names and all(f"'{name}'" in model for name in names):
            return parent
    return parents[-1]
