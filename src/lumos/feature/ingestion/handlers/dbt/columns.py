"""The columns and keys of a relation, from the manifest and the catalog."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lumos.core.json_reading import as_object, flag_at, list_at, object_at, text_at
from lumos.feature.ingestion.handlers.dbt.meta import flattened, meta_of
from lumos.feature.ingestion.handlers.dbt.shapes import one_or_more_texts_at
from lumos.feature.ingestion.handlers.dbt.types import dbt_type

if TYPE_CHECKING:
    from lumos.core.json_reading import Json
    from lumos.core.models import Urn

_REFERENCE: Final = re.compile(r"(?P<table>[^()]+?)\s*\((?P<columns>[^()]+)\)\s*\Z")


@dataclass
class _Column:
    """What both files say of one column."""

    name: str
    declared: Json = field(default_factory=dict)
    found: Json = field(default_factory=dict)


@dataclass
class _Keys:
    """The keys and checks of a contract, as they are put together."""

    primary_key: list[str] = field(default_factory=list)
    unique_keys: list[list[str]] = field(default_factory=list)
    foreign_keys: list[Json] = field(default_factory=list)
    checks: list[Json] = field(default_factory=list)
    not_null: set[str] = field(default_factory=set)


class SchemaReader:
    """Builds the schemas of one project's relations."""

    def __init__(self, platform: str, relations: Mapping[str, Urn]) -> None:
        self._platform = platform
        self._relations = relations

    def schema_of(self, node: Json, table: Json) -> Json:
        """Return the JSON of a schema.

        Args:
            node: of the manifest; it lists the columns that are documented.
            table: of the catalog, or empty; it lists all columns, in their order.

        Raises:
            UnexpectedJsonError: a part does not have the shape that dbt gives it.
        """
        columns = _columns(node, table)
        keys = self._keys(node, columns) if is_enforced(node) else _Keys()
        schema: Json = {
            "fields": [self._field(column, keys.not_null) for column in columns.values()],
            "primary_key": [*keys.primary_key],
            "unique_keys": [[*names] for names in keys.unique_keys],
            "foreign_keys": [*keys.foreign_keys],
            "checks": [*keys.checks],
        }
        return {name: value for name, value in schema.items() if value}

    def _field(self, column: _Column, not_null: set[str]) -> Json:
        native = text_at(column.declared, "data_type") or text_at(column.found, "type")
        kind = dbt_type(native, platform=self._platform) if native else {"type": "UNKNOWN"}
        return {
            "name": column.name,
            **kind,
            "nullable": column.name not in not_null,
            "description": text_at(column.declared, "description")
            or text_at(column.found, "comment"),
            "tags": [*tags_of(column.declared)],
            "properties": flattened(meta_of(column.declared)),
        }

    def _keys(self, node: Json, columns: _Columns) -> _Keys:
        keys = _Keys()
        for column in columns.values():
            for constraint in list_at(column.declared, "constraints"):
                parts = as_object(constraint, "constraints")
                self._add(keys, parts, names=[column.name], is_of_column=True)
        for constraint in list_at(node, "constraints"):
            parts = as_object(constraint, "constraints")
            names = [columns.spelled(name) for name in one_or_more_texts_at(parts, "columns")]
            self._add(keys, parts, names=names, is_of_column=False)
        return keys

    def _add(self, keys: _Keys, constraint: Json, *, names: list[str], is_of_column: bool) -> None:
        match text_at(constraint, "type"):
            case "not_null":
                keys.not_null.update(names)
            case "primary_key":
                keys.primary_key += [name for name in names if name not in keys.primary_key]
                keys.not_null.update(names)
            case "unique" if names and names not in keys.unique_keys:
                keys.unique_keys.append(names)
            case "foreign_key" if names:
                if target := self._target(constraint):
                    keys.foreign_keys.append({"columns": [*names], **target})
            case "check":
                if expression := text_at(constraint, "expression"):
                    check: Json = {"expression": expression, "name": text_at(constraint, "name")}
                    if is_of_column or len(names) == 1:
                        check["column"] = names[0]
                    keys.checks.append(check)
            case _:
                pass

    def _target(self, constraint: Json) -> Json | None:
        """Return what a foreign key refers to: `to` of dbt 1.9, or the text after REFERENCES."""
        to, columns = text_at(constraint, "to"), one_or_more_texts_at(constraint, "to_columns")
        if to is None:
            text = (text_at(constraint, "expression") or "").strip()
            match = _REFERENCE.match(text)
            to = match["table"] if match else text
            columns = (
                [name.strip().strip('"`') for name in match["columns"].split(",")] if match else []
            )
        if not to:
            return None
        urn = self._relations.get(unquoted(to))
        return {
            "references": str(urn) if urn else unquoted(to),
            "referenced_columns": [name for name in columns if name],
        }


def is_enforced(node: Json) -> bool:
    """Return whether the contract of a model is enforced, so that its constraints hold."""
    contracts = (object_at(node, "contract"), object_at(object_at(node, "config"), "contract"))
    return any(flag_at(contract, "enforced", default=False) for contract in contracts)


def tags_of(node: Json) -> list[str]:
    """Return the tags of a node or column: those of its `config` and its own."""
    places = (object_at(node, "config"), node)
    return sorted({tag for place in places for tag in one_or_more_texts_at(place, "tags")})


def unquoted(relation: str) -> str:
    """Return a relation's name without its quotes."""
    return relation.replace('"', "").replace("`", "")


def missing_columns(node: Json, table: Json) -> list[str]:
    """Return the documented columns that the table in the catalog does not have."""
    found = {name.casefold() for name in object_at(table, "columns")}
    return [name for name in object_at(node, "columns") if name.casefold() not in found]


class _Columns(dict[str, _Column]):
    """Columns by name, looked up in any case where only one fits, as most databases do."""

    def __init__(self) -> None:
        super().__init__()
        self._alike: dict[str, list[str]] = {}

    def named(self, name: str) -> _Column:
        """Return a column, a new one if there is none of that name in any case."""
        spelled = self.spelled(name)
        if spelled not in self:
            self[spelled] = _Column(spelled)
            self._alike.setdefault(spelled.casefold(), []).append(spelled)
        return self[spelled]

    def add_found(self, name: str, parts: Json) -> None:
        self[name] = _Column(name, found=parts)
        self._alike.setdefault(name.casefold(), []).append(name)

    def spelled(self, name: str) -> str:
        """Return the name of a column as it is spelled here."""
        bare = name.strip('"`')
        alike = self._alike.get(bare.casefold(), ())
        return alike[0] if len(alike) == 1 else bare


def _columns(node: Json, table: Json) -> _Columns:
    """Return the columns, those of the catalog first."""
    columns = _Columns()
    found = [(as_object(value, name), name) for name, value in object_at(table, "columns").items()]
    for parts, name in sorted(found, key=_position):
        columns.add_found(name, parts)
    for key, value in object_at(node, "columns").items():
        parts = as_object(value, key)
        columns.named(text_at(parts, "name") or key).declared = parts
    return columns


def _position(column: tuple[Json, str]) -> tuple[float, str]:
    index = column[0].get("index")
    return (float("inf") if not isinstance(index, int | float) else index), column[1]
