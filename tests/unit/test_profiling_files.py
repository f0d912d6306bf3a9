"""Reading the data of files as flat columns; no Spark is needed for it."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyarrow import ipc, orc
from typing_extensions import override

from lumos.core.errors import UnreadableItemError
from lumos.core.formats.reader import read_file
from lumos.core.models import Field, Schema, TypeName
from lumos.core.storage.local import LocalSource, LocalStorage
from lumos.feature.profiling import record_batches
from lumos.feature.profiling.columns import ProfiledColumn, profiled_columns
from lumos.feature.profiling.data_files import DataFiles
from lumos.feature.profiling.native import are_plain, native_schema
from lumos.spark.stages.profiling import ColumnKind, FileProblem, FileToProfile
from profile_data import SECRET, damage_data, odd_rows, rows_of, write_parquet


class FarSource(LocalSource):
    """Local files of which nobody may know where they lie."""

    @override
    def open(self) -> LocalStorage:
        storage = super().open()
        storage.local_folder = None
        return storage


def schema_of(path: Path) -> Schema:
    with path.open("rb") as stream:
        return read_file(stream, size=path.stat().st_size, name=path.name).schema


def reader(folder: Path, columns: Iterable[ProfiledColumn], **options: Any) -> DataFiles:
    source = options.pop("source", LocalSource)(name="lake", path=str(folder))
    return DataFiles(source, options.pop("format"), tuple(columns), **options)


def read(folder: Path, *names: str, **options: Any) -> tuple[dict[str, list[Any]], list[str]]:
    """Return the values of each column by path, and the problems, of files of one schema."""
    schema = options.pop("schema", None) or schema_of(folder / names[0])
    columns = profiled_columns(schema, format=options["format"])
    files = [FileToProfile("lake", name.encode(), (folder / name).stat().st_size) for name in names]
    values: dict[str, list[Any]] = {column.path: [] for column in columns}
    problems = []
    for found in reader(folder, columns, **options).read(files):
        if isinstance(found, FileProblem):
            problems.append(found.reason)
            continue
        for column in columns:
            values[column.path] += found.column(column.flat.name).to_pylist()
    return values, problems


def written(folder: Path, name: str, content: bytes | str) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return name


@pytest.mark.parametrize("source", [LocalSource, FarSource])
def test_parquet_is_flattened_from_disk_and_from_afar(
    tmp_path: Path, source: type[LocalSource]
) -> None:
    table = rows_of(60)
    write_parquet(tmp_path / "a.parquet", table, row_group_size=17)

    values, problems = read(tmp_path, "a.parquet", format="parquet", source=source)

    assert problems == []
    for name in ("id", "small", "price", "flag", "name", "blob", "day", "nothing"):
        assert values[name] == table[name].to_pylist()
    assert values["at"] == table["at"].cast(pa.int64()).to_pylist()
    assert values["tags"] == [None if v is None else len(v) for v in table["tags"].to_pylist()]
    people = table["address"].to_pylist()
    assert values["address"] == [None if each is None else True for each in people]
    assert values["address.zip"] == [each and each["zip"] for each in people]
    assert values["address.geo.lat"] == [
        each["geo"]["lat"] if each and each["geo"] else None for each in people
    ]


def test_types_that_spark_lacks_are_brought_to_ones_that_it_has(tmp_path: Path) -> None:
    table = odd_rows(20)
    write_parquet(tmp_path / "a.parquet", table)

    values, problems = read(tmp_path, "a.parquet", format="parquet")

    assert problems == []
    assert values["huge"] == table["huge"].to_pylist()
    assert values["nanos"][3] == 3_000_000
    assert values["clock"][1] == (3600 + 60) * 1_000_000
    assert values["word"] == table["word"].to_pylist()
    assert values["sizes"] == [None if n % 5 == 0 else n % 3 for n in range(20)]
    assert values["void"] == [None] * 20


def test_orc_and_arrow_give_what_parquet_gives(tmp_path: Path) -> None:
    table = rows_of(50).drop_columns(["local", "ratio"])
    write_parquet(tmp_path / "a.parquet", table)
    orc.write_table(table, tmp_path / "a.orc")
    with ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=13)
    with ipc.new_stream(tmp_path / "s.arrow", table.schema) as stream:
        stream.write_table(table)

    expected, _ = read(tmp_path, "a.parquet", format="parquet")

    assert read(tmp_path, "a.orc", format="orc") == (expected, [])
    assert read(tmp_path, "a.arrow", format="arrow") == (expected, [])
    assert read(tmp_path, "s.arrow", format="arrow") == (expected, [])


def test_avro_records_come_as_text_that_casts_back(tmp_path: Path) -> None:
    schema = {
        "type": "record",
        "name": "Row",
        "fields": [
            {"name": "id", "type": ["null", "long"]},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {
                "name": "price",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            },
            {"name": "raw", "type": "bytes"},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {
                "name": "who",
                "type": {
                    "type": "record",
                    "name": "Who",
                    "fields": [{"name": "name", "type": "string"}],
                },
            },
        ],
    }
    rows = rows_of(3).to_pylist()
    records = [
        {
            "id": row["id"] or None,
            "at": rows_of(2)["at"][1].as_py(),
            "day": row["day"],
            "price": row["price"],
            "raw": b"\x00\xff",
            "tags": ["a"] * row["id"],
            "who": {"name": SECRET},
        }
        for row in rows
    ]
    content = io.BytesIO()
    fastavro.writer(content, schema, records)
    name = written(tmp_path, "a.avro", content.getvalue())

    values, problems = read(tmp_path, name, format="avro")

    assert problems == []
    assert values["id"] == [None, "1", "2"]
    assert values["at"][0] == "2024-02-29 12:30:16.123456+00:00"
    assert values["price"] == ["0.00", "0.31", "0.62"]
    assert values["raw"] == [b"\x00\xff"] * 3
    assert values["tags"] == [0, 1, 2]
    assert values["who.name"] == [SECRET] * 3


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("a.jsonl", bytes),
        ("a.jsonl.gz", gzip.compress),
        ("a.jsonl.bz2", bz2.compress),
        ("a.jsonl.xz", lzma.compress),
        ("a.jsonl.zst", lambda content: pa.compress(content, "zstd", asbytes=True)),
    ],
)
def test_json_lines_are_read_packed_or_not(tmp_path: Path, name: str, pack: Any) -> None:
    lines = [{"a": n, "b": {"c": None if n % 2 else f"x{n}"}, "l": [1] * n} for n in range(5)]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    written(tmp_path, name, pack(text.encode()))

    values, problems = read(tmp_path, name, format="json")

    assert problems == []
    assert values["a"] == ["0", "1", "2", "3", "4"]
    assert values["b.c"] == ["x0", None, "x2", None, "x4"]
    assert values["l"] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "text", ['[{"a": 1}, {"a": 2.5}]', '{"a": 1}{"a": 2.5}', '{"a": 1}\n\n{"a": 2.5}\n']
)
def test_json_in_any_layout_gives_the_same_records(tmp_path: Path, text: str) -> None:
    name = written(tmp_path, "a.json", text)

    assert read(tmp_path, name, format="json") == ({"a": ["1", "2.5"]}, [])


def test_lines_that_are_no_json_are_counted_and_not_told(tmp_path: Path) -> None:
    good = "".join(f'{{"a": {n}}}\n' for n in range(20))
    name = written(tmp_path, "a.jsonl", f"{good}{{{SECRET}\n{good}")

    values, problems = read(tmp_path, name, format="json")

    assert len(values["a"]) == 40
    assert problems == ["1 row that are no JSON left out"]


def test_csv_is_read_as_it_is_written(tmp_path: Path) -> None:
    name = written(
        tmp_path,
        "a.csv",
        "# exported\nid;name;amount;paid\n"
        '1;"Müller; Co";1,5;2024-01-02\n2;"";NA;\n3;"two\nlines";2,25;2024-01-04\n'.encode(
            "latin-1"
        ),
    )

    values, problems = read(tmp_path, name, format="csv")

    assert problems == []
    assert values["id"] == ["1", "2", "3"]
    assert values["name"] == ["Müller; Co", "", "two\nlines"]
    assert values["amount"] == ["1.5", None, "2.25"]
    assert values["paid"] == ["2024-01-02", None, "2024-01-04"]


def test_columns_of_csv_files_go_by_name_and_without_a_header_by_place(tmp_path: Path) -> None:
    first = written(tmp_path, "1.csv", "a,b\n1,x\n")
    second = written(tmp_path, "2.csv", "b,a\ny,2\n")
    bare = written(tmp_path, "bare/1.csv", "1,2024-01-01\n2,2024-01-02\n")

    assert read(tmp_path, first, second, format="csv") == ({"a": ["1", "2"], "b": ["x", "y"]}, [])
    values, problems = read(tmp_path, bare, format="csv")
    assert [*values.values()] == [["1", "2"], ["2024-01-01", "2024-01-02"]]
    assert problems == []


def test_ragged_rows_of_csv_are_counted(tmp_path: Path) -> None:
    rows = "".join(f"{n},x\n" for n in range(50))
    name = written(tmp_path, "a.csv", f"a,b\n{rows}1,2,{SECRET}\n")

    values, problems = read(tmp_path, name, format="csv")

    assert len(values["a"]) == 50
    assert problems == ["1 row with more or fewer values than columns left out"]


def test_a_damaged_file_is_named_with_a_reason_that_holds_no_data(tmp_path: Path) -> None:
    write_parquet(tmp_path / "good.parquet", rows_of(30))
    write_parquet(tmp_path / "bad.parquet", rows_of(3000), compression="zstd")
    damage_data(tmp_path / "bad.parquet")

    values, problems = read(tmp_path, "good.parquet", "bad.parquet", format="parquet")

    assert len(values["id"]) >= 30
    (reason,) = problems
    assert reason.startswith("its data cannot be read")
    assert SECRET[:6] not in reason


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", rows_of(3))
    columns = profiled_columns(schema_of(tmp_path / "a.parquet"), format="parquet")
    for source in (LocalSource, FarSource):
        files = reader(tmp_path, columns, format="parquet", source=source)
        (problem,) = files.read([FileToProfile("lake", b"gone.parquet", 100)])
        assert isinstance(problem, FileProblem)
        assert problem.fatal
        assert "cannot be read" in problem.reason


def test_folders_give_the_columns_that_files_lack(tmp_path: Path) -> None:
    path = "year=2024/region=a%20b/part-0.parquet"
    write_parquet(tmp_path / path, rows_of(2).select(["id"]))
    none = "year=__HIVE_DEFAULT_PARTITION__/region=x/part-0.parquet"
    write_parquet(tmp_path / none, rows_of(1).select(["id"]))
    schema = Schema(
        fields=(
            Field(name="id", type=TypeName.INT64),
            Field(name="year", type=TypeName.INT32),
            Field(name="region", type=TypeName.STRING),
        )
    )

    values, problems = read(tmp_path, path, none, format="parquet", schema=schema)

    assert problems == []
    assert values["year"] == [2024, 2024, None]
    assert values["region"] == ["a b", "a b", "x"]


def test_a_sample_is_the_same_rows_however_files_are_spread(tmp_path: Path) -> None:
    for number in range(3):
        write_parquet(tmp_path / f"{number}.parquet", rows_of(400, first=400 * number))
    names = [f"{number}.parquet" for number in range(3)]

    def ids(*order: str, seed: int) -> list[int]:
        found, _ = read(tmp_path, *order, format="parquet", share=0.25, seed=seed)
        return sorted(found["id"])

    sampled = ids(*names, seed=1)
    assert sampled == ids(*reversed(names), seed=1)
    assert sampled != ids(*names, seed=2)
    assert 200 < len(sampled) < 400


def test_what_is_personal_has_no_values_however_deep(tmp_path: Path) -> None:
    inner = Field(name="age", type=TypeName.INT32)
    schema = Schema(
        fields=(
            Field(name="person", type=TypeName.STRUCT, pii=True, fields=(inner,)),
            Field(name="count", type=TypeName.INT32),
        )
    )

    columns = {each.path: each.flat for each in profiled_columns(schema, format="parquet")}

    assert not columns["person.age"].values
    assert columns["count"].values
    assert columns["person"].kind is ColumnKind.PRESENT


def test_spark_reads_only_what_it_reads_right() -> None:
    def fits(**parts: Any) -> bool:
        return native_schema(Schema(fields=(Field(**parts),))) is not None

    assert fits(name="a`b", type=TypeName.DECIMAL, precision=38, scale=10)
    assert fits(name="a", type=TypeName.TIMESTAMP, unit="us", timezone="UTC")
    assert not fits(name="a", type=TypeName.TIMESTAMP_NTZ, unit="ns")
    assert not fits(name="a", type=TypeName.UINT64)
    assert not fits(name="a", type=TypeName.DECIMAL, precision=50, scale=0)
    assert not fits(name="a", type=TypeName.STRUCT)
    both = (Field(name="a", type=TypeName.INT32), Field(name="A", type=TypeName.INT32))
    assert native_schema(Schema(fields=both)) is None
    assert are_plain(["/lake/year=2024/part-0.parquet"])
    for odd in ("/lake/a*b", "/lake/_x/a", "/lake/.x", "/lake/a{b}", "/lake/[a]"):
        assert not are_plain([odd])


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_batches, "LARGEST_DOCUMENT_BYTES", 2 << 20)
    content = io.BytesIO(b'{"a": 1}\n{"a": "' + b"x" * (8 << 20) + b'"}\n')
    found = iter(record_batches.JsonRecords(content, layout="lines", encoding="utf-8"))
    assert next(found) == {"a": 1}
    with pytest.raises(UnreadableItemError, match="a line of 2 MB or more"):
        next(found)
