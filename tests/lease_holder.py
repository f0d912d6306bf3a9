"""A process that holds the lease to write, and writes a tag for each line that it reads.

python lease_holder.py URL SECONDS [WAIT]
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from lumos.core.errors import LumosError
from lumos.core.store.database import StateDatabase
from lumos.core.store.leases import WRITE_STATE, LeaseRequest, acquire

TAG = "INSERT INTO entities (kind, name, document, updated_at) VALUES ('tag', :name, '{}', '')"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(url: str, seconds: str, wait: str = "0") -> None:
    request = LeaseRequest("ingest of lake", wait=float(wait), seconds=float(seconds))
    with StateDatabase.open(url) as database:
        try:
            lease = acquire(database, WRITE_STATE, request=request, clock=lambda: datetime.now(UTC))
        except LumosError as error:
            _say(f"refused {error.code}")
            return
        with lease:
            _say(f"held {lease.fence}")
            for line in sys.stdin:
                name = line.strip()
                try:
                    if name.startswith("begin "):
                        _write_in_steps(database, name.removeprefix("begin "))
                    else:
                        database.execute(TAG, {"name": name})
                except LumosError as error:
                    _say(f"refused {error.code}")
                else:
                    _say("written")


def _write_in_steps(database: StateDatabase, name: str) -> None:
    """Write, and keep the transaction open until a line says to commit it."""
    with database.transaction():
        database.execute(TAG, {"name": name})
        _say("open")
        for line in sys.stdin:
            if line == "commit\n":
                break
            database.query("SELECT 1")


if __name__ == "__main__":
    main(*sys.argv[1:])
