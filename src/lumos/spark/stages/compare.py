"""What differs between the datasets found and those last written to the catalog."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STATES = "urn string, hash string"


def states_frame(spark: SparkSession, states: Iterable[tuple[str, str]]) -> DataFrame:
    """Return what was last written to the catalog, as URN and hash."""
    import pyarrow as pa

    pairs = list(states)
    return spark.createDataFrame(
        pa.table(
            {
                "urn": pa.array([urn for urn, _ in pairs], pa.string()),
                "hash": pa.array([digest for _, digest in pairs], pa.string()),
            }
        ),
        STATES,  # Spark Connect takes no empty table without
    )


def differing(datasets: DataFrame, states: DataFrame) -> DataFrame:
    """Return the datasets that the catalog does not know as they are now, and what is missing.

    A state whose dataset was not found is a row with nothing but its URN.
    """
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

    known = states.withColumnRenamed("hash", "known_hash")
    both = datasets.join(known, "urn", "full_outer")
    return both.where(~F.col("hash").eqNullSafe(F.col("known_hash"))).drop("known_hash")
