"""What each catalog was last sent, by target, kind and name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.models.base import sha256_of
from lumos.core.store.checksums import SYNC_STATES, NoteDamage, refuse_damage, whole_rows
from lumos.core.store.documents import (
    LONGEST_KEY,
    as_moment,
    checked_key,
    stored_object,
    stored_text,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.store.database import StateDatabase
    from lumos.core.store.engine import Row, SqlValue

FORMER_NAME = "former_name"
"""The kind of rows with the URN under which a target has a dataset that was renamed here."""
_PAGE = 1_000
_KEPT_CHARACTERS = 400
"""So many of a name that is too long: with four bytes each, they fit into an index."""
WHOLE_NAME = "whole_name"
_AT_A_TIME = 200
_CHECKED = ", ".join(name for name in SYNC_STATES.columns if name != "name")
_PUT = """
INSERT INTO sync_states (target, kind, name, hash, kept, updated_at, checksum)
VALUES (:target, :kind, :name, :hash, :kept, :updated_at, :checksum)
ON CONFLICT (target, kind, name) DO UPDATE SET
    hash = excluded.hash, kept = excluded.kept, updated_at = excluded.updated_at,
    checksum = excluded.checksum
"""


class SentState(NamedTuple):
    """What a catalog acknowledged of one thing."""

    name: str
    hash: str
    kept: dict[str, JsonValue] | None = None
    """The parts that people may change there, as they were sent."""


class SyncStates:
    """The states of one target; nothing counts as sent that it did not acknowledge."""

    def __init__(
        self, database: StateDatabase, target: str, *, lease: StateDatabase | None = None
    ) -> None:
        """Keep the states of a target; `lease` is the database whose lease a sync needs."""
        self._database = database
        self._target = target
        self._lease = lease or database

    def require_lease(self) -> None:
        """Refuse to send anything once this process has lost the lease of its run.

        Raises:
            LeaseLostError: it has ended; another process may be sending.
        """
        if self._lease.fence is not None:
            self._lease.fence.require()

    def hashes(self, kind: str, names: Sequence[str]) -> dict[str, str]:
        """Return what was sent last of some things; those that never were are left out."""
        found = {row.text("name"): row.text("hash") for row in self._rows("hash", kind, names)}
        return {name: found[key] for name in names if (key := state_key(name)) in found}

    def kept(self, kind: str, name: str) -> dict[str, JsonValue] | None:
        """Return the parts of a thing that were sent last, if it was ever sent.

        Raises:
            DamagedDocumentError: they are not what was written.
        """
        rows = [*self._rows(_CHECKED, kind, (name,))]
        for row in rows:
            SYNC_STATES.require(row)
        return _parts(rows[0]) if rows else None

    def kept_of(
        self, kind: str, names: Sequence[str], *, damaged: NoteDamage = refuse_damage
    ) -> dict[str, dict[str, JsonValue]]:
        """Return the parts of some things that were sent last, by name.

        `damaged` is called with the error of each damaged row; the others are returned.
        """
        rows = whole_rows(self._rows(_CHECKED, kind, names), SYNC_STATES, damaged)
        found = ((row.text("name"), _parts(row)) for row in rows)
        return {name: parts for name, parts in found if parts is not None}

    def _rows(self, columns: str, kind: str, names: Sequence[str]) -> Iterator[Row]:
        for start in range(0, len(names), _AT_A_TIME):
            some = names[start : start + _AT_A_TIME]
            marks = {f"n{place}": state_key(name) for place, name in enumerate(some)}
            yield from self._database.query(
                f"SELECT name, {columns} FROM sync_states "  # noqa: S608
                "WHERE target = :target AND kind = :kind "
                f"AND name IN ({', '.join(f':{mark}' for mark in marks)})",
                {"target": self._target, "kind": kind, **marks},
            )

    def names(self, kind: str) -> Iterator[str]:
        """Yield the names of all that was ever sent and not removed, in a fixed order."""
        after = ""
        while True:
            rows = self._database.query(
                "SELECT name, CASE WHEN length(name) > :longest THEN kept END AS kept "
                "FROM sync_states WHERE target = :target AND kind = :kind "
                "AND name > :after ORDER BY name LIMIT :limit",
                {
                    "target": self._target,
                    "kind": kind,
                    "after": after,
                    "limit": _PAGE,
                    "longest": _KEPT_CHARACTERS,
                },
            )
            if not rows:
                return
            yield from map(_whole_name, rows)
            after = rows[-1].text("name")

    def former_names(self) -> dict[str, str]:
        """Return the URNs under which the target has renamed datasets, by their present URNs."""
        rows = self._database.query(
            "SELECT name, hash FROM sync_states WHERE target = :target AND kind = :kind",
            {"target": self._target, "kind": FORMER_NAME},
        )
        return {row.text("name"): row.text("hash") for row in rows}

    def put(self, kind: str, states: Iterable[SentState], *, at: datetime) -> None:
        """Keep what was acknowledged, all of it or nothing."""
        moment = as_moment(at)
        rows: Iterator[dict[str, SqlValue]] = (
            {
                "target": self._target,
                "kind": kind,
                "name": checked_key(state.name if state.kept else state_key(state.name)),
                "hash": state.hash,
                "kept": None if (kept := _kept(state)) is None else stored_text(kept),
                "updated_at": moment,
            }
            for state in states
        )
        checked = ({**row, "checksum": SYNC_STATES.checksum(row)} for row in rows)
        self._database.execute_many(_PUT, checked)

    def forget(self, kind: str, names: Iterable[str]) -> None:
        """Forget what the target no longer has."""
        self._database.execute_many(
            "DELETE FROM sync_states WHERE target = :target AND kind = :kind AND name = :name",
            ({"target": self._target, "kind": kind, "name": state_key(name)} for name in names),
        )


def state_key(name: str) -> str:
    """Return what a name is stored under; the name of a lineage edge may be too long for an index.

    Such a name is cut and ends in its digest, and is kept whole beside it.
    """
    if len(name.encode("utf-8", "replace")) <= LONGEST_KEY:
        return name
    return f"{name[:_KEPT_CHARACTERS]}~{sha256_of(name)}"


def _kept(state: SentState) -> dict[str, JsonValue] | None:
    if state.kept is None and state_key(state.name) != state.name:
        return {WHOLE_NAME: state.name}
    return state.kept


def _parts(row: Row) -> dict[str, JsonValue] | None:
    text = row.optional_text("kept")
    kept = None if text is None else stored_object(text)
    return None if kept is None or WHOLE_NAME in kept else kept


def _whole_name(row: Row) -> str:
    text = row.optional_text("kept")
    whole = stored_object(text).get(WHOLE_NAME) if text is not None else None
    return whole if isinstance(whole, str) else row.text("name")
