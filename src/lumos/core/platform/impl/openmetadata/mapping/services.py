"""Which type of service OpenMetadata has for what a dataset or a job lies in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

_SERVICES: Final[Mapping[str, Mapping[str, str]]] = {
    "databaseService": {
        "snowflake": "Snowflake", "postgres": "Postgres", "postgresql": "Postgres",
        "mysql": "Mysql", "bigquery": "BigQuery", "redshift": "Redshift", "hive": "Hive",
        "trino": "Trino", "presto": "Presto", "databricks": "Databricks", "mssql": "Mssql",
        "oracle": "Oracle", "clickhouse": "Clickhouse", "athena": "Athena", "glue": "Glue",
        "iceberg": "Iceberg", "delta": "DeltaLake", "mongodb": "MongoDB", "sqlite": "SQLite",
        "cassandra": "Cassandra", "dynamodb": "DynamoDB",
    },
    "storageService": {"s3": "S3", "gcs": "GCS", "gs": "GCS", "azure": "ADLS", "adls": "ADLS"},
    "pipelineService": {
        "airflow": "Airflow", "dagster": "Dagster", "fivetran": "Fivetran", "nifi": "Nifi",
        "airbyte": "Airbyte", "spark": "Spark", "flink": "Flink",
    },
}  # fmt: skip
_OTHER_SERVICE: Final = {
    "databaseService": "CustomDatabase",
    "storageService": "CustomStorage",
    "pipelineService": "CustomPipeline",
}


def service_type(type_: str, hints: Iterable[str]) -> str:
    """Return the type of a service.

    Args:
        type_: the type of its entity, such as `databaseService`.
        hints: the best first: platforms, or types of services themselves.
    """
    known = _SERVICES[type_]
    types = {*known.values()}
    told = (hint if hint in types else known.get(hint) for hint in hints)
    return next(filter(None, told), _OTHER_SERVICE[type_])
