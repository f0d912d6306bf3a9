"""Small lakes that tests ingest."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def write_table(path: Path, columns: dict[str, list[Any]]) -> None:
    """Write a Parquet file, and the folders above it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def write_lake(root: Path) -> Path:
    """Write a lake of three datasets in two formats, one of them partitioned."""
    for month in (1, 2):
        write_table(
            root / "orders" / "year=2026" / f"month={month:02}" / "part-0.parquet",
            {"id": [1, 2], "total": [9.5, 7.25], "coupon": ["a", None]},
        )
    write_table(root / "customers" / "part-0.parquet", {"id": [1], "country": ["NL"]})
    (root / "campaigns.csv").write_text("id,name,started\n1,Spring,2026-03-01\n")
    return root


def write_settings(project: Path, lake: Path, **more: str) -> None:
    """Write settings with the lake as their one source."""
    lines = [f"{name}: {value}" for name, value in more.items()]
    source = f"sources:\n  - {{type: local, name: lake, path: {lake}}}\n"
    (project / "lumos.yaml").write_text("\n".join([*lines, source]))
