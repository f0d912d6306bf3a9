"""Entities as others write them to Atlas, in the shapes of its own models, of many kinds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from doubles.atlas_store import business_metadata

Json = dict[str, JsonValue]
CLASSIFICATIONS: Json = {
    "classificationDefs": [
        {"name": "PII", "attributeDefs": [{"name": "level", "typeName": "string"}]},
        {"name": "Gold", "attributeDefs": []},
    ],
    **business_metadata("Audit", attribute="by", kind="string", applies_to="hive_table"),
}


def entity(kind: str, guid: str, name: str, **more: JsonValue) -> Json:
    """Return an entity; what is no attribute of it is given with a leading underscore."""
    short = name.partition("@")[0].rpartition(".")[2]
    attributes: Json = {"qualifiedName": name, "name": short}
    attributes |= {key: value for key, value in more.items() if not key.startswith("_")}
    rest = {key[1:]: value for key, value in more.items() if key.startswith("_")}
    return {"typeName": kind, "guid": guid, "attributes": attributes, **rest}


def ref(guid: str, kind: str) -> Json:
    return {"guid": guid, "typeName": kind}


def hive() -> Iterator[Json]:
    """Yield a table with partitions and storage, a view of it, and the query between them."""
    types = {"id": "bigint", "total": "decimal(10,2)", "items": "array<struct<sku:string>>"}
    for number, (name, kind) in enumerate([*types.items(), ("odd", "interval day")]):
        yield entity(
            "hive_column", f"-1{number}", f"sales.orders.{name}@prod",
            type=kind, position=number, comment="what it cost" if name == "total" else None,
            _classifications=[{"typeName": "PII", "attributes": {"level": "high"}}]
            if name == "id" else [],
            _customAttributes={"origin": "hook"} if name == "id" else {},
            _relationshipAttributes={"table": ref("-1", "hive_table")},
        )  # fmt: skip
    yield entity(
        "hive_column", "-19", "sales.orders.day@prod", type="date", position=0,
        _relationshipAttributes={"table": ref("-1", "hive_table")},
    )  # fmt: skip
    yield entity(
        "hive_storagedesc", "-18", "sales.orders@prod_storage",
        location="hdfs://prod/warehouse/orders", inputFormat="orc", compressed=False,
    )  # fmt: skip
    yield entity(
        "hive_table", "-1", "sales.orders@prod", owner="etl", comment="All orders",
        description="Orders since 2010", tableType="MANAGED_TABLE", createTime=1_700_000_000_000,
        retention=0, parameters={"transient_lastDdlTime": "1700000000"}, aliases=["o"],
        _labels=["checked", "a"], _customAttributes={"team": "sales"},
        _businessAttributes={"Audit": {"by": "grace"}},
        _classifications=[{"typeName": "Gold", "propagate": True, "validityPeriods": []}],
        _relationshipAttributes={
            "columns": [ref(f"-1{number}", "hive_column") for number in (3, 2, 1, 0)],
            "partitionKeys": [ref("-19", "hive_column")],
            "sd": ref("-18", "hive_storagedesc"),
        },
    )  # fmt: skip
    yield entity(
        "hive_column", "-20", "sales.totals.total@prod", type="decimal(20,2)", position=0,
        _relationshipAttributes={"table": ref("-2", "hive_table")},
    )  # fmt: skip
    yield entity(
        "hive_table", "-2", "sales.totals@prod", tableType="VIRTUAL_VIEW",
        _relationshipAttributes={"columns": [ref("-20", "hive_column")]},
    )  # fmt: skip
    yield entity(
        "hive_process", "-3", "sales.totals@prod:1", queryText="insert ...", userName="etl",
        inputs=[ref("-1", "hive_table")], outputs=[ref("-2", "hive_table")],
    )  # fmt: skip
    yield entity(
        "hive_column_lineage", "-4", "sales.totals@prod:1:total", expression="sum(total)",
        inputs=[ref("-11", "hive_column")], outputs=[ref("-20", "hive_column")],
        depenendencyType="EXPRESSION",
        _relationshipAttributes={"query": ref("-3", "hive_process")},
    )  # fmt: skip


def rdbms() -> Iterator[Json]:
    """Yield a table with keys and an index, and the one that its foreign key points to."""
    yield entity("rdbms_table", "-30", "crm.customers@db", type="TABLE", comment="People",
                 _relationshipAttributes={"columns": [ref("-31", "rdbms_column")]})  # fmt: skip
    yield entity(
        "rdbms_column", "-31", "crm.customers.id@db", data_type="int4", isNullable=False,
        isPrimaryKey=True, _relationshipAttributes={"table": ref("-30", "rdbms_table")},
    )  # fmt: skip
    columns: Mapping[str, Mapping[str, JsonValue]] = {
        "id": {"data_type": "int8", "isNullable": False, "isPrimaryKey": True},
        "customer": {"data_type": "int4", "comment": "who bought"},
        "note": {"data_type": "varchar", "length": 80, "default_value": "none"},
    }
    for number, (name, values) in enumerate(columns.items()):
        yield entity("rdbms_column", f"-4{number}", f"crm.orders.{name}@db", **values)
    yield entity("rdbms_index", "-48", "crm.orders.pk@db", index_type="btree", isUnique=True)
    yield entity(
        "rdbms_foreign_key", "-47", "crm.orders.fk@db",
        _relationshipAttributes={
            "key_columns": [ref("-41", "rdbms_column")],
            "references_table": ref("-30", "rdbms_table"),
            "references_columns": [ref("-31", "rdbms_column")],
        },
    )  # fmt: skip
    yield entity(
        "rdbms_table", "-49", "crm.orders@db", type="VIEW", contact_info="crm team",
        _relationshipAttributes={
            "columns": [ref(f"-4{number}", "rdbms_column") for number in range(3)],
            "indexes": [ref("-48", "rdbms_index")],
            "foreign_keys": [ref("-47", "rdbms_foreign_key")],
        },
    )  # fmt: skip


def others() -> Iterator[Json]:
    """Yield tables, topics and files of other kinds."""
    yield entity("spark_column", "-51", "lake.events.at@c", type="timestamp", nullable=False,
                 metadata="{}", comment="when")  # fmt: skip
    yield entity(
        "spark_table", "-50", "lake.events@c", provider="parquet", tableType="EXTERNAL",
        partitionColumnNames=["day"],
        _relationshipAttributes={"columns": [ref("-51", "spark_column")]},
    )  # fmt: skip
    yield entity("kafka_topic", "-52", "clicks@kafka", topic="clicks", uri="clicks",
                 partitionCount=12, replicationFactor=3, description="Clicks")  # fmt: skip
    yield entity(
        "aws_s3_v2_object", "-53", "s3a://lake/raw/x.parquet@c", bucketName="lake", size=1_024,
        lastModifiedTime=1_700_000_000_000, storageClass="STANDARD",
        awsTags=[{"key": "cost", "value": "42"}],
    )  # fmt: skip
    yield entity("aws_s3_v2_directory", "-54", "s3a://lake/raw/@c", objectPrefix="/raw/")
    yield entity("adls_gen2_blob", "-55", "abfs://c@acct/raw/y.csv@c", contentLength=99,
                 accessTier="Hot", url="https://acct.example.org/c/raw/y.csv")  # fmt: skip
    yield entity("hdfs_path", "-56", "hdfs://nn/data@c", path="/data", isFile=False, fileSize=0)
    yield entity("hbase_table", "-57", "default:users@c", uri="default:users", maxfilesize=5)


def payloads() -> list[Json]:
    """Return all of them in one request."""
    return [*hive(), *rdbms(), *others()]
