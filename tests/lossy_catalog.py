"""A catalog that loses one concept of all that it is given, and what is then left of it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Self, cast

from pydantic import JsonValue
from typing_extensions import override

from lumos.core.models import LineageEdge, LumosDataset, Urn
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.platform.interface import Entity, EntityKind
from lumos.core.store.database import StateDatabase
from whole_snapshot import BARE

Json = dict[str, JsonValue]
ENTITIES: Mapping[str, EntityKind] = {
    "job": "job",
    "user": "user",
    "group": "group",
    "tag_definition": "tag",
    "glossary_term": "glossary_term",
    "domain_definition": "domain",
}
BESIDE_DATASETS = {*ENTITIES, "lineage_edge", "column_lineage", "identity", "catalog_extension"}


def _part(name: str) -> Callable[[Json], None]:
    return lambda document: _drop(document, name)


def _inner(part: str, *names: str) -> Callable[[Json], None]:
    def lose(document: Json) -> None:
        inside = document.get(part)
        for name in names:
            _drop(inside, name)

    return lose


def _drop(document: JsonValue, name: str) -> None:
    if isinstance(document, dict):
        document.pop(name, None)


def _of_fields(change: Callable[[Json], None]) -> Callable[[Json], None]:
    def lose(document: Json) -> None:
        schema = cast("Json", document.get("schema", {}))
        for field in cast("list[Json]", schema.get("fields", [])):
            change(field)

    return lose


def _last_field(document: Json) -> None:
    schema = cast("Json", document.get("schema", {}))
    fields = cast("list[Json]", schema.get("fields", []))
    schema["fields"] = [field for field in fields if field["name"] != "state"]


def _flat(field: Json) -> None:
    if field["type"] == "ARRAY":
        field["items"] = {"type": "STRING"}


LOSSES: Mapping[str, Callable[[Json], None]] = {
    **{
        name: _part(name)
        for name in (
            *("kind", "environment", "format", "location", "statistics", "profile", "quality"),
            *("cost", "version"),
        )
    },
    "tag": _part("tags"),
    "property": _part("properties"),
    "assertion": _part("assertions"),
    "extension": _part("extensions"),
    "field": _last_field,
    "nested_field": _of_fields(_flat),
    "field_description": _of_fields(_part("description")),
    "field_default": _of_fields(_part("default")),
    "field_pii": _of_fields(_part("pii")),
    "field_tag": _of_fields(_part("tags")),
    "field_term": _of_fields(_part("glossary_terms")),
    "field_property": _of_fields(_part("properties")),
    "field_deprecation": _of_fields(_part("deprecation")),
    "primary_key": _inner("schema", "primary_key"),
    "unique_key": _inner("schema", "unique_keys"),
    "foreign_key": _inner("schema", "foreign_keys"),
    "check": _inner("schema", "checks"),
    "owner": _inner("ownership", "owners"),
    "term": _inner("governance", "glossary_terms"),
    "domain": _inner("governance", "domains"),
    "deprecation": _inner("governance", "deprecation"),
    "governance": _inner("governance", "stability", "access", "retention_days"),
    "description": _inner("documentation", "description"),
    "documentation": _inner("documentation", "business_context", "sla"),
    "link": _inner("documentation", "links"),
}
"""How a dataset loses a concept that it has."""


class LossyCatalog(EmbeddedHandler):
    """A catalog with a database of its own; one concept of what it got is not there any more."""

    name = "lossy"
    loses: ClassVar[str] = ""

    @classmethod
    @override
    def from_config(cls, config: Mapping[str, JsonValue]) -> Self:
        return cls(StateDatabase.open(Path("lossy.db")))

    @override
    def _pages(self, platform: str | None, page_size: int) -> Iterator[LumosDataset]:
        lose = LOSSES.get(self.loses)
        for dataset in super()._pages(platform, page_size):
            if self.loses == "dataset" and dataset.urn == BARE:
                continue
            document = copy.deepcopy(dataset.to_json())
            if lose is not None:
                lose(document)
            yield LumosDataset.from_json(document)

    @override
    def list_edges(self) -> Iterator[LineageEdge]:
        for edge in super().list_edges():
            if self.loses == "lineage_edge" and edge.job_urn is None:
                continue
            document = edge.to_json()
            if self.loses == "column_lineage":
                document.pop("column_mappings", None)
            yield LineageEdge.from_json(document)

    @override
    def _entities(self, kind: EntityKind) -> Iterable[Entity]:
        return () if ENTITIES.get(self.loses) == kind else super()._entities(kind)

    @override
    def identity_map(self) -> dict[Urn, dict[str, str]]:
        return {} if self.loses == "identity" else super().identity_map()

    @override
    def extensions(self) -> dict[str, JsonValue]:
        return {} if self.loses == "catalog_extension" else super().extensions()
