"""Writes the tables of this folder with the engines that own the formats.

Each table is its log or metadata alone, as the engine left it, and `expected.json`: what the
engine itself says of it. See README.md for how to run this; the tests only read the result.
"""

# ruff: noqa: S608 - every statement is made of constants
from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

NESTED = "STRUCT<city: STRING COMMENT 'where', zip: STRUCT<code: INT NOT NULL, plus4: STRING>>"


class Writer:
    def __init__(self, spark: SparkSession, work: Path, target: Path) -> None:
        self.spark, self.work, self.target = spark, work, target

    def sql(self, *statements: str) -> None:
        for statement in statements:
            self.spark.sql(statement)

    def keep(self, name: str, table: DataFrame, root: Path, *, log: str, **facts: Any) -> None:
        """Copy the log of a table and note what its engine says of it."""
        folder = self.target / name
        shutil.rmtree(folder, ignore_errors=True)
        no_checksums = shutil.ignore_patterns("*.crc", ".*.crc", ".aux", "metadata")
        shutil.copytree(root / log, folder / log, ignore=no_checksums if log == ".hoodie" else _crc)
        expected = {"schema": table.schema.jsonValue(), "rows": table.count(), **facts}
        (folder / "expected.json").write_text(
            json.dumps(expected, indent=1, sort_keys=True, default=str) + "\n", "utf-8"
        )


_crc = shutil.ignore_patterns("*.crc", ".*.crc")


def delta(writer: Writer) -> None:
    spark, work = writer.spark, writer.work

    def detail(name: str) -> dict[str, Any]:
        row = spark.sql(f"DESCRIBE DETAIL {name}").first()
        assert row is not None
        return {
            "files": row["numFiles"],
            "size_bytes": row["sizeInBytes"],
            "partitions": list(row["partitionColumns"]),
            "properties": dict(row["properties"]),
            "clustering": list(row["clusteringColumns"]) if "clusteringColumns" in row else [],
        }

    def keep(name: str, **more: Any) -> None:
        version = spark.sql(f"DESCRIBE HISTORY {name} LIMIT 1").first()
        assert version is not None
        facts = {**detail(name), "version": version["version"], **more}
        writer.keep(f"delta-{name}", spark.table(name), work / name, log="_delta_log", **facts)

    def create(name: str, columns: str, rest: str = "") -> None:
        writer.sql(f"CREATE TABLE {name} ({columns}) USING delta {rest} LOCATION '{work / name}'")

    create(
        "evolved",
        "id BIGINT NOT NULL COMMENT 'the number', amount DECIMAL(12,2), note STRING, code"
        " VARCHAR(8), at TIMESTAMP, local TIMESTAMP_NTZ, day DATE COMMENT 'of the order',"
        f" tags ARRAY<STRING>, prices MAP<STRING, DECIMAL(9,3)>, address {NESTED}",
        "PARTITIONED BY (day) COMMENT 'every order' TBLPROPERTIES ("
        "'delta.columnMapping.mode'='name', 'delta.enableDeletionVectors'='true',"
        " 'delta.feature.allowColumnDefaults'='supported', 'team'='shop',"
        " 'upstream.password'='hunter2-hunter2')",
    )
    for number in range(9):
        writer.sql(
            "INSERT INTO evolved (id, amount, note, code, at, local, day, tags, prices, address)"
            f" SELECT id, 1.5, 'x', 'c', timestamp'2024-01-01', timestamp_ntz'2024-01-01 00:00:00',"
            f" date_add(date'2024-01-01', {number % 3}), array('a'), map('k', 1.5),"
            " named_struct('city', 'B', 'zip', named_struct('code', 1, 'plus4', 'p'))"
            f" FROM range({number * 100}, {number * 100 + 100}, 1, 1)"
        )
    writer.sql(
        "DELETE FROM evolved WHERE id % 10 = 3 AND id < 500",
        "ALTER TABLE evolved RENAME COLUMN note TO remark",
        "ALTER TABLE evolved ADD COLUMNS (extra INT COMMENT 'added later')",
        "ALTER TABLE evolved ALTER COLUMN extra SET DEFAULT 7",
        "ALTER TABLE evolved DROP COLUMN code",
        "ALTER TABLE evolved ADD CONSTRAINT positive CHECK (id >= 0)",
        "DELETE FROM evolved WHERE id % 10 = 4 AND id < 300",
        "UPDATE evolved SET remark = 'y' WHERE id = 5",
    )
    keep("evolved")
    create(
        "second_checkpoint",
        "id BIGINT, name STRING",
        "TBLPROPERTIES ('delta.checkpointPolicy'='v2', 'delta.checkpointInterval'='5')",
    )
    for number in range(7):
        writer.sql(f"INSERT INTO second_checkpoint SELECT id, 'n' FROM range({number + 1})")
    writer.sql("DELETE FROM second_checkpoint WHERE id = 3")
    keep("second_checkpoint")
    spark.conf.set("spark.databricks.delta.checkpoint.partSize", "4")
    create("many_parts", "id BIGINT, v VARIANT", "CLUSTER BY (id)")
    for number in range(11):
        writer.sql(f"INSERT INTO many_parts SELECT id, parse_json('1') FROM range({number + 1})")
    keep("many_parts")


