"""Tables that Spark wrote, read in this process: a job would cost more than the few rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow.dataset as pads

_BATCH_ROWS = 16_384


def count_rows(folder: Path) -> int:
    """Return how many rows the tables in a folder have, as far as this process sees them."""
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(part).num_rows for part in folder.rglob("*.parquet"))


def scan_rows(
    folder: Path, columns: Sequence[str], where: pads.Expression | None = None
) -> Iterator[tuple[object, ...]]:
    """Yield some columns of a table row by row; memory holds a batch of it, not all."""
    import pyarrow.dataset as pads

    parts = sorted(str(part) for part in folder.glob("*.parquet"))
    if not parts:
        return
    table = pads.dataset(parts, format="parquet")
    for batch in table.to_batches(
        columns=list(columns),
        filter=where,
        batch_size=_BATCH_ROWS,
        batch_readahead=2,
        fragment_readahead=1,
        use_threads=False,
    ):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
