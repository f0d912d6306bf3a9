"""Builds entities with the models that OpenMetadata generates from its JSON Schemas.

It runs with an interpreter that has `openmetadata-ingestion`. It writes creating requests, parents
before what lies in them, one JSON object `{"collection": ..., "body": ...}` to a line: every type
of column, of table and of file, every constraint, nested columns, labels, owners and domains.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import cycle
from typing import Any

from openmetadata_oracle import model_of, without_the_client

_SERVICE = "My Warehouse"
_STORE = "My Store"
_NEED_LENGTH = {"CHAR", "VARCHAR", "BINARY", "VARBINARY"}
_NESTED = {"STRUCT", "MAP", "UNION", "RECORD"}
Json = dict[str, Any]


def main() -> None:
    """Write all of them."""
    without_the_client()
    requests = [*_words(), *_tables(), *_containers(), *_pipelines(), *_profiles()]
    for collection, model, body in requests:
        made = model_of(model).model_validate(body)
        shown = json.loads(made.model_dump_json(exclude_none=True, exclude_unset=True))
        sys.stdout.write(json.dumps({"collection": collection, "body": shown}) + "\n")


def _enum(module: str, name: str) -> list[str]:
    return [member.value for member in model_of(f"{module}.{name}")]


def _words() -> Iterator[tuple[str, str, Json]]:
    create = "api.classification.createClassification.CreateClassificationRequest"
    yield "classifications", create, {"name": "Tier", "description": "How much it matters"}
    body = {"classification": "Tier", "name": "Tier1", "description": "Most"}
    yield "tags", "api.classification.createTag.CreateTagRequest", body
    body = {"name": "Business", "description": "Words of the business"}
    yield "glossaries", "api.data.createGlossary.CreateGlossaryRequest", body
    term = "api.data.createGlossaryTerm.CreateGlossaryTermRequest"
    body = {"glossary": "Business", "name": "Order", "description": "A **promise** to buy"}
    yield "glossaryTerms", term, {**body, "synonyms": ["purchase"]}
    yield (
        "glossaryTerms",
        term,
        {**body, "name": "Return", "parent": "Business.Order", "description": "Of an order"},
    )
    domain = "api.domains.createDomain.CreateDomainRequest"
    for kind in _enum("entity.domains.domain", "DomainType"):
        body = {"name": f"Domain {kind}", "domainType": kind, "description": f"Of type {kind}"}
        yield "domains", domain, body
    yield (
        "users",
        "api.teams.createUser.CreateUserRequest",
        {
            "name": "ada",
            "email": "ada@example.org",
            "displayName": "Ada L.",
            "description": "Counts",
        },
    )
    yield (
        "teams",
        "api.teams.createTeam.CreateTeamRequest",
        {
            "name": "Sales People",
            "teamType": "Group",
            "displayName": "Sales",
        },
    )


def _tables() -> Iterator[tuple[str, str, Json]]:
    service = "api.services.createDatabaseService.CreateDatabaseServiceRequest"
    services = {_SERVICE: "Snowflake", "dwh": "Postgres"}
    for name, kind in services.items():
        yield "services/databaseServices", service, {"name": name, "serviceType": kind}
        database = {"name": "shop.eu", "service": name}
        yield "databases", "api.data.createDatabase.CreateDatabaseRequest", database
        schema = {"name": "public", "database": f'{name}."shop.eu"'}
        yield "databaseSchemas", "api.data.createDatabaseSchema.CreateDatabaseSchemaRequest", schema
    kinds = cycle(_enum("entity.data.table", "TableType"))
    create = "api.data.createTable.CreateTableRequest"
    for number, (type_, name) in enumerate(
        (type_, name) for name in services for type_ in _enum("entity.data.table", "DataType")
    ):
        table: Json = {
            "name": f"t{number}.{type_}",
            "databaseSchema": f'{name}."shop.eu".public',
            "tableType": next(kinds),
            "columns": _columns(type_, number),
            "description": f"Number *{number}*",
            "sourceUrl": f"https://example.org/{number}",
        }
        yield "tables", create, {**table, **_more(number)}


def _columns(type_: str, number: int) -> list[Json]:
    constraint = _enum("entity.data.table", "Constraint")[number % 4]
    column: Json = {"name": "id", "dataType": "BIGINT", "constraint": constraint}
    other: Json = {"name": "it.is", "dataType": type_, "displayName": "It is"}
    if type_ in _NEED_LENGTH:
        other["dataLength"] = 1 + number
    if type_ in {"DECIMAL", "NUMERIC", "NUMBER"}:
        other |= {"precision": 12, "scale": 2}
    if type_ == "ARRAY":
        other["arrayDataType"] = "VARCHAR"
    if type_ in _NESTED:
        below = {"name": "below", "dataType": "VARCHAR", "dataLength": 9, "description": "Deep"}
        other["children"] = [below, {"name": "deeper", "dataType": "STRUCT", "children": [below]}]
    label = {"tagFQN": "Business.Order", "source": "Glossary", "labelType": "Propagated"}
    third = {"name": "state", "dataType": "STRING", "dataTypeDisplay": "Nullable(String)"}
    tagged = {**third, "tags": [{**label, "state": "Suggested"}], "description": "Of it"}
    return [column, other, tagged]


def _more(number: int) -> Json:
    tier = {"tagFQN": "Tier.Tier1", "source": "Classification", "labelType": "Manual"}
    choices: list[Json] = [
        {},
        {"tags": [{**tier, "state": "Confirmed"}], "displayName": f"The {number}"},
        {"tableConstraints": [{"constraintType": "PRIMARY_KEY", "columns": ["id"]}]},
        {"tableConstraints": [{"constraintType": "UNIQUE", "columns": ["id", "state"]}]},
        {"domains": ["Domain Aggregate"], "retentionPeriod": "P30D"},
        {"schemaDefinition": "create view x as select 1 < 2", "fileFormat": "parquet"},
        {
            "tablePartition": {
                "columns": [{"columnName": "id", "intervalType": "COLUMN-VALUE", "interval": "day"}]
            }
        },
        {"lifeCycle": {"created": {"timestamp": 1_700_000_000_000}}},
        {"dataModel": {"modelType": "DBT", "sql": "select 1", "columns": []}},
    ]
    return choices[number % len(choices)]


def _profiles() -> Iterator[tuple[str, str, Json]]:
    """Profiles with every figure, earlier ones and writes, of each third table."""
    at = 1_750_000_000_000
    create = "api.data.createTableProfile.CreateTableProfileRequest"
    tables = [(name, body) for name, _, body in _tables() if name == "tables"]
    for number, (_, body) in enumerate(tables[::3]):
        table = {"timestamp": at + number, "rowCount": 100.0, "columnCount": 3.0}
        more = {"sizeInByte": 2048.0, "profileSample": 50.0 + number % 51}
        columns = [_figures(column["name"], at + number) for column in body["columns"]]
        request = {"tableProfile": {**table, **more}, "columnProfile": columns}
        writes = [
            {"timestamp": at + place, "operation": operation, "rowsAffected": place}
            for place, operation in enumerate(_enum("entity.data.table", "DmlOperationType"))
        ]
        name = f'{body["databaseSchema"]}."{body["name"]}"'
        yield name, create, {"tableProfile": {"timestamp": at - 1, "rowCount": 99.0}}
        yield name, create, {**request, "systemProfile": writes}


def _figures(name: str, at: int) -> Json:
    model = model_of("entity.data.table.ColumnProfile")
    numbers = {
        field: 1.5 + number
        for number, (field, info) in enumerate(model.model_fields.items())
        if "float" in str(info.annotation) and field not in {"min", "max", "timestamp"}
    }
    counts = {"valuesCount": 90.0, "nullCount": 10.0, "nullProportion": 0.1, "distinctCount": 9.0}
    ends = {"min": 1.0, "max": 9.0} if name == "id" else {"min": "secret", "max": "secret"}
    spread = {"boundaries": ["0 to 5", "5 and up"], "frequencies": [45, 45]}
    more = {"histogram": spread} if name == "id" else {}
    return {"name": name, "timestamp": at, **numbers, **counts, **ends, **more}


def _containers() -> Iterator[tuple[str, str, Json]]:
    service = "api.services.createStorageService.CreateStorageServiceRequest"
    create = "api.data.createContainer.CreateContainerRequest"
    for name, kind in {_STORE: "S3", "s3": "S3"}.items():
        yield "services/storageServices", service, {"name": name, "serviceType": kind}
        yield "containers", create, {"name": "lake", "service": name, "description": "All of it"}
        for number, format_ in enumerate(_enum("entity.data.container", "FileFormat")):
            yield (
                "containers",
                create,
                {
                    "name": f"raw.{format_}",
                    "service": name,
                    "displayName": f"Raw {number}",
                    "prefix": f"/raw/{format_}",
                    "fileFormats": [format_] if number % 2 else [format_, "gz"],
                    "numberOfObjects": 12.0,
                    "size": 1_000.0,
                    "dataModel": {
                        "isPartitioned": bool(number % 3),
                        "columns": _columns("INT", number),
                    },
                },
            )


def _pipelines() -> Iterator[tuple[str, str, Json]]:
    service = "api.services.createPipelineService.CreatePipelineServiceRequest"
    create = "api.data.createPipeline.CreatePipelineRequest"
    for name in ("Our Airflow", "airflow"):
        yield "services/pipelineServices", service, {"name": name, "serviceType": "Airflow"}
        tasks = [{"name": "read"}, {"name": "write", "taskType": "Python"}]
        body = {"name": "nightly.run", "service": name, "tasks": tasks, "description": "Each night"}
        yield "pipelines", create, {**body, "scheduleInterval": "0 1 * * *"}


if __name__ == "__main__":
    main()
