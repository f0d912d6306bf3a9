"""Which Spark properties a session gets: what Lumos needs, what it prefers, what the user says."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import JsonValue

from lumos.core.errors import ConfigurationError

if TYPE_CHECKING:
    from lumos.spark.settings import SparkSettings

TASKS_PER_CORE = 4

_LOCAL = re.compile(r"local(?:\[(?P<cores>\*|\d+)(?:,\d+)?\])?$")
_COLLECTOR = re.compile(r"-XX:[+]Use\w+GC\b")
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_JAVA_OPTION_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")

DRIVER_JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
_EXTRA_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

# Keys with another home in the settings file; two places would leave it open which one counts.
_OWN_SETTINGS = {
    "spark.app.name": "app_name",
    "spark.driver.memory": "driver_memory",
    "spark.master": "master",
    "spark.remote": "remote",
}
# What the stages rely on: another value would change what Lumos writes, or nothing would run.
_FIXED = {
    "spark.api.mode": "classic",
    "spark.sql.session.timeZone": "UTC",
    "spark.submit.deployMode": "client",
}
_PAGES = "spark.ui.enabled"
_AUTHENTICATE = "spark.authenticate"
_SECRET_OPTION = "spark.authenticate.secret"  # noqa: S105 - a name
# A process that connects to the driver must know a secret. With AES in place of DIGEST-MD5 it costs
# nothing more: on a local master nobody ever connects.
_AUTHENTICATED = {
    _AUTHENTICATE: "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.saslFallback": "false",
}
_RUNTIME = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}


def is_local(master: str) -> bool:
    """Return whether a master runs everything inside the driver's own JVM."""
    return _LOCAL.match(master) is not None


def _is_started_here(master: str) -> bool:
    """Return whether Lumos starts all of Spark: `local[4]`, or `local-cluster[2,1,1024]`."""
    return master.startswith("local")


def is_authenticated(settings: SparkSettings) -> bool:
    """Return whether these settings let Spark's ports answer only those who know a secret."""
    return _is_started_here(settings.master) or user_options(settings).get(_AUTHENTICATE) == "true"


def exposures(settings: SparkSettings) -> list[str]:
    """Say, a line each, which settings let others read what Spark handles.

    What is set elsewhere, such as in a `spark-defaults.conf`, is not known here. Of a Spark Connect
    server nothing is known.

    Raises:
        ConfigurationError: see `user_options`.
    """
    if settings.remote is not None:
        return []
    found = []
    if not is_authenticated(settings):
        found.append(
            f"spark.conf does not turn on {_AUTHENTICATE} for {settings.master}:"
            " anyone who reaches Spark's ports can read its data"
        )
    if user_options(settings).get(_PAGES) == "true":
        found.append(f"{_PAGES} is on: Spark's pages ask nobody for a password")
    return found


def is_on_this_machine(master: str) -> bool:
    """Return whether a master and its workers are reached without leaving this machine."""
    return master.startswith("local") or (
        master.startswith("spark://")
        and all(host in _LOOPBACK for host, _ in standalone_addresses(master))
    )


def standalone_addresses(master: str) -> list[tuple[str, int]]:
    """Return the hosts and ports of a `spark://` master; there are several when one is a stand-by.

    Raises:
        ConfigurationError: a host or a port is missing.
    """
    addresses = []
    for place in master.removeprefix("spark://").split(","):
        try:
            parts = urlsplit(f"spark://{place}")
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        if not host or port is None:
            raise ConfigurationError(
                "spark.master is not the address of a standalone master",
                hint="write it as spark://HOST:PORT",
            )
        addresses.append((host, port))
    return addresses


def user_options(settings: SparkSettings) -> dict[str, str]:
    """Return the properties of `spark.conf` as the text that Spark takes.

    Raises:
        ConfigurationError: a property is none of Spark's, has a home elsewhere in the settings, or
            would break what the stages rely on. The message names it and never shows its value.
    """
    options = {name: _text(name, value) for name, value in settings.conf.items()}
    for name, value in options.items():
        if not name.startswith("spark."):
            raise ConfigurationError(
                f"spark.conf: {name} is no Spark property", hint="their names begin with spark."
            )
        if own := _OWN_SETTINGS.get(name):
            raise ConfigurationError(
                f"spark.conf: {name} has a separate setting", hint=f"set spark.{own} instead"
            )
        fixed = _FIXED.get(name)
        if name == _AUTHENTICATE and _is_started_here(settings.master) and not settings.remote:
            fixed = "true"
        if fixed is not None and value != fixed:
            raise ConfigurationError(
                f"spark.conf: {name} must stay {fixed}", hint=f"remove {name} from spark.conf"
            )
    return options


def runtime_options(settings: SparkSettings) -> dict[str, str]:
    """Return the properties that can be set on a session that already runs, and are needed there.

    Raises:
        ConfigurationError: see `user_options`.
    """
    user = user_options(settings)
    written = {name: value for name, value in user.items() if name.startswith("spark.sql.")}
    return _RUNTIME | written


def driver_options(
    settings: SparkSettings,
    *,
    folder: Path,
    java_options: tuple[str, ...],
    environment: Mapping[str, str],
) -> dict[str, str]:
    """Return every property of a session whose driver is a JVM of this process.

    Args:
        settings: the user's; its `conf` wins over everything that is not fixed.
        folder: a folder of the session's own, for what Spark leaves behind.
        java_options: flags for the JVM, such as those of the class archive.
        environment: may hold Java options that ours must agree with.

    Raises:
        ConfigurationError: see `user_options`.
    """
    user = user_options(settings)
    options = {
        **_FIXED,
        **_RUNTIME,
        "spark.app.name": settings.app_name,
        "spark.executorEnv.PYDANTIC_DISABLE_PLUGINS": "__all__",  # looking for them takes time
        "spark.master": settings.master,
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        _PAGES: "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if settings.driver_memory:
        options["spark.driver.memory"] = settings.driver_memory
    if _is_started_here(settings.master):
        options |= _AUTHENTICATED
        if not is_local(settings.master):  # on `local` Spark makes a secret, which is nowhere else
            options[_SECRET_OPTION] = secrets.token_urlsafe(32)
    if is_on_this_machine(settings.master):
        options["spark.driver.bindAddress"] = "127.0.0.1"
        options["spark.driver.host"] = "127.0.0.1"
    if cores := _cores(settings.master):
        tasks = str(cores * TASKS_PER_CORE)
        options["spark.sql.leafNodeDefaultParallelism"] = tasks
        options["spark.sql.shuffle.partitions"] = tasks
    theirs = [user.get(DRIVER_JAVA_OPTIONS, ""), user.get(_EXTRA_JAVA_OPTIONS, "")]
    theirs += [environment.get(name, "") for name in _JAVA_OPTION_VARIABLES]
    ours = list(java_options)
    if any(_COLLECTOR.search(text) for text in theirs):
        # A JVM with two collectors set does not start.
        ours = [option for option in ours if not _COLLECTOR.match(option)]
    options |= user
    options[DRIVER_JAVA_OPTIONS] = " ".join([*ours, theirs[0]]).strip()
    return options


def _cores(master: str) -> int | None:
    """Return how many tasks a local master runs at once; None where only the cluster knows."""
    found = _LOCAL.match(master)
    if found is None:
        return None
    if found["cores"] == "*":
        # A process may be bound to fewer cores than the machine has.
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return int(found["cores"] or 1)


def _text(name: str, value: JsonValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise ConfigurationError(
        f"spark.conf: {name} must be text, a number, true or false",
        hint="write lists as text with commas",
    )
