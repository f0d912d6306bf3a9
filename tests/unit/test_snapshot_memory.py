"""Snapshots stream: how much memory a command needs is not decided by how much there is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FULL_SIZE = os.environ.get("LUMOS_TEST_FULL") == "1"
FIELDS_PER_DATASET = 30
MEGABYTE = 1 << 20
# Of the memory that a sorter may use, Python takes some more, and there are two at most.
DATASETS, SORTER_BYTES, LARGEST = (
    (2_000_000 // FIELDS_PER_DATASET, 32 * MEGABYTE, 150 * MEGABYTE)
    if FULL_SIZE
    else (4_000, MEGABYTE, 20 * MEGABYTE)
)


def peak_of(operation: str, folder: Path) -> int:
    command = [sys.executable, str(TESTS / "snapshot_memory.py"), operation]
    options = [str(DATASETS), str(SORTER_BYTES), str(folder)]
    done = subprocess.run([*command, *options], check=True, capture_output=True, text=True)
    return int(done.stdout)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_no_operation_needs_the_size_of_the_snapshot_in_memory(tmp_path: Path) -> None:
    nothing = peak_of("nothing", tmp_path)
    streaming = (
        "catalog_to_document",
        "document_to_folder",
        "unsealed_document_to_folder",
        "validated_document",
        "rehearsed_import",
    )

    needed = {operation: peak_of(operation, tmp_path) - nothing for operation in streaming}

    assert all(peak < LARGEST for peak in needed.values()), needed
    assert (tmp_path / "snapshot.json").stat().st_size > LARGEST
    assert peak_of("whole_in_memory", tmp_path) - nothing > LARGEST, "the measuring notices nothing"
