"""Builds the canonical dataset of a Delta, Iceberg or Hudi table from the facts of its log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue

from lumos.core.models import (
    DatasetKind,
    Documentation,
    Location,
    LumosDataset,
    OperationalMetadata,
    Schema,
    Urn,
)

if TYPE_CHECKING:
    from lumos.core.formats.tables import PartitionField, TableFacts
    from lumos.feature.discovery.assembling import PathParts
    from lumos.feature.discovery.datasets import SourceRoot

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_IDENTITY: Final = "identity"


def table_parts(table_root: str) -> PathParts:
    """Return the parts that name the table in this folder; none for the source's root itself."""
    return tuple(part for part in table_root.split("/") if part)


def table_dataset(
    root: SourceRoot, table: PathParts, *, facts: TableFacts, environment: str | None = None
) -> LumosDataset:
    """Build the dataset of a table.

    The state that changes with every commit, such as the version or the snapshot, is an
    observation and stands in `extensions`; what users rely on is the contract.

    Args:
        root: where the source begins.
        table: the table's folder below it, as `table_parts` gives it.
        facts: from the table's log.
        environment: such as `prod`.
    """
    parts = (*root.parts, *table)
    return LumosDataset(
        urn=Urn.of_path(root.platform, *parts),
        name=_printable(parts[-1]),
        platform=root.platform,
        kind=DatasetKind.VIEW if facts.observations.get("view") else DatasetKind.TABLE,
        environment=environment,
        format=facts.format,
        location=Location(
            bucket=root.bucket,
            prefix=_printable(root.prefix + "".join(f"/{part}" for part in table) + "/"),
            partitioning="/".join(map(_template, facts.partitioning)) or None,
            partition_keys=tuple(
                dict.fromkeys(part.name for part in facts.partitioning if part.name)
            ),
        ),
        schema=_with_keys(facts.schema, facts.keys),
        documentation=Documentation(description=facts.description),
        properties=facts.properties,
        statistics=_statistics(facts),
        extensions={"table": _state(facts)},
    )


def _template(part: PartitionField) -> str:
    """Return `day={day}`, or what the values are computed by: `id_bucket={bucket[16](id)}`."""
    computed = part.transform != _IDENTITY
    value = f"{part.transform}({part.source})" if computed else part.source
    return f"{part.name}={{{value}}}"


def _with_keys(schema: Schema, keys: PathParts) -> Schema:
    if not keys:
        return schema
    return Schema(
        fields=schema.fields,
        primary_key=keys,
        unique_keys=schema.unique_keys,
        foreign_keys=schema.foreign_keys,
        positional=schema.positional,
    )


def _statistics(facts: TableFacts) -> OperationalMetadata:
    return OperationalMetadata(
        file_count=facts.files,
        total_size_bytes=facts.size_bytes,
        row_count=facts.rows if facts.rows_exact else None,
        row_count_estimate=facts.rows,
        last_modified=_moment(facts.last_modified_us),
    )


def _moment(micros: int | None) -> datetime | None:
    if micros is None:
        return None
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None


def _state(facts: TableFacts) -> dict[str, JsonValue]:
    told: dict[str, JsonValue] = {"version": facts.version, "name": facts.name}
    return {
        **facts.observations,
        **{name: value for name, value in told.items() if value is not None},
    }


def _printable(name: str) -> str:
    r"""Return a name as text that JSON can carry; undecodable bytes are written as `\xe9`."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
