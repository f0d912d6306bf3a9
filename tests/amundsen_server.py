"""The real Amundsen: its metadata service on MariaDB, for tests of the service tier.

MariaDB is Debian's; the service is from PyPI and runs in an environment of its own, as its pins fit
nobody else.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import sqlalchemy

from oracle_environments import made_environment
from ports import free_port
from s3_server import wait_for

_PACKAGES = (
    "amundsen-metadata==3.13.0",
    "amundsen-rds==0.0.8",
    "pymysql",
    "SQLAlchemy<1.4",
    "alembic<1.8",
    "setuptools<70",
)
_DATABASE = "amundsen"
_PASSWORD = "x"
READER = "reader"
"""A user of the database who may read it, and write nothing."""
# MariaDB refuses to run as root; this account exists on every Linux and owns nothing.
_ATTEMPTS = 3
_ACCOUNT_FOR_ROOT = "nobody"
_QUICK = ("--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M")


class AmundsenServer(NamedTuple):
    """Where the metadata service answers, and the database behind it."""

    url: str
    database_url: str
    is_named: bool = False

    @property
    def readers_url(self) -> str:
        """The database for a user who may only read; one that was named has no such user."""
        if self.is_named:
            pytest.skip("an Amundsen that is named has no user for this")
        return self.database_url.replace("//lumos:", f"//{READER}:")


def require_empty(server: AmundsenServer) -> None:
    """Fail where an Amundsen that was named holds something: these tests remove all that is in it.

    So they remove nothing that they did not make.
    """
    engine = sqlalchemy.create_engine(server.database_url)
    try:
        with engine.connect() as connection:
            held = {
                table: connection.execute(sqlalchemy.text(f"SELECT COUNT(*) FROM {table}")).scalar()  # noqa: S608
                for table in ("database_metadata", "users", "tag")
            }
    finally:
        engine.dispose()
    if found := ", ".join(f"{count:,} in {table}" for table, count in held.items() if count):
        pytest.fail(f"the Amundsen that was named is not empty: rows {found}; name an empty one")


@contextmanager
def running_amundsen() -> Iterator[AmundsenServer]:
    """Run MariaDB with Amundsen's own tables, and the metadata service on it."""
    programs = {name: shutil.which(name) for name in ("mariadbd", "mariadb-install-db", "mariadb")}
    if None in programs.values():
        pytest.fail("MariaDB is not installed; run: make services")
    flask = _installed()
    # Not below pytest's own folder: the path of a Unix socket may not exceed 107 bytes.
    with (
        tempfile.TemporaryDirectory(prefix="lumos-mariadb-") as folder,
        _mariadb(Path(folder)) as port,
    ):
        database_url = f"mysql+pymysql://lumos:{_PASSWORD}@127.0.0.1:{port}/{_DATABASE}"
        environment = {
            **os.environ,
            "FLASK_APP": "metadata_service.metadata_wsgi",
            "METADATA_SVC_CONFIG_MODULE_CLASS": "metadata_service.config.MySQLConfig",
            "SQLALCHEMY_DATABASE_URI": f"{database_url}?charset=utf8mb4",
        }
        made = [*flask, "rds", "initdb"]
        subprocess.run(made, env=environment, check=True, capture_output=True, timeout=600)
        listening = free_port()
        command = [*flask, "run", "--host", "127.0.0.1", "--port", str(listening)]
        with _running(command, listening, log=Path(folder, "service"), env=environment):
            yield AmundsenServer(f"http://127.0.0.1:{listening}", database_url)


@contextmanager
def _mariadb(folder: Path) -> Iterator[int]:
    data, port = folder / "data", free_port()
    account = [f"--user={_ACCOUNT_FOR_ROOT}"] if os.geteuid() == 0 else []
    _make_database(data, account)
    socket = data / "s.sock"
    command = ["mariadbd", "--no-defaults", *account, *_QUICK, f"--datadir={data}"]
    command += [f"--port={port}", "--bind-address=127.0.0.1", f"--socket={socket}"]
    command += [f"--pid-file={data / 'pid'}", "--character-set-server=utf8mb4"]
    with _running(command, port, log=folder / "mariadb", env=dict(os.environ)):
        statements = (
            f"CREATE DATABASE {_DATABASE} CHARACTER SET utf8mb4;"
            f"CREATE USER lumos@'127.0.0.1' IDENTIFIED BY '{_PASSWORD}';"
            f"GRANT ALL ON {_DATABASE}.* TO lumos@'127.0.0.1';"
            f"CREATE USER {READER}@'127.0.0.1' IDENTIFIED BY '{_PASSWORD}';"
            f"GRANT SELECT ON {_DATABASE}.* TO {READER}@'127.0.0.1';"
        )
        client = ["mariadb", "--no-defaults", f"--socket={socket}", "--user=root"]
        subprocess.run([*client, "--execute", statements], check=True, timeout=600)
        yield port


def _make_database(data: Path, account: list[str]) -> None:
    """Make an empty database; on a busy machine the program that does it fails now and then."""
    install = ["mariadb-install-db", "--no-defaults", *account, f"--datadir={data}"]
    install += ["--auth-root-authentication-method=normal", "--skip-test-db"]
    said = ""
    for _ in range(_ATTEMPTS):
        data.mkdir()
        if account:
            data.parent.chmod(0o755)
            shutil.chown(data, _ACCOUNT_FOR_ROOT)
        done = subprocess.run(install, check=False, capture_output=True, text=True, timeout=600)
        if done.returncode == 0:
            return
        said = f"{done.stdout}\n{done.stderr}"
        shutil.rmtree(data)
    pytest.fail(f"MariaDB makes no database: {said[-2000:]}")


@contextmanager
def _running(command: list[str], port: int, *, log: Path, env: dict[str, str]) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env
        )
    try:
        wait_for(port, process)
        yield
    finally:
        process.terminate()
        process.wait(timeout=300)


def _installed() -> list[str]:
    """Return how to start the service's program; it is installed once for each machine."""
    digest = hashlib.sha256(" ".join(_PACKAGES).encode()).hexdigest()[:12]
    return [made_environment(f"amundsen-{digest}", _PACKAGES), "-m", "flask"]
