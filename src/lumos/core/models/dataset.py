"""The dataset: what Lumos knows of a table, a folder of files, a topic or a view."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from operator import itemgetter
from typing import Self

from pydantic import Field as ModelField
from pydantic import JsonValue

from lumos.core.json_reading import Json, as_object, as_objects, list_at, objects_at
from lumos.core.models.base import (
    CanonicalModel,
    Count,
    Name,
    NameSet,
    Properties,
    UtcDatetime,
    sha256_of,
)
from lumos.core.models.cost import CostRecord
from lumos.core.models.facets import DERIVED, NOT_COMPARED, names_in_any_order
from lumos.core.models.frozen import FrozenDict
from lumos.core.models.governance import Documentation, Governance
from lumos.core.models.lineage import DatasetLineage
from lumos.core.models.ownership import Ownership
from lumos.core.models.profile import DatasetProfile
from lumos.core.models.quality import DatasetQuality, DQAssertion
from lumos.core.models.statistics import ColumnFacts, PartitionRange
from lumos.core.models.types import Schema
from lumos.core.models.urn import Urn


class DatasetKind(StrEnum):
    """What sort of thing a dataset is."""

    FILES = "FILES"
    TABLE = "TABLE"
    VIEW = "VIEW"
    STREAM = "STREAM"
    COLLECTION = "COLLECTION"


class Location(CanonicalModel):
    """Where a dataset is kept. It never holds credentials."""

    bucket: str | None = None
    path: str | None = None
    prefix: str | None = None
    partitioning: str | None = ModelField(
        default=None, description="The template of its partitions: `year={yyyy}/month={mm}`."
    )
    partition_keys: tuple[Name, ...] = ()
    sort_keys: tuple[Name, ...] = ModelField(
        default=(), description="What the rows of a file are sorted or clustered by."
    )


class OperationalMetadata(CanonicalModel):
    """Observed facts on a dataset: size, rows, freshness, use."""

    file_count: Count | None = None
    total_size_bytes: Count | None = None
    row_count: Count | None = ModelField(default=None, description="Exact, where it is known.")
    row_count_estimate: Count | None = None
    partition_count: Count | None = None
    partition_count_estimate: Count | None = ModelField(
        default=None, description="About how many, where there are too many to count exactly."
    )
    newest_partition: str | None = ModelField(
        default=None, description="The latest by the time in its name: `dt=2024-01-31`."
    )
    partition_ranges: tuple[PartitionRange, ...] = ()
    last_modified: UtcDatetime | None = None
    last_queried: UtcDatetime | None = None
    query_count: Count | None = None
    columns: tuple[ColumnFacts, ...] = ModelField(
        default=(), description="What is known of single columns, by path."
    )


_IN_ANY_ORDER = names_in_any_order()
_DOCUMENTATION_IN_ANY_ORDER = names_in_any_order("documentation")
_SCHEMA_IN_ANY_ORDER = names_in_any_order("schema")
_SPELT_OR_NESTED = frozenset({"native_type", "items", "key", "value", "branches", "fields"})

# `schema` is the name people know; pydantic's own deprecated method of that name gives way.
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message='Field name "schema"', category=UserWarning)

    class LumosDataset(CanonicalModel):
        """A dataset in canonical form."""

        urn: Urn
        name: Name
        platform: Name
        kind: DatasetKind | None = None
        environment: str | None = None
        database: str | None = None
        namespace: str | None = ModelField(
            default=None, description="What databases call the schema that a table lies in."
        )
        format: str | None = None
        location: Location | None = None
        schema: Schema = Schema()  # type: ignore[assignment]
        lineage: DatasetLineage = DatasetLineage()
        ownership: Ownership = Ownership()
        tags: NameSet = ()
        governance: Governance = Governance()
        documentation: Documentation = Documentation()
        properties: Properties = ModelField(default_factory=FrozenDict)
        assertions: tuple[DQAssertion, ...] = ()
        statistics: OperationalMetadata | None = None
        profile: DatasetProfile | None = None
        quality: DatasetQuality | None = None
        cost: CostRecord | None = None
        version: str | None = None
        extensions: Properties = ModelField(default_factory=FrozenDict)

        @cached_property
        def document(self) -> Json:
            """What `to_json` returns, made once and shared: nobody changes it."""
            return self.to_json()

        @classmethod
        def from_document(cls, document: Json) -> Self:
            """Build a dataset from what `document` was of an equal one, which it takes over.

            Raises:
                InvalidModelError: it is no dataset; no value of it is echoed.
            """
            dataset = cls.from_json(document)
            dataset.__dict__["document"] = document
            return dataset

        @cached_property
        def contract_hash(self) -> str:
            """The SHA-256 of the contract: equal for two states that mean the same to users."""
            return sha256_of(self.contract())

        def contract_hash_of(self, document: Json) -> str:
            """Return `contract_hash`, given what `to_json` returned for this dataset."""
            if "contract_hash" not in self.__dict__:
                self.__dict__["contract_hash"] = sha256_of(contract_of(document))
            return self.contract_hash

        def contract(self) -> Json:
            """Return what others rely on, in a form that does not depend on listing order."""
            return contract_of(self.to_json())


def contract_of(dataset: Json) -> Json:
    """Return the contract of a dataset that is given as `to_json` writes it."""
    document = {name: value for name, value in dataset.items() if name not in NOT_COMPARED}
    lineage = document.pop(DERIVED, None)
    if isinstance(lineage, dict) and (upstream := _contract_of_lineage(lineage)):
        document["upstream"] = upstream
    if not document.get("location"):
        document.pop("location", None)
    documentation = document.get("documentation")
    if isinstance(documentation, dict):
        document["documentation"] = _with_sorted(documentation, *_DOCUMENTATION_IN_ANY_ORDER)
    schema = document.get("schema")
    if isinstance(schema, dict):
        document["schema"] = _contract_of_schema(schema)
    return _with_sorted(document, *_IN_ANY_ORDER)


def _contract_of_lineage(lineage: Json) -> list[JsonValue]:
    """Return the upstream datasets that are declared or found; a better parser infers others."""
    upstream, inferred = list_at(lineage, "upstream"), list_at(lineage, "inferred")
    return [each for each in upstream if each not in inferred] if inferred else upstream


def with_parts(dataset: LumosDataset, **parts: object) -> LumosDataset:
    """Return the dataset with some parts replaced, validated and hashed anew."""
    return dataset.model_copy(update=parts)


def _contract_of_schema(schema: Json) -> Json:
    positional = bool(schema.get("positional"))
    contract = {**schema, "fields": _contract_of_fields(schema.get("fields"), positional)}
    return _with_sorted(contract, *_SCHEMA_IN_ANY_ORDER)


def _with_sorted(document: Json, *names: str) -> Json:
    """Return the object with the lists of these names sorted."""
    if not any(name in document for name in names):
        return document
    ordered: Json = {
        name: sorted(value, key=sha256_of)
        for name in names
        if isinstance(value := document.get(name), list)
    }
    return {**document, **ordered}


def _contract_of_fields(fields: JsonValue, positional: bool) -> list[JsonValue]:
    members = [
        field if _SPELT_OR_NESTED.isdisjoint(field) else contract_of_type(field)
        for field in as_objects(fields, "fields")
    ]
    if not positional:
        members.sort(key=itemgetter("name"))
    return [*members]


def contract_of_type(node: Mapping[str, JsonValue]) -> Json:
    """Return a field's or type's JSON without the source's spelling of types that are known."""
    contract = dict(node)
    if contract["type"] != "UNKNOWN":
        contract.pop("native_type", None)
    for name in ("items", "key", "value"):
        if name in contract:
            contract[name] = contract_of_type(as_object(contract[name], name))
    if "branches" in contract:
        branches = map(contract_of_type, objects_at(contract, "branches"))
        contract["branches"] = [*sorted(branches, key=sha256_of)]
    if "fields" in contract:
        contract["fields"] = _contract_of_fields(contract["fields"], positional=False)
    return contract