def iceberg(writer: Writer) -> None:
    spark, work = writer.spark, writer.work

    def keep(name: str, **more: Any) -> None:
        root = work / "ice" / "db" / name
        snapshot = spark.sql(
            f"SELECT snapshot_id FROM ice.db.{name}.snapshots ORDER BY committed_at DESC LIMIT 1"
        ).first()
        files = spark.sql(
            f"SELECT count(*) AS files, sum(record_count) AS records FROM ice.db.{name}.data_files"
        ).first()
        assert snapshot is not None
        assert files is not None
        writer.keep(
            f"iceberg-{name}",
            spark.table(f"ice.db.{name}"),
            root,
            log="metadata",
            version=str(snapshot["snapshot_id"]),
            files=files["files"],
            **more,
        )
        for path in (writer.target / f"iceberg-{name}" / "metadata").glob("*.avro"):
            path.unlink()

    writer.sql(
        "CREATE TABLE ice.db.evolved (id BIGINT NOT NULL COMMENT 'the number', note STRING,"
        f" amount DECIMAL(12,2), at TIMESTAMP, local TIMESTAMP_NTZ, day DATE, address {NESTED},"
        " tags ARRAY<STRING>, prices MAP<STRING, DECIMAL(9,3)>, raw BINARY, gone INT) USING iceberg"
        " PARTITIONED BY (days(at), bucket(16, id), truncate(4, note), address.city) COMMENT"
        " 'every order' TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read',"
        " 'upstream.password'='hunter2-hunter2')"
    )
    row = (
        "id, 'x', 1.5, timestamp'2024-01-01', timestamp_ntz'2024-01-01 00:00:00', date'2024-01-01',"
        " named_struct('city', 'B', 'zip', named_struct('code', 1, 'plus4', 'p')), array('a'),"
        " map('k', 1.5), X'00', 1"
    )
    writer.sql(
        f"INSERT INTO ice.db.evolved SELECT {row} FROM range(100)",
        "ALTER TABLE ice.db.evolved RENAME COLUMN note TO remark",
        "ALTER TABLE ice.db.evolved DROP COLUMN gone",
        "ALTER TABLE ice.db.evolved ADD COLUMN extra INT COMMENT 'added later' AFTER id",
        "ALTER TABLE ice.db.evolved ALTER COLUMN extra TYPE BIGINT",
        "ALTER TABLE ice.db.evolved SET IDENTIFIER FIELDS id",
        "ALTER TABLE ice.db.evolved WRITE ORDERED BY at DESC, id",
        "ALTER TABLE ice.db.evolved CREATE BRANCH audit",
        "ALTER TABLE ice.db.evolved CREATE TAG first",
        "CALL ice.system.compute_table_stats(table => 'db.evolved')",
    )
    keep("evolved")
    writer.sql(
        "CREATE TABLE ice.db.deletes (id BIGINT, v STRING) USING iceberg TBLPROPERTIES"
        " ('format-version'='2', 'write.delete.mode'='merge-on-read',"
        " 'write.metadata.compression-codec'='gzip')",
        "INSERT INTO ice.db.deletes SELECT id, 'v' FROM range(0, 100, 1, 1)",
        "DELETE FROM ice.db.deletes WHERE id % 10 = 3",
    )
    keep("deletes")
    writer.sql(
        "CREATE TABLE ice.db.third (id BIGINT, v STRING) USING iceberg TBLPROPERTIES"
        " ('format-version'='3', 'write.delete.mode'='merge-on-read')",
        "INSERT INTO ice.db.third SELECT id, 'v' FROM range(0, 50, 1, 1)",
        "DELETE FROM ice.db.third WHERE id < 5",
        "ALTER TABLE ice.db.third ADD COLUMN anything VARIANT",
    )
    keep("third")
    writer.sql(
        "CREATE TABLE ice.db.first (id INT, at TIMESTAMP) USING iceberg PARTITIONED BY (hours(at))"
        " TBLPROPERTIES ('format-version'='1')",
        "INSERT INTO ice.db.first SELECT int(id), timestamp'2024-01-01' FROM range(10)",
        "ALTER TABLE ice.db.first DROP PARTITION FIELD hours(at)",
        "INSERT INTO ice.db.first SELECT int(id), timestamp'2024-01-01' FROM range(10)",
    )
    keep("first")


