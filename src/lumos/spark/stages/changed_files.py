"""What differs between a listing and what earlier runs knew: only that has to be read again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lumos.spark.stages.rows import FILE_PART

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

DELTA = (
    "source string, path binary, size long, mtime_us long, etag string, kind string, "
    "unit binary, position long, status string, old_dataset string"
)
SAME, NEW, CHANGED, GONE = "same", "new", "changed", "gone"
UNSEEN = "unseen"
"""It lies where nobody could look, so it is left as it was."""
_KEY = ["source", "path"]


Scope = Mapping[str, Sequence[bytes]]
"""Sources, and the folders of each that were listed; an empty path is all of it."""


def in_scope(scope: Scope) -> Column:
    """Return what is true for the files that a listing had to find, if they are there."""
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

    is_inside = F.lit(False)
    for source, folders in scope.items():
        path = F.lit(False)
        for folder in folders:
            # A table is identified by the path of its folder.
            inside = F.startswith(F.col("path"), F.lit(folder + b"/")) | (
                F.col("path") == F.lit(folder)
            )
            path = path | inside if folder else F.lit(True)
        is_inside = is_inside | ((F.col("source") == source) & path)
    return is_inside


def unseen(closed: Scope) -> Column:
    """Return what is true for files and tables that nobody could look at, or not wholly.

    Args:
        closed: the folders that could not be listed; one in a table may be that of its log.
    """
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

    is_around = F.lit(False)
    for source, folders in closed.items():
        for folder in folders:
            above = F.startswith(F.lit(folder), F.concat(F.col("path"), F.lit(b"/")))
            is_above = above | (F.col("path") == F.lit(b""))
            is_around = is_around | ((F.col("source") == source) & is_above)
    return in_scope(closed) | (F.col("kind").isNotNull() & is_around)


def in_units(same: Scope) -> Column:
    """Return a condition: loose files of unchanged units, which were not listed."""
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

    is_inside = F.lit(False)
    for source, units in same.items():
        is_inside = is_inside | ((F.col("source") == source) & F.col("unit").isin(list(units)))
    return F.col("kind").isNull() & is_inside


def compared(
    listed: DataFrame, index: DataFrame, *, scope: Scope, closed: Scope, full: bool
) -> DataFrame:
    """Give every file that is there, or was, its status.

    Args:
        listed: the files and tables that are there now.
        index: what earlier runs knew.
        scope: what was listed; what lies elsewhere is left alone.
        closed: what of it could not be listed.
        full: take every file as changed.
    """
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

    known = index.where((F.col("part") == FILE_PART) & in_scope(scope)).select(
        *_KEY,
        F.col("size").alias("old_size"),
        F.col("mtime_us").alias("old_mtime_us"),
        F.col("etag").alias("old_etag"),
        F.col("dataset").alias("old_dataset"),
        F.col("retry").alias("old_retry"),
        unseen(closed).alias("is_unseen"),
        F.lit(True).alias("was_there"),
    )
    both = listed.withColumn("is_there", F.lit(True)).join(known, _KEY, "full_outer")
    as_it_was = (
        (F.col("size") == F.col("old_size"))
        & (F.col("mtime_us") == F.col("old_mtime_us"))
        & F.col("etag").eqNullSafe(F.col("old_etag"))
        # A reason that may pass by itself, such as a missing permission, is looked at again.
        & ~F.col("old_retry")
    )
    status = (
        F.when(F.col("was_there").isNull(), NEW)
        .when(F.col("is_there").isNull() & F.col("is_unseen"), UNSEEN)
        .when(F.col("is_there").isNull(), GONE)
        .when(as_it_was & F.lit(not full), SAME)
        .otherwise(CHANGED)
    )
    return both.select(
        *_KEY,
        "size",
        "mtime_us",
        "etag",
        "kind",
        "unit",
        "position",
        status.alias("status"),
        "old_dataset",
    )


def all_new(listed: DataFrame) -> DataFrame:
    """Give every file that is there its status, where nothing was known before."""
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

    nothing = F.lit(None).cast("string").alias("old_dataset")
    return listed.select("*", F.lit(NEW).alias("status"), nothing)


def to_read(delta: DataFrame) -> DataFrame:
    """Return the files and tables that have to be opened."""
    return delta.where(f"status <> '{GONE}'").drop("status", "old_dataset")


def kept(index: DataFrame, delta: DataFrame) -> DataFrame:
    """Return what is still true of what earlier runs knew, for all sources."""
    return index.join(delta.select(*_KEY), _KEY, "left_anti")


def with_units(items: DataFrame, listed: DataFrame) -> DataFrame:
    """Give items the units that they were listed with now; items not listed keep theirs."""
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

    now = listed.select(*_KEY, F.col("unit").alias("unit_now"))
    both = items.join(now, _KEY, "left")
    return both.withColumn("unit", F.coalesce("unit_now", "unit")).select(*items.columns)


def carried(index: DataFrame, read: DataFrame) -> DataFrame:
    """Return what was read before from files that cannot be read now.

    A dataset keeps the columns of such files: nobody saw that they are gone.
    """
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

    failed = read.where("reason IS NOT NULL").select(*_KEY).distinct()
    good = index.where("reason IS NULL AND skipped IS NULL AND dataset IS NOT NULL")
    return good.join(failed, _KEY, "left_semi").withColumn("part", F.lit(-1).cast("long"))


def affected(index: DataFrame, delta: DataFrame, read: DataFrame) -> DataFrame:
    """Return the datasets that have to be put together anew; a file may have been in several."""
    before = index.join(delta.select(*_KEY), _KEY, "left_semi").select("source", "dataset")
    now = read.select("source", "dataset")
    return before.unionByName(now).where("dataset IS NOT NULL").distinct()
