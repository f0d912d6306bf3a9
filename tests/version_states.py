"""States of many datasets for tests of versions in bulk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from lumos.core.controllers.version_controller import VersionController
from lumos.core.models import LumosDataset, Snapshot, Urn

if TYPE_CHECKING:
    from lumos.core.runtime.unit_of_work import UnitOfWork

AT = datetime(2026, 1, 1, tzinfo=UTC)


def table(number: int, *columns: str, **parts: object) -> LumosDataset:
    fields = [{"name": name, "type": "STRING"} for name in columns or ("id",)]
    urn = Urn.of("s3", "lake", f"table_{number:06}")
    document = {"urn": urn, "name": f"table_{number:06}", "platform": "s3"}
    return LumosDataset.from_json({**document, "schema": {"fields": fields}, **parts})


def tables(count: int, state: int = 0) -> list[LumosDataset]:
    """Return datasets whose description says the number of their state."""
    return [table(each, documentation={"description": f"{state}"}) for each in range(count)]


def snapshot_of(datasets: Sequence[LumosDataset], *, day: int = 0) -> Snapshot:
    return Snapshot.from_json(
        {
            "snapshot_schema_version": 1,
            "lumos_version": "0",
            "export_timestamp": AT + timedelta(days=day),
            "source_platform": "s3",
            "datasets": tuple(datasets),
        }
    )


def write_snapshot(folder: Path, datasets: Sequence[LumosDataset], *, day: int = 0) -> str:
    import orjson

    path = folder / f"day-{day}.json"
    path.write_bytes(orjson.dumps(snapshot_of(datasets, day=day).to_json()))
    return str(path)


def fill_catalog(work: UnitOfWork, datasets: Iterable[LumosDataset]) -> None:
    """Bring datasets into the catalog without giving them versions."""
    platform = work.platform(None, writing=True)
    with work.writer.transaction():
        for dataset in datasets:
            platform.emit_dataset(dataset)


def versions_of(controller: VersionController) -> dict[str, str]:
    """Return the newest version of every dataset by its name."""
    found = controller.show(limit=10**6).datasets
    return {each.dataset.rpartition("/")[2]: each.version for each in found}
