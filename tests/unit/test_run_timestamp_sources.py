"""How a run timestamp describes its sources."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lumos.core.controllers.run_timestamp_controller import RunTimestampController
from lumos.core.run_report import RunRecorder
from lumos.core.runtime.project import Project
from lumos.core.runtime.settings import settings_from_mapping
from lumos.core.runtime.unit_of_work import UnitOfWork
from lumos.feature.ingestion.scan.sources import ScanSources, scan_sources


def test_a_run_timestamp_describes_a_source_as_an_ingestion_does(tmp_path: Path) -> None:
    source: Any = {
        "type": "local",
        "name": "lake",
        "path": str(tmp_path),
        "instance": "host-1",
        "value_ranges": True,
        "path_specs": ["{table}/day={yyyymmdd}/*"],
        "partitioning_format": "day=%Y%m%d",
    }
    entries = settings_from_mapping({"sources": [source]}, {}).sources
    work = UnitOfWork(Project(given_state_dir=tmp_path, environment={}))
    timed = RunTimestampController(work)._sources(entries, are_named=True)
    recorder = RunRecorder("ingest", started_at=datetime(2026, 1, 1, tzinfo=UTC))

    ingested = scan_sources(entries, recorder, skip=str(tmp_path), parallel=1)

    assert ScanSources({each.name: each.scanned for each in timed}).places == ingested.places
