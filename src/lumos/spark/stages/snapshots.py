"""Work on the buckets of snapshots: rows that name parts in, what was found in them out.

Parts are read where the tasks run, so their folder has to be visible there. The work itself is
handed in as a function; nothing is shuffled, and what comes back keeps the order of the tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_TASKS = "number long, task binary"
_FOUND = "content binary, space string, key string, kind string, name string"
_COLUMNS = ("content", "space", "key", "kind", "name")
_PARALLELISM = "spark.sql.leafNodeDefaultParallelism"
_BATCH_BYTES = 4 << 20
_BATCH_ROWS = 10_000


class Found(NamedTuple):
    """What the work on a bucket yields: content for the driver, or a fact that stays on Spark."""

    content: bytes | None
    space: str | None = None
    key: str | None = None
    kind: str | None = None
    name: str | None = None


DoBucket = Callable[[bytes], Iterable[Found]]


def bucket_rows(spark: SparkSession, tasks: Sequence[bytes]) -> DataFrame:
    """Return one row for each task, in their order and spread over the executors."""
    import pyarrow as pa

    numbers, contents = pa.array(range(len(tasks)), pa.int64()), pa.array(tasks, pa.binary())
    table = pa.Table.from_arrays([numbers, contents], names=["number", "task"])
    return spark.createDataFrame(table, _TASKS)


def done_buckets(rows: DataFrame, do: DoBucket) -> DataFrame:
    """Do the work of each row where it is run."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.column("task"):
                yield from _batches(do(task.as_py()))

    return rows.mapInArrow(run, _FOUND)


class DoneBuckets:
    """What the work on all buckets found, held on the executors."""

    def __init__(
        self, spark: SparkSession, tasks: Sequence[bytes], *, do: DoBucket, together: int
    ) -> None:
        """Carry the work out now, all tasks at once.

        Args:
            spark: the session.
            tasks: one for each bucket.
            do: the work.
            together: how many buckets may share a partition, which comes back as a whole.
        """
        frame = done_buckets(bucket_rows(spark, tasks), do)
        with _partitions(spark, len(tasks), together=together):
            # Without it an iterator over the frame would run one task after the other.
            self._frame = frame.localCheckpoint(eager=True)

    def contents(self) -> Iterator[bytes]:
        """Yield the contents in the order of the tasks, holding one partition at a time."""
        frame = self._frame.where("content IS NOT NULL").select("content")
        for row in frame.toLocalIterator():
            yield bytes(row[0])

    def repeated(self, spaces: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield the places of some spaces that more than one item has."""
        for row in repeated_places(self._frame, spaces).toLocalIterator():
            yield row[0], row[1]

    def missing(self) -> Iterator[tuple[str, str]]:
        """Yield what is wanted and found under none of its places."""
        for row in missing_names(self._frame).toLocalIterator():
            yield row[0], row[1]

    def wanted(self) -> dict[str, int]:
        """Return how many different names of each kind are wanted."""
        return {row[0]: row[1] for row in wanted_names(self._frame).toLocalIterator()}


def repeated_places(frame: DataFrame, spaces: Collection[str]) -> DataFrame:
    """Return the places of some spaces that more than one item has."""
    from pyspark.sql import functions as F  # noqa: N812 - its common name

    asked = frame.where(F.col("space").isin(*spaces))
    return _there(asked).where("items > 1").select("space", "key")


def missing_names(frame: DataFrame) -> DataFrame:
    """Return what is wanted and found under none of its places."""
    from pyspark.sql import functions as F  # noqa: N812 - its common name

    found = _wanted(frame).join(_there(frame), ["space", "key"], "left")
    by_name = found.groupBy("kind", "name").agg(F.max("items").alias("items"))
    return by_name.where("items IS NULL").select("kind", "name")


def wanted_names(frame: DataFrame) -> DataFrame:
    """Return how many different names of each kind are wanted."""
    return _wanted(frame).select("kind", "name").distinct().groupBy("kind").count()


@contextmanager
def _partitions(spark: SparkSession, tasks: int, *, together: int) -> Iterator[None]:
    """Spread rows over so many partitions that none holds too many buckets."""
    given = spark.conf.get(_PARALLELISM, None)
    # What a cluster would choose is not known here: each bucket may then go its own way.
    wanted = max(int(given), -(-tasks // together)) if given else max(tasks, 1)
    spark.conf.set(_PARALLELISM, str(wanted))
    try:
        yield
    finally:
        if given:
            spark.conf.set(_PARALLELISM, given)
        else:
            spark.conf.unset(_PARALLELISM)


def _there(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812 - its common name

    places = frame.where("space IS NOT NULL AND kind IS NULL").groupBy("space", "key")
    return places.agg(F.count("*").alias("items"))


def _wanted(frame: DataFrame) -> DataFrame:
    return frame.where("kind IS NOT NULL").select("kind", "name", "space", "key").distinct()


def _batches(found: Iterable[Found]) -> Iterator[pa.RecordBatch]:
    waiting: list[Found] = []
    size = 0
    for each in found:
        waiting.append(each)
        size += len(each.content or b"")
        if size > _BATCH_BYTES or len(waiting) >= _BATCH_ROWS:
            yield _batch(waiting)
            waiting, size = [], 0
    if waiting:
        yield _batch(waiting)


def _batch(found: Sequence[Found]) -> pa.RecordBatch:
    import pyarrow as pa

    types = (pa.binary(), *[pa.string()] * (len(_COLUMNS) - 1))
    pairs = zip(zip(*found, strict=True), types, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(values, kind) for values, kind in pairs], names=list(_COLUMNS)
    )
