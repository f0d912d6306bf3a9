"""Artifacts of the example dbt project, and scans of changed copies of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from lumos.core.models import (
    LumosDataset,
)
from lumos.feature.ingestion.handlers.dbt.handler import DbtHandler, DbtSettings
from lumos.feature.ingestion.records import (
    PreviousScan,
    ScanRecord,
)

ROOT = Path(__file__).parents[1]
NEWEST = ROOT / "examples/dbt/target"
GOLDEN = ROOT / "tests/golden/dbt"
EVERY_VERSION = {
    "v9": GOLDEN / "v9",
    "v10": GOLDEN / "v10",
    "v11": GOLDEN / "v11",
    "v12": GOLDEN / "v12",
    "newest": NEWEST,
}
SHOP = "lumos://postgres/shop"
ORDERS = f"{SHOP}/public/orders"
Document = dict[str, Any]
R = TypeVar("R")


def handler(folder: Path, **settings: Any) -> DbtHandler:
    """Return the handler of the artifacts in a folder, those that are there."""
    paths = {
        name: path
        for name, file in (
            ("catalog_path", "catalog.json"),
            ("run_results_path", "run_results.json"),
        )
        if (path := folder / file).exists()
    }
    return DbtHandler(
        DbtSettings(
            type="dbt",
            name="shop",
            **{"manifest_path": folder / "manifest.json", **paths, **settings},
        )
    )


def scanned(source: DbtHandler) -> list[ScanRecord]:
    return [record for unit in source.plan(PreviousScan()) for record in source.scan(unit)]


def of(kind: type[R], records: list[ScanRecord]) -> list[R]:
    return [record for record in records if isinstance(record, kind)]


def datasets(records: list[ScanRecord]) -> dict[str, LumosDataset]:
    return {str(dataset.urn): dataset for dataset in of(LumosDataset, records)}


def loaded(name: str, folder: Path = NEWEST) -> Document:
    document: Document = json.loads((folder / name).read_text())
    return document


def written(folder: Path, manifest: Document, **others: Document) -> Path:
    folder.mkdir(exist_ok=True)
    for name, document in {"manifest": manifest, **others}.items():
        (folder / f"{name}.json").write_text(json.dumps(document))
    return folder


def changed(folder: Path, change: Callable[[Document], object]) -> list[ScanRecord]:
    """Scan a copy of the newest manifest in which something was changed."""
    manifest = loaded("manifest.json")
    change(manifest)
    return scanned(handler(written(folder, manifest)))
