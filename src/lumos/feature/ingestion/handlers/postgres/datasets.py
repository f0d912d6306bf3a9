"""Rows of the system catalog as records: a dataset for each table or view, edges for a view."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from lumos.core.errors import LumosError, UnreadableItemError
from lumos.core.models import EdgeBasis, LineageEdge, LineageType, LumosDataset, Urn
from lumos.feature.ingestion.handlers.postgres.settings import PostgresSettings, is_system_schema
from lumos.feature.ingestion.records import ScanRecord, UnreadableItem

if TYPE_CHECKING:
    from lumos.feature.ingestion.handlers.postgres.types import ColumnParts, TypeCatalog

Row: TypeAlias = Mapping[str, Any]

PLATFORM: Final = "postgres"
DEFINITION: Final = "postgres.view_definition"
"""The property of a view with its SQL, as the server prints it."""
_VIEWS: Final = ("v", "m")
_KINDS: Final = {"m": "materialized view", "f": "foreign table", "p": "partitioned table"}
_IDENTITIES: Final = {"a": "always", "d": "by default"}


class RecordBuilder:
    """Builds the records of one database."""

    def __init__(self, settings: PostgresSettings, types: TypeCatalog) -> None:
        self._settings = settings
        self._types = types
        self._database = settings.server.database

    def records(self, row: Row) -> Iterator[ScanRecord]:
        """Yield the dataset of a row and the edges to it, or that it cannot be read."""
        urn = self._urn(row["schema"], row["name"])
        try:
            if row.get("is_locked"):
                raise _locked()
            if row.get("is_broken"):
                raise _broken()
            dataset = self._dataset(row, urn)
            edges = tuple(self._edges(row, urn))
        except LumosError as error:
            yield UnreadableItem(self._label(row), error, urn=urn)
            return
        except (LookupError, TypeError, ValueError):
            yield UnreadableItem(self._label(row), _broken(), urn=urn)
            return
        yield dataset
        yield from edges

    def _label(self, row: Row) -> str:
        return f"{self._database}.{row['schema']}.{row['name']}"

    def _urn(self, schema: str, name: str) -> Urn:
        return Urn.of_path(PLATFORM, *database_parts(self._settings), schema, name)

    def _dataset(self, row: Row, urn: Urn) -> LumosDataset:
        columns: list[Row] = row["columns"] or []
        names = {column["number"]: column["name"] for column in columns}
        fields, checks = self._fields(columns)
        document: ColumnParts = {
            "urn": str(urn),
            "name": row["name"],
            "platform": PLATFORM,
            "kind": "VIEW" if row["kind"] in _VIEWS else "TABLE",
            "database": self._database,
            "namespace": row["schema"],
            "schema": {
                "fields": fields,
                **_keys(row, names),
                "foreign_keys": [
                    {
                        "columns": [names[number] for number in key["columns"]],
                        "references": str(self._urn(key["schema"], key["table"])),
                        "referenced_columns": key["referenced"] or [],
                    }
                    for key in row.get("foreign_keys") or ()
                ],
                "checks": [_check(check, names) for check in row.get("checks") or ()] + checks,
            },
            "properties": _properties(row),
        }
        if row["comment"]:
            document["documentation"] = {"description": row["comment"]}
        if statistics := _statistics(row, names):
            document["statistics"] = statistics
        if partitions := row.get("partitions"):
            document["location"] = {
                "partitioning": partitions["key"],
                "partition_keys": _columns_of(partitions["columns"], names),
            }
        return LumosDataset.from_json(document)

    def _fields(self, columns: list[Row]) -> tuple[list[ColumnParts], list[ColumnParts]]:
        """Return the columns, and the checks that their domains bring."""
        fields, checks = [], []
        for column in columns:
            found = self._types.resolve(column["type"], column["modifier"], column["native"])
            field = {
                **found.parts,
                "name": column["name"],
                "nullable": not (column["not_null"] or found.not_null),
                "description": column["comment"],
                "properties": _column_properties(column),
            }
            if not column["generated"]:
                field["default"] = column["expression"]
            fields.append(field)
            checks += [
                {
                    "name": f"{column['name']}.{name}",
                    "column": column["name"],
                    "expression": expression,
                }
                for name, expression in found.checks
            ]
        return fields, checks

    def _edges(self, row: Row, urn: Urn) -> Iterator[LineageEdge]:
        for schema, name in row.get("upstream") or ():
            if not is_system_schema(schema):
                yield LineageEdge.from_json(
                    {
                        "upstream_urn": str(self._urn(schema, name)),
                        "downstream_urn": str(urn),
                        "lineage_type": LineageType.VIEW,
                        "basis": EdgeBasis.FOUND,
                        "provenance": PLATFORM,
                    }
                )


def database_parts(settings: PostgresSettings) -> tuple[str, ...]:
    """Return the first parts of the path of every URN: instance, if any, and database."""
    instance = (settings.instance,) if settings.instance else ()
    return (*instance, settings.server.database)


def _locked() -> UnreadableItemError:
    return UnreadableItemError(
        "another session has locked it, or a table that it reads",
        hint="run again when that session has finished",
        retryable=True,
    )


def _broken() -> UnreadableItemError:
    return UnreadableItemError(
        "the server fails to describe it: its system catalog is damaged",
        hint="psql shows what the server says: \\d+ NAME",
    )


def _keys(row: Row, names: Mapping[int, str]) -> ColumnParts:
    primary: list[str] = []
    unique: list[list[str]] = []
    for key in row.get("keys") or ():
        columns = _columns_of(key["columns"], names)[: key["width"]]
        if key["is_primary"]:
            primary = columns
        elif columns not in unique:
            unique.append(columns)
    return {"primary_key": primary, "unique_keys": unique}


def _columns_of(numbers: str, names: Mapping[int, str]) -> list[str]:
    """Return the columns of an `int2vector`; 0 stands for an expression."""
    return [names[int(number)] for number in numbers.split() if int(number) in names]


def _check(check: Row, names: Mapping[int, str]) -> ColumnParts:
    columns = check["columns"] or []
    column = names.get(columns[0]) if len(columns) == 1 else None
    return {"name": check["name"], "column": column, "expression": check["expression"]}


def _properties(row: Row) -> ColumnParts:
    given = {"postgres.owner": row["owner"], "postgres.kind": _KINDS.get(row["kind"])}
    if row["persistence"] == "u":
        given["postgres.persistence"] = "unlogged"
    if server := row.get("server"):
        given["postgres.foreign_server"], given["postgres.foreign_data_wrapper"] = server
    if definition := row.get("definition"):
        given[DEFINITION] = definition.strip()
    return {name: value for name, value in given.items() if value}


def _column_properties(column: Row) -> ColumnParts:
    given = {
        "postgres.identity": _IDENTITIES.get(column["identity"]),
        "postgres.generated": column["expression"] if column["generated"] else None,
    }
    return {name: value for name, value in given.items() if value}


def _statistics(row: Row, names: Mapping[int, str]) -> ColumnParts:
    partitions: Row = row.get("partitions") or {}
    measured = partitions or row
    given = {
        "row_count_estimate": measured.get("rows"),
        "total_size_bytes": measured.get("bytes"),
        "partition_count": partitions.get("count"),
        "newest_partition": _newest(partitions, names),
    }
    return {name: value for name, value in given.items() if value is not None}


def _newest(partitions: Row, names: Mapping[int, str]) -> str | None:
    """Return the latest range of a table that is partitioned by one column of dates."""
    if not partitions.get("newest"):
        return None
    columns = _columns_of(partitions["columns"], names)
    return f"{columns[0]}={partitions['newest']}" if len(columns) == 1 else None
