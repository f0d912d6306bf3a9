"""Environments of packages that judge payloads in tests and that Lumos shares none with.

Each is made once for each machine from a lock with hashes, `tools/oracles/NAME.lock`, and kept in
the cache under the digest of that lock.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fetching import fetched

_LOCKS = Path(__file__).parents[1] / "tools" / "oracles"
_CACHE = Path.home() / ".cache" / "lumos-tests"


def oracle_python(name: str) -> str:
    """Return an interpreter that has exactly what the lock of an oracle names."""
    lock = _LOCKS / f"{name}.lock"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    wanted = ("--require-hashes", "--no-deps", "--requirement", str(lock))
    return made_environment(f"oracle-{name}-{digest}", wanted)


def made_environment(name: str, wanted: Sequence[str]) -> str:
    """Return the interpreter of an environment; it is whole or not there, also for two at once.

    Programs in it have to be run as modules: it was made in another place than where it lies.
    """
    home = _CACHE / name
    if not home.exists():
        _CACHE.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{home.name}-", dir=_CACHE))
        try:
            _install(wanted, made)
            _kept(made, home)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return str(home / "bin" / "python")


def _install(wanted: Sequence[str], home: Path) -> None:
    uv = str(Path(sys.executable).with_name("uv"))
    venv = [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(home)]
    subprocess.run(venv, check=True, timeout=600)
    python = str(home / "bin" / "python")
    fetched([uv, "pip", "install", "--quiet", "--python", python, *wanted], timeout=1_200)


def _kept(made: Path, home: Path) -> None:
    """Move what was made to its place, unless another run was quicker."""
    try:
        made.rename(home)
    except OSError:
        if not home.exists():
            raise
