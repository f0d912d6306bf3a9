"""Snapshots for tests, small and of any size."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

from lumos.core.models import LumosDataset, Snapshot, load_snapshot

AT = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def sample_dataset(number: int, *, note: str = "") -> LumosDataset:
    return LumosDataset.from_json(
        {
            "urn": f"lumos://s3/lake/raw/table_{number:05d}",
            "name": f"table_{number:05d}",
            "platform": "s3",
            "format": "PARQUET",
            "schema": {
                "fields": [
                    {"name": "id", "type": "INT64", "nullable": False},
                    {"name": "amount", "type": "DECIMAL", "precision": 10, "scale": 2},
                    {"name": "when", "type": "TIMESTAMP", "description": note or None},
                ]
            },
            "ownership": {"owners": [{"user": "ana"}, {"group": "data"}]},
            "tags": ["raw"],
            "statistics": {"file_count": number + 1},
        }
    )


def sample_snapshot(size: int = 40, *, note: str = "", complete: bool = True) -> Snapshot:
    """Return a snapshot with something in every section."""
    datasets = [sample_dataset(number, note=note) for number in range(size)]
    edges = [
        {"upstream_urn": earlier.urn, "downstream_urn": later.urn}
        for earlier, later in pairwise(datasets)
    ]
    document = {
        "snapshot_schema_version": 1,
        "lumos_version": "0.1.0",
        "export_timestamp": "2026-03-01T12:00:00Z",
        "source_platform": "embedded",
        "complete": complete,
        "datasets": [dataset.to_json() for dataset in datasets],
        "lineage_edges": edges,
        "jobs": [
            {
                "urn": "lumos://airflow/daily/load",
                "name": "load",
                "inputs": [dataset.urn for dataset in datasets[:1]],
            }
        ],
        "glossary": [{"name": "Revenue", "definition": 'What "comes in"\nper day'}],
        "tags": [{"name": "raw"}],
        "domains": [{"name": "Sales — Länder"}],
        "users": [{"username": "ana"}],
        "groups": [{"name": "data", "members": ["ana"]}],
        "identity_map": {dataset.urn: {"datahub": "urn:li:x"} for dataset in datasets[:1]},
        "extensions": {"datahub": {"form": [1, None, {"deep": True}]}},
    }
    return load_snapshot(document).with_derived_parts()
