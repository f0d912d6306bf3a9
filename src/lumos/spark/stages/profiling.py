"""From the data of a dataset to figures on each column, in one aggregation over all of them.

Whatever a file looks like, its columns arrive here flat: one column of a simple type for each
column and member of a struct, lists and maps as their size. Figures are of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from lumos.spark.stages.rows import FILE_PART

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles of numbers."""
SKETCH_SIZE = 12
"""The logarithm of a sketch's registers; the error of different values is then 1.6 %."""
PROBLEM_COLUMNS = "item binary, reason string, fatal boolean"
"""What a row says that is no data: which file, what is wrong, whether nothing of it counts."""

_QUANTILE_ACCURACY = 10_000
_ROWS, _PROBLEMS = "rows", "problems"


class ColumnKind(StrEnum):
    """What figures a column has."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    FLOAT = "float"
    DECIMAL = "decimal"
    DATE = "date"
    TIME = "time"
    """Microseconds since midnight."""
    MOMENT = "moment"
    """Microseconds since 1970, in UTC or of a clock without a zone."""
    TEXT = "text"
    BINARY = "binary"
    IDENTIFIER = "identifier"
    """Values of one length of which only the distinct ones are counted."""
    SIZE = "size"
    """How many entries a list or map has."""
    PRESENT = "present"
    """True where there is a value of which nothing more is measured."""


NUMBERS = frozenset({ColumnKind.INTEGER, ColumnKind.FLOAT, ColumnKind.DECIMAL})
ORDERED = NUMBERS | {ColumnKind.DATE, ColumnKind.TIME, ColumnKind.MOMENT}
_MEASURED = frozenset({ColumnKind.TEXT, ColumnKind.BINARY, ColumnKind.SIZE})
_WITH_MEASURE = frozenset({ColumnKind.TEXT, ColumnKind.BINARY, ColumnKind.FLOAT})
_COUNTED_ONLY = frozenset({ColumnKind.SIZE, ColumnKind.PRESENT})


class FlatColumn(NamedTuple):
    """A column of the flat data."""

    name: str
    kind: ColumnKind
    type: str
    """The type of its values, as Spark writes it."""
    text_as: str | None = None
    """Where values come as text: the type to read them as before `type`; else None."""
    values: bool = True
    """Whether figures may be values of the data, as the smallest one is."""


class FileToProfile(NamedTuple):
    """A file to read from its beginning to its end."""

    source: str
    path: bytes
    size: int


class FileProblem(NamedTuple):
    """What is wrong with a file."""

    item: bytes
    reason: str
    fatal: bool
    """Whether nothing of it may count."""


class Figures(NamedTuple):
    """What one look at the data gave."""

    rows: int
    problems: tuple[FileProblem, ...]
    columns: Mapping[str, Mapping[str, object]]
    """The figures of each flat column by their names; None where there are no values."""


ReadFlat = Callable[[Iterable[FileToProfile]], "Iterator[pa.RecordBatch | FileProblem]"]


def flat_rows(files: DataFrame, read: ReadFlat, *, columns: Sequence[FlatColumn]) -> DataFrame:
    """Read the files where this runs; what cannot be read is a row that says why."""
    types = [f"{each.name} {'string' if each.text_as else each.type}" for each in columns]

    def run(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for found in read(_files(parts)):
            if isinstance(found, FileProblem):
                yield _problem_row(found, columns)
            else:
                yield _with_no_problem(found)

    arrived = files.mapInArrow(run, ", ".join([PROBLEM_COLUMNS, *types]))
    return arrived.selectExpr("item", "reason", "fatal", *map(_typed, columns), *_raw(columns))


def native_rows(
    spark: SparkSession,
    paths: Sequence[str],
    *,
    format: str,
    schema: str,
    base: str,
    expressions: Sequence[str],
) -> DataFrame:
    """Read files with Spark's own reader for their format.

    Args:
        spark: the session.
        paths: the whole paths of the files.
        format: `parquet` or `orc`.
        schema: the columns, those of folders named `key=value` included, as Spark writes them.
        base: the folder below which such folders count.
        expressions: the flat columns, computed from those of the schema.
    """
    reader = spark.read.format(format).schema(schema).option("basePath", base)
    if format == "parquet":
        reader = reader.option("datetimeRebaseMode", "CORRECTED")
        reader = reader.option("int96RebaseMode", "CORRECTED")
    problems = ("CAST(NULL AS BINARY) item", "CAST(NULL AS STRING) reason", "false fatal")
    return reader.load(list(paths)).selectExpr(*problems, *expressions)


def figures_of(rows: DataFrame, columns: Sequence[FlatColumn]) -> Figures:
    """Compute all figures of all columns in one pass."""
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

    said = F.when(F.col("reason").isNotNull(), F.struct("item", "reason", "fatal"))
    wanted = [
        F.count_if(F.col("reason").isNull()).alias(_ROWS),
        F.collect_list(said).alias(_PROBLEMS),
    ]
    for column in columns:
        wanted += [
            value.alias(f"{column.name} {figure}") for figure, value in _figures(column).items()
        ]
    measures = [_measure(column) for column in columns if column.kind in _WITH_MEASURE]
    (row,) = rows.selectExpr("*", *measures).agg(*wanted).collect()
    told = row.asDict()
    found: dict[str, dict[str, object]] = {column.name: {} for column in columns}
    for name, value in told.items():
        column_name, _, figure = name.partition(" ")
        if figure:
            found[column_name][figure] = value
    problems = sorted(
        FileProblem(bytes(each["item"]), each["reason"], each["fatal"]) for each in told[_PROBLEMS]
    )
    return Figures(told[_ROWS], tuple(problems), found)


def _figures(column: FlatColumn) -> dict[str, Column]:
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

    value = F.col(column.name)
    figures = {"count": F.count(value)}
    if column.text_as:
        figures["given"] = F.count(F.col(_raw_name(column)))
    if column.kind is ColumnKind.BOOLEAN:
        figures["true"] = F.count_if(value)
    if column.kind not in _COUNTED_ONLY:
        # One binary buffer a column; Spark's own HLL++ plans hundreds of numbers for each. Spark
        # hashes all types alike, and a sketch knows only some.
        hashed = F.when(value.isNotNull(), F.xxhash64(value))
        sketch = F.hll_sketch_agg(hashed, F.lit(SKETCH_SIZE))
        figures["distinct"] = F.hll_sketch_estimate(sketch)
    if column.kind in _WITH_MEASURE:
        value = F.col(_measure_name(column))
    if column.kind in _MEASURED:
        figures |= {"shortest": F.min(value), "length": F.avg(value), "longest": F.max(value)}
    if column.kind is ColumnKind.FLOAT:
        figures["finite"] = F.count(value)
    if column.kind in ORDERED and column.values:
        figures |= {"min": F.min(value), "max": F.max(value)}
    if column.kind in NUMBERS and column.values:
        figures |= {
            "mean": F.avg(value.cast("double")),
            "stddev": F.stddev_samp(value),
            "quantiles": F.percentile_approx(value, list(SHARES), _QUANTILE_ACCURACY),
        }
    return figures


def _measure(column: FlatColumn) -> str:
    """Return what several figures are of, to be computed once a row: lengths, finite numbers."""
    value = column.name
    if column.kind is ColumnKind.FLOAT:  # NaN is larger than all else to Spark
        value = f"CASE WHEN abs({value}) < DOUBLE('Infinity') THEN {value} END"
    else:
        value = f"length({value})"
    return f"{value} AS {_measure_name(column)}"


def _measure_name(column: FlatColumn) -> str:
    return f"{column.name}_measure"


def _typed(column: FlatColumn) -> str:
    if column.text_as is None:
        return column.name
    text = f"'1970-01-01 ' || {column.name}" if column.kind is ColumnKind.TIME else column.name
    value = f"try_cast({text} AS {column.text_as})"
    if column.kind in (ColumnKind.MOMENT, ColumnKind.TIME):
        value = f"unix_micros(CAST({value} AS TIMESTAMP))"
    return f"{value} AS {column.name}"


def _raw(columns: Iterable[FlatColumn]) -> list[str]:
    return [f"{each.name} AS {_raw_name(each)}" for each in columns if each.text_as]


def _raw_name(column: FlatColumn) -> str:
    return f"{column.name}_text"


def _files(parts: Iterator[pa.RecordBatch]) -> Iterator[FileToProfile]:
    from lumos.spark.stages.arrow_rows import rows

    for part in parts:
        for source, path, size in rows(part, FileToProfile._fields):
            yield FileToProfile(str(source), bytes(path), int(size))  # type: ignore[call-overload]


def _with_no_problem(batch: pa.RecordBatch) -> pa.RecordBatch:
    import pyarrow as pa

    empty = partial(pa.nulls, batch.num_rows)
    problem = [empty(pa.binary()), empty(pa.string()), empty(pa.bool_())]
    names = ["item", "reason", "fatal", *batch.schema.names]
    return pa.RecordBatch.from_arrays([*problem, *batch.columns], names=names)


def _problem_row(problem: FileProblem, columns: Sequence[FlatColumn]) -> pa.RecordBatch:
    import pyarrow as pa

    given = [
        pa.array([problem.item], pa.binary()),
        pa.array([problem.reason], pa.string()),
        pa.array([problem.fatal], pa.bool_()),
    ]
    empty = [pa.nulls(1, arrow_type(each)) for each in columns]
    names = ["item", "reason", "fatal", *(each.name for each in columns)]
    return pa.RecordBatch.from_arrays([*given, *empty], names=names)


def arrow_type(column: FlatColumn) -> pa.DataType:
    """Return the Arrow type in which a column arrives from where files are read."""
    import pyarrow as pa

    if column.text_as:
        return pa.string()
    if column.kind is ColumnKind.DECIMAL:
        precision, _, scale = column.type.removeprefix("decimal(").removesuffix(")").partition(",")
        return pa.decimal128(int(precision), int(scale))
    simple = {
        "bigint": pa.int64(),
        "binary": pa.binary(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "double": pa.float64(),
        "string": pa.string(),
    }
    return simple[column.type]


class DatasetFiles:
    """The files that a dataset consists of, as the file index knows them."""

    def __init__(self, items: DataFrame, *, source: str, dataset: str, format: str) -> None:
        """Select the files.

        Args:
            items: that table of the file index.
            source: the source that the dataset was found in.
            dataset: its place there.
            format: its format; files of other formats there are other datasets.
        """
        from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

        is_there = (F.col("source") == source) & (F.col("dataset") == dataset)
        is_file = F.col("kind").isNull() & (F.col("part") == FILE_PART)
        belonging = items.where(is_there & is_file)
        is_readable = F.col("reason").isNull() & (F.col("format") == format)
        known = F.coalesce("rows", "rows_estimate")
        failed = F.when(F.col("reason").isNotNull(), F.struct("path", "reason"))
        self._readable = belonging.where(is_readable)
        (row,) = belonging.agg(
            F.count_if(is_readable),
            F.sum(F.when(is_readable, known)),
            F.collect_list(failed),
        ).collect()
        self.count: int = row[0]
        self.rows: int | None = row[1]
        """About how many rows they have; None where nothing is known."""
        self.unreadable = tuple(
            sorted(FileProblem(bytes(path), reason, fatal=True) for path, reason in row[2])
        )
        """The files that could not even be looked at when they were found."""

    def paths(self) -> list[bytes]:
        """Return the paths of the files, in order; all of them pass through the driver."""
        return [bytes(row[0]) for row in self._readable.select("path").orderBy("path").collect()]

    def to_read(self, *, without: Sequence[FileProblem], tasks: int) -> DataFrame:
        """Return the files spread over tasks, without some of them."""
        frame = self._readable.select(*FileToProfile._fields)
        if without:
            spark = self._readable.sparkSession
            bad = spark.createDataFrame([(problem.item,) for problem in without], "path binary")
            frame = frame.join(bad, "path", "left_anti").select(*FileToProfile._fields)
        return frame.repartition(tasks)


def tasks_for(spark: SparkSession, files: int) -> int:
    """Return over how many tasks so many files are spread."""
    parallel = int(spark.conf.get("spark.sql.leafNodeDefaultParallelism", "8") or 8)
    return max(1, min(files, parallel))
