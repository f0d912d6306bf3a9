"""Damaged logs: no table brings a reader down unseen, and every table has an outcome."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
TABLES = TESTS / "golden" / "tables"
FULL_SIZE = os.environ.get("LUMOS_TEST_FULL") == "1"
MUTANTS = 5_000 if FULL_SIZE else 100
NATIVE_CRASHES = {-6, -7, -8, -11}
"""How pyarrow ends the process on some damaged Parquet; the sandbox marks that one table."""


@pytest.mark.parametrize("kind", ["delta", "iceberg", "hudi"])
def test_every_damaged_table_is_read_or_refused(kind: str) -> None:
    tables = sorted(TABLES.glob(f"{kind}*-*"))
    share = MUTANTS // len(tables)
    outcomes: Counter[str] = Counter()
    for table in tables:
        outcomes += outcomes_of(kind, table, share)

    assert outcomes.total() == share * len(tables)
    assert outcomes["read"] > 0
    assert outcomes["refused"] > 0
    assert outcomes["died"] <= MUTANTS // 100


def outcomes_of(kind: str, table: Path, mutants: int) -> Counter[str]:
    """Read so many mutants; a process that a parser ended goes on after the culprit."""
    outcomes: Counter[str] = Counter()
    done = 0
    while done < mutants:
        command = [sys.executable, str(TESTS / "mutant_table_reader.py"), kind, str(table)]
        process = subprocess.run(
            [*command, str(done), str(mutants)],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            env={**os.environ, "PYTHONPATH": str(TESTS)},
        )
        answers = [line.split() for line in process.stdout.splitlines()]
        assert [int(seed) for seed, _ in answers] == list(range(done, done + len(answers)))
        outcomes.update(answer for _, answer in answers)
        done += len(answers)
        if process.returncode:
            culprit = f"mutant {done} of {table.name}"
            assert process.returncode in NATIVE_CRASHES, f"{culprit}:\n{process.stderr[-3000:]}"
            outcomes["died"] += 1
            done += 1
    return outcomes
