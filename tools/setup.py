"""Make `.venv` from the lock: the whole of `make setup`, with nothing but the standard library.

pip installs a pinned uv, uv installs the rest; both check hashes. uv does not read pip's own
configuration, so an index, mirror or certificate configured for pip is handed on to it.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv"
PYTHON = ENVIRONMENT / "bin" / "python"
STAMP = ENVIRONMENT / ".lumos-setup"
# A network that fails for a moment is no reason to give up; what the environment says wins.
PATIENCE = {
    "PIP_DEFAULT_TIMEOUT": "60",
    "PIP_RETRIES": "10",
    "UV_HTTP_RETRIES": "10",
    "UV_HTTP_TIMEOUT": "300",
}
# pip's name, uv's variable, and what stands between several values.
UV_NAMES = {
    "cert": ("SSL_CERT_FILE", ""),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "index-url": ("UV_DEFAULT_INDEX", ""),
    "proxy": ("ALL_PROXY", ""),
    "timeout": ("UV_HTTP_TIMEOUT", ""),
    "trusted-host": ("UV_INSECURE_HOST", " "),
}


def main() -> None:
    """Create the environment if it is missing or broken, then bring it to the lock."""
    if not _fits(PYTHON):
        print(f"setup: creating .venv with Python {sys.version.split()[0]}", flush=True)
        venv.create(ENVIRONMENT, with_pip=True, clear=True)
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    print("setup: installing the locked dependencies", flush=True)
    _run([*pip, "install", "--require-hashes", "-r", str(ROOT / "tools" / "bootstrap.lock")])
    uv = [str(ENVIRONMENT / "bin" / "uv"), "pip"]
    settings = {**uv_settings(_pip_settings(), dict(os.environ)), "VIRTUAL_ENV": str(ENVIRONMENT)}
    lock = str(ROOT / "requirements.lock")
    # Compiled here, since where PYTHONDONTWRITEBYTECODE is set every start would compile anew.
    sync = ["sync", "--quiet", "--require-hashes", "--compile-bytecode"]
    _run([*uv, *sync, "--build-constraints", lock, lock], settings)
    editable = ["install", "--quiet", "--no-deps", "--no-build-isolation", "-e", str(ROOT)]
    _run([*uv, *editable], settings)
    _run([str(PYTHON), "-m", "compileall", "-q", str(ROOT / "src")])
    STAMP.touch()


def uv_settings(pip_settings: dict[str, str], environment: dict[str, str]) -> dict[str, str]:
    """Return pip's settings under uv's names; what is set for uv already is left alone."""
    settings: dict[str, str] = {}
    for name, (variable, separator) in UV_NAMES.items():
        if name in pip_settings and variable not in environment:
            value = pip_settings[name].strip()
            settings[variable] = separator.join(value.split()) if separator else value
    return settings


def _pip_settings() -> dict[str, str]:
    # Lines such as global.index-url='…' and :env:.index-url='…'; later ones take precedence.
    command = [str(PYTHON), "-m", "pip", "config", "list"]
    listed = subprocess.run(command, check=False, capture_output=True, text=True).stdout
    settings: dict[str, str] = {}
    for line in listed.splitlines():
        key, separator, value = line.partition("=")
        section, _, name = key.rpartition(".")
        if separator and section in {"global", "install", ":env:"}:
            settings[name.removeprefix("default-")] = str(ast.literal_eval(value))
    return settings


def _fits(python: Path) -> bool:
    """Return whether an environment is there, whole and new enough."""
    if not python.exists():
        return False
    check = "import pip, sys; sys.exit(sys.version_info < (3, 11))"
    process = subprocess.run([str(python), "-c", check], check=False, capture_output=True)
    return process.returncode == 0


def _run(command: list[str], settings: dict[str, str] | None = None) -> None:
    environment = {**PATIENCE, **os.environ, **(settings or {})}
    result = subprocess.run(command, check=False, env=environment)
    if result.returncode:
        print(f"setup: failed: {' '.join(command)}", file=sys.stderr)
        sys.exit(result.returncode)


if __name__ == "__main__":
    main()