def hudi(writer: Writer, prefix: str) -> None:
    spark, work = writer.spark, writer.work
    common = (
        "hoodie.metadata.enable='false', hoodie.table.timeline.timezone='UTC',"
        " hoodie.embed.timeline.server='false', hoodie.clean.automatic='true'"
    )

    def files(name: str) -> dict[str, Any]:
        # What a query reads is the last file of each group: the first part of its name.
        newest: dict[str, Path] = {}
        for path in sorted((work / name).rglob("*.parquet")):
            if ".hoodie" in path.parts:
                continue
            group = path.name.split("_")[0]
            time = path.name.split("_")[2]
            if group not in newest or time > newest[group].name.split("_")[2]:
                newest[group] = path
        return {
            "files_of_groups": len(newest),
            "bytes_of_groups": sum(path.stat().st_size for path in newest.values()),
        }

    def keep(name: str, **more: Any) -> None:
        facts = {**files(name), **more}
        writer.keep(f"{prefix}-{name}", spark.table(name), work / name, log=".hoodie", **facts)

    def create(name: str, kind: str, rest: str = "", more: str = "") -> None:
        writer.sql(
            f"CREATE TABLE {name} (id BIGINT, amount DECIMAL(12,2), note STRING, at TIMESTAMP,"
            f" tags ARRAY<STRING>, address STRUCT<city: STRING, code: INT>, day STRING) USING hudi"
            f" {rest} LOCATION '{work / name}' TBLPROPERTIES (primaryKey='id', type='{kind}',"
            f" preCombineField='at', {common}{more})"
        )

    def insert(name: str, first: int, last: int) -> None:
        writer.sql(
            f"INSERT INTO {name} SELECT id, 1.5, 'x', timestamp'2024-01-01', array('a'),"
            " named_struct('city', 'B', 'code', 1), concat('2024-01-0', 1 + id % 2)"
            f" FROM range({first}, {last}, 1, 1)"
        )

    create("cow", "cow", "PARTITIONED BY (day)")
    insert("cow", 0, 40)
    insert("cow", 30, 60)
    writer.sql(
        "ALTER TABLE cow ADD COLUMNS (extra INT COMMENT 'added later')",
        "DELETE FROM cow WHERE id < 5",
        "UPDATE cow SET note = 'y' WHERE id = 7",
    )
    keep("cow")
    create("mor", "mor")
    insert("mor", 0, 20)
    writer.sql("UPDATE mor SET note = 'y' WHERE id < 3", "DELETE FROM mor WHERE id = 9")
    keep("mor")
    create(
        "archived",
        "cow",
        "",
        ", hoodie.keep.min.commits='4', hoodie.keep.max.commits='5',"
        " hoodie.clean.commits.retained='2', hoodie.cleaner.commits.retained='2'",
    )
    for number in range(9):
        insert("archived", number * 5, number * 5 + 5)
    keep("archived")


def session(kind: str, jars: str, work: Path) -> SparkSession:
    builder = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.sql.warehouse.dir", str(work / "warehouse"))
        .config("spark.sql.catalogImplementation", "in-memory")
    )
    if kind == "delta":
        builder = builder.config(
            "spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension"
        ).config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
    elif kind == "iceberg":
        builder = (
            builder.config(
                "spark.sql.extensions",
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            )
            .config("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog")
            .config("spark.sql.catalog.ice.type", "hadoop")
            .config("spark.sql.catalog.ice.warehouse", str(work / "ice"))
        )
    else:
        builder = (
            builder.config(
                "spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension"
            )
            .config(
                "spark.sql.catalog.spark_catalog",
                "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
            )
            .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
            .config("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar")
        )
    return builder.getOrCreate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["delta", "iceberg", "hudi"])
    parser.add_argument("prefix", help="what the names of the tables begin with")
    parser.add_argument("jars", help="the engine's jars, with commas between")
    parser.add_argument("work", type=Path, help="an empty folder for the data files")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    target = Path(__file__).parent
    spark = session(options.kind, options.jars, options.work)
    writer = Writer(spark, options.work, target)
    chosen: dict[str, Callable[[], None]] = {
        "delta": lambda: delta(writer),
        "iceberg": lambda: iceberg(writer),
        "hudi": lambda: hudi(writer, options.prefix),
    }
    started = datetime.now().astimezone()
    chosen[options.kind]()
    sys.stderr.write(f"done in {datetime.now().astimezone() - started}\n")
    spark.stop()


if __name__ == "__main__":
    main()
