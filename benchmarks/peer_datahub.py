"""A first `lumos ingest` against DataHub's file source, whole commands on the same lake.

Run: python benchmarks/peer_datahub.py --datahub ENVIRONMENT/bin/datahub [--datasets N]
     [--files-each N] [--rounds N]

DataHub needs an environment of its own, as its dependencies do not go with ours:
    uv venv ENVIRONMENT && uv pip install --python ENVIRONMENT/bin/python 'acryl-datahub[s3]'
Without --datahub nothing is measured. DataHub opens ONE file of each dataset, without profiling,
and writes its metadata to a file; Lumos opens EVERY file, publishes to its own catalog and stores a
snapshot. With --files-each 1 both open the same number of files.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from diff_engines import ProcessTimes
from lake import LakeSize, make_lake
from lumos.spark.class_archive import trainer_command
from lumos.spark.java import find_java
from scan_lake import Spent, command, middle

QUIET = {"DATAHUB_TELEMETRY_ENABLED": "false", "DATAHUB_SUPPRESS_LOGGING_MANAGER": "1"}


def recipe(folder: Path, lake: Path) -> tuple[Path, Path]:
    """Write a recipe and return it with the place of its output."""
    output = folder / "metadata.json"
    include = f"{lake}/*/{{table}}/dt={{partition[0]}}/*.*"
    document = {
        "source": {
            "type": "s3",
            "config": {
                "platform": "file",
                "path_specs": [{"include": include, "default_extension": "csv"}],
                "profiling": {"enabled": False},
            },
        },
        "sink": {"type": "file", "config": {"filename": str(output)}},
    }
    written = folder / "recipe.json"
    written.write_text(json.dumps(document))
    return written, output


def run_datahub(datahub: Path, folder: Path, *, lake: Path) -> int:
    """Run the recipe and return how many datasets have a schema with columns afterwards."""
    written, output = recipe(folder, lake)
    output.unlink(missing_ok=True)
    done = subprocess.run(
        [str(datahub), "ingest", "run", "-c", str(written)],
        check=False,
        capture_output=True,
        env={**os.environ, **QUIET, "HOME": str(folder)},
    )
    if not output.exists():
        raise RuntimeError(done.stderr.decode(errors="replace")[-2_000:])
    return len(described(json.loads(output.read_text())))


def described(found: list[dict[str, object]]) -> set[str]:
    """Return the datasets with columns."""
    return {
        str(each["entityUrn"])
        for each in found
        if each.get("aspectName") == "schemaMetadata" and '"fieldPath"' in json.dumps(each)
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--datahub", type=Path, help="the command of DataHub's own environment")
    parser.add_argument("--datasets", type=int, default=200)
    parser.add_argument("--files-each", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if given.datahub is None:
        print("DataHub needs an environment of its own: see --help; nothing is measured")
        return
    times = ProcessTimes()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lake, cache = folder / "lake", folder / "cache"
        make_lake(lake, LakeSize(given.datasets, given.files_each))
        trainer = trainer_command(find_java(os.environ), cache_dir=cache / "lumos")
        subprocess.run(trainer, check=True, capture_output=True)
        ingest = command(folder, lake, cache=cache)
        taken: dict[str, list[Spent]] = {"DataHub": [], "lumos ingest": []}
        schemas = 0
        for _ in range(given.rounds):
            wall, cpu = time.perf_counter(), times.seconds()
            schemas = run_datahub(given.datahub, folder, lake=lake)
            between, used = time.perf_counter(), times.seconds()
            ingest()
            taken["DataHub"].append(Spent(between - wall, used - cpu))
            taken["lumos ingest"].append(
                Spent(time.perf_counter() - between, times.seconds() - used)
            )
    datahub = middle(taken["DataHub"])
    files = given.datasets * given.files_each
    print(f"{given.datasets:,} datasets, {files:,} files, load average {os.getloadavg()[0]:.1f}")
    print(f"  DataHub opens one file per dataset and gives {schemas:,} datasets columns")
    for contender, spent in taken.items():
        each = middle(spent)
        print(
            f"  {contender:<14}{each.wall:7.1f} s {each.cpu:7.1f} s CPU"
            f"   {datahub.wall / each.wall:5.2f} x as fast, {datahub.cpu / each.cpu:5.2f} by CPU"
        )


if __name__ == "__main__":
    main()
