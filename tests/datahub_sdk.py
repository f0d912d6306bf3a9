"""DataHub's own code for tests, which runs apart from Lumos: see `datahub_oracle.py`."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import orjson
from pydantic import JsonValue

from oracle_environments import oracle_python

_ORACLE = Path(__file__).with_name("datahub_oracle.py")
_QUIET = {"DATAHUB_TELEMETRY_ENABLED": "false", "PYTHONWARNINGS": "ignore"}


def asked(wanted: str, *arguments: str, lines: Iterable[JsonValue] = ()) -> list[JsonValue]:
    """Return what DataHub's code answers, one document for each line."""
    given = b"".join(orjson.dumps(line) + b"\n" for line in lines)
    with tempfile.TemporaryDirectory() as home:  # nothing of whoever runs it is read or written
        done = subprocess.run(
            [oracle_python("datahub"), str(_ORACLE), wanted, *arguments],
            input=given,
            env={**os.environ, **_QUIET, "HOME": home},
            capture_output=True,
            check=False,
            timeout=600,
        )
    if done.returncode:
        raise AssertionError(done.stderr.decode()[-2000:])
    return [orjson.loads(line) for line in done.stdout.splitlines()]


def verdicts(aspects: Iterable[tuple[str, JsonValue]]) -> list[JsonValue]:
    """Return what the schema classes find wrong with each aspect; None where it is valid."""
    lines: list[JsonValue] = [{"aspect": name, "value": value} for name, value in aspects]
    found = asked("judge", lines=lines)
    assert len(found) == len(lines)
    return found


def read_by_lite(folder: Path, entities: Iterable[tuple[str, str, JsonValue]]) -> list[JsonValue]:
    """Put (URN, aspect, value) into a lite store by DataHub's file source; return what it tells."""
    proposals = [
        {
            "entityType": urn.split(":")[2],
            "entityUrn": urn,
            "changeType": "UPSERT",
            "aspectName": name,
            "aspect": {"json": value},
        }
        for urn, name, value in entities
    ]
    file = folder / "proposals.json"
    file.write_bytes(orjson.dumps(proposals))
    return asked("lite", str(file))
