"""A first `lumos ingest` against DataHub's file source, whole commands on the same lake.

Run: python benchmarks/peer_datahub.py --datahub ENVIRONMENT/bin/datahub [--datasets N]
     [--files-each N] [--rounds N] [--warm]

DataHub needs an environment of its own, as its dependencies do not go with ours:
    uv venv ENVIRONMENT && uv pip install --python ENVIRONMENT/bin/python 'acryl-datahub[s3]'
Without --datahub nothing is measured. DataHub opens ONE file of each dataset, without profiling,
and writes its metadata to a file; Lumos opens EVERY file, publishes to its own catalog and stores a
snapshot. With --files-each 1 both open the same number of files. With --warm, Lumos runs in a
session that is there, as with `lumos engine`, and what DataHub takes for a lake of one file is
taken off its time: the work of both without their starts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from lake import LakeSize, make_lake
from lumos.spark.class_archive import trainer_command
from lumos.spark.java import find_java
from process_times import ProcessTimes
from scan_lake import Project, Spent, Stages, command, middle, warm_session

WARM_UP = 3
"""The JVM gets faster for some rounds."""
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


def compare_warm(
    datahub: Path, folder: Path, *, lake: Path, rounds: int, times: ProcessTimes
) -> None:
    """Measure the work of both without their starts, and print it."""
    one_file = folder / "one-file"
    make_lake(one_file, LakeSize(1, 1))
    theirs: list[float] = []
    ours: list[float] = []
    with warm_session(folder / "cache") as session:
        for number in range(WARM_UP + rounds):
            begin = time.perf_counter()
            Project(folder / f"warm-{number}", lake, session=session).ingest(Stages(times))
            taken = time.perf_counter() - begin
            if number < WARM_UP:
                continue
            ours.append(taken)
            begin = time.perf_counter()
            run_datahub(datahub, folder, lake=one_file)
            started = time.perf_counter()
            run_datahub(datahub, folder, lake=lake)
            theirs.append(time.perf_counter() - started - (started - begin))
    datahub_seconds, seconds = median(theirs), median(ours)
    print(
        f"  without starts: DataHub {datahub_seconds:.1f} s, lumos {seconds:.1f} s: "
        f"{datahub_seconds / seconds:.1f} x as fast"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--datahub", type=Path, help="the command of DataHub's own environment")
    parser.add_argument("--datasets", type=int, default=200)
    parser.add_argument("--files-each", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm", action="store_true", help="without the starts of both, too")
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
        if given.warm:
            compare_warm(given.datahub, folder, lake=lake, rounds=given.rounds, times=times)
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
