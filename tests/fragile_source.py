"""A record source that ends its own executor once, and a run over it on a cluster.

Executors import this module from PYTHONPATH, so it imports nothing of the tests beside it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from typing_extensions import override

from lumos.core.models import LumosDataset, Urn
from lumos.core.progress import SILENT
from lumos.core.settings import RawSettings
from lumos.feature.ingestion.handlers.base_ingestion_handler import (
    BaseIngestionHandler,
    RecordSourceSettings,
)
from lumos.feature.ingestion.records import PreviousScan, ScannedScope, ScanRecord, ScanUnit
from lumos.feature.ingestion.scan.record_functions import RecordFunctions
from lumos.spark.record_pipeline import RecordPipeline
from lumos.spark.session import spark_session
from lumos.spark.settings import SparkSettings

EXECUTOR = "CoarseGrainedExecutorBackend"
UNITS, TABLES = 6, 5


class FragileSettings(RecordSourceSettings):
    killed: Path


class FragileHandler(BaseIngestionHandler[FragileSettings]):
    """In its last unit it kills the executor, if nobody did so before."""

    source_type = "test_fragile"
    settings_model = FragileSettings

    @override
    def plan(self, previous: PreviousScan) -> Iterator[ScanUnit]:
        yield from (ScanUnit(f"u{number}") for number in range(UNITS))

    @override
    def scan(self, unit: ScanUnit) -> Iterator[ScanRecord]:
        for number in range(TABLES):
            yield LumosDataset.from_json(
                {
                    "urn": Urn.of("fragile", unit.target, f"t{number}"),
                    "name": f"t{number}",
                    "platform": "fragile",
                    "schema": {"fields": [{"name": "id", "type": "INT64"}]},
                }
            )
        if unit.target == f"u{UNITS - 1}" and not self._settings.killed.exists():
            kill_executor(note=self._settings.killed)
        yield ScannedScope(f"lumos://fragile/{unit.target}")


def kill_executor(note: Path) -> None:
    """Kill the JVM above the daemon that started this worker, and note that; only an executor."""
    executor = parent_of(os.getppid())
    if EXECUTOR in Path(f"/proc/{executor}/cmdline").read_text():
        note.write_text(str(executor))
        os.kill(executor, signal.SIGKILL)


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def main(spark: str, options: str, folder: str) -> None:
    """Scan the source once, on a master or behind Spark Connect, and print what was found."""
    work = Path(folder) / "work"
    work.mkdir()
    settings = FragileSettings(type="x", name="fragile", killed=Path(folder) / "killed")
    handler = FragileHandler(settings)
    where = {"remote" if spark.startswith("sc:") else "master": spark}
    chosen = SparkSettings.model_validate({**where, "conf": RawSettings(json.loads(options))})
    functions = RecordFunctions.of([handler], folder=work)
    units = list(functions.units_of("fragile", handler.planned_units(PreviousScan())))
    with spark_session(chosen, environment=os.environ, cache_dir=Path(folder) / "cache") as session:
        pipeline = RecordPipeline(lambda: session, functions, work=work, progress=SILENT)
        counts = pipeline.run(units)
        answer = {
            "counts": counts._asdict(),
            "found": [each.urn for each in pipeline.found()],
            "scopes": [each.urn_prefix for each in pipeline.scopes()],
            "problems": [each.reason for each in pipeline.problems()],
        }
    sys.stdout.write(json.dumps(answer))
