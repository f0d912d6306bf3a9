"""The history of datasets: every version, what it looked like, and what had changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.errors import DamagedDocumentError, LumosError, StateError, VersionNotFoundError
from lumos.core.models import Change, DatasetVersion, LumosDataset
from lumos.core.store.checksums import (
    CHANGES,
    PACKED_STATES,
    VERSIONS,
    NoteDamage,
    refuse_damage,
    whole_rows,
)
from lumos.core.store.documents import (
    CLOCK_SLACK,
    END_OF_TIME,
    as_model,
    as_moment,
    checked_key,
    stored_text,
)
from lumos.core.store.sql_text import storable
from lumos.core.store.version_states import packed_state, state_of

if TYPE_CHECKING:
    from lumos.core.store.database import StateDatabase
    from lumos.core.store.engine import Row, SqlValue

_MOST_NAMED = 20
_ALL = 2**31
_STATES_AT_A_TIME = 100
_URNS_AT_A_TIME = 500
# The places of a dataset's versions have no gaps: the newest is the one that none follows.
_NEWEST = """
SELECT v.urn, v.sequence, v.contract_hash, v.document FROM versions v
WHERE NOT EXISTS (SELECT 1 FROM versions n WHERE n.urn = v.urn AND n.sequence = v.sequence + 1)
"""
_NEWEST_CHECKED = _NEWEST.replace("v.document", "v.document, v.version, v.checksum")
_NEWEST_STATES = """
SELECT v.urn, v.sequence, v.version, v.contract_hash, v.document, v.checksum, v.state, v.dataset,
       v.state_checksum
FROM versions v
WHERE NOT EXISTS (SELECT 1 FROM versions n WHERE n.urn = v.urn AND n.sequence = v.sequence + 1)
"""
_SELECT_VERSIONS = VERSIONS.select()
_SELECT_STATES = PACKED_STATES.select()
_SELECT_BOTH = VERSIONS.select(*PACKED_STATES.columns)
_SELECT_CHANGES = CHANGES.select()


class NewEntry(NamedTuple):
    """A version that is to be added, and its place in the history of its dataset."""

    urn: str
    sequence: int
    version: DatasetVersion
    dataset: LumosDataset
    changes: Sequence[Change]


class KnownVersion(NamedTuple):
    """The newest version of a dataset, whose document is read only when it is asked for."""

    urn: str
    sequence: int
    contract_hash: str | None
    """What the state of the version hashes to; not known of versions of an older Lumos."""
    document: str

    @property
    def version(self) -> DatasetVersion:
        """The version; whether it is what was written is checked with its state.

        Its checksum lies behind the state in the row, which costs too much for all of them.

        Raises:
            DamagedDocumentError: it is no version any more.
        """
        try:
            return as_model(DatasetVersion, self.document)
        except LumosError:
            raise DamagedDocumentError(VERSIONS.kind, f"{self.urn} {self.sequence}") from None


class HistoryRepository:
    """Versions of datasets in the state database; what is appended never changes."""

    def __init__(self, database: StateDatabase) -> None:
        self._database = database

    def append(
        self,
        urn: str,
        version: DatasetVersion,
        *,
        dataset: LumosDataset,
        changes: Sequence[Change],
    ) -> None:
        """Add a version as the newest, as part of the caller's transaction if there is one.

        Raises:
            StateError: the dataset already has a version of that number.
        """
        checked_key(urn)
        with self._database.transaction():
            known = self._known(urn)
            if version.version in known:
                raise StateError(f"{urn} already has a version {version.version}")
            entry = NewEntry(urn, len(known) + 1, version, dataset, changes)
            self._insert(entry)

    def append_many(self, entries: Iterable[NewEntry]) -> None:
        """Add many versions at once, whose places are known; all are added or none.

        Raises:
            StateError: a place or number is taken: somebody else added a version meanwhile.
        """
        with self._database.transaction():
            for entry in entries:
                checked_key(entry.urn)
                self._insert(entry)

    def currents(self, urns: Sequence[str]) -> dict[str, KnownVersion]:
        """Return the newest versions of datasets that have any, with a few queries for all."""
        found: dict[str, KnownVersion] = {}
        for some in _chunks(urns):
            names, given = _listed(some)
            rows = self._database.query(f"{_NEWEST} AND v.urn IN ({names})", given)
            found.update((row.text("urn"), _known_version(row)) for row in rows)
        return found

    def currents_after(self, urn: str, *, limit: int, checked: bool = False) -> list[KnownVersion]:
        """Return the next newest versions in ascending order of URN; from the first with `""`.

        Raises:
            DamagedDocumentError: with `checked`, where one is not what was written.
        """
        rows = self._database.query(
            f"{_NEWEST_CHECKED if checked else _NEWEST} AND v.urn > :after "
            "ORDER BY v.urn LIMIT :limit",
            {"after": urn, "limit": limit},
        )
        for row in rows if checked else ():
            VERSIONS.require(row)
        return [_known_version(row) for row in rows]

    def current_states(
        self, urns: Sequence[str], *, damaged: NoteDamage = refuse_damage
    ) -> dict[str, LumosDataset]:
        """Return datasets as they are in their newest versions, with a few queries for all.

        `damaged` is called for each whose version or state is damaged; the others are
        returned.
        """
        states: dict[str, LumosDataset] = {}
        for some in _chunks(urns):
            names, given = _listed(some)
            rows = self._database.query(f"{_NEWEST_STATES} AND v.urn IN ({names})", given)
            whole = whole_rows(whole_rows(rows, VERSIONS, damaged), PACKED_STATES, damaged)
            states.update((row.text("urn"), state_of(row)) for row in whole)
        return states

    def count(self) -> int:
        """Return how many datasets have a version."""
        rows = self._database.query("SELECT count(*) AS n FROM versions WHERE sequence = 1")
        return rows[0].integer("n")

    def versions(
        self, urn: str, *, since: datetime | None = None, limit: int | None = None
    ) -> tuple[DatasetVersion, ...]:
        """Return the versions of a dataset, newest last.

        Args:
            urn: the dataset.
            since: only versions made at this time or later.
            limit: only so many, the newest.
        """
        rows = self._database.query(
            f"{_SELECT_VERSIONS} WHERE urn = :urn AND timestamp >= :since "
            "ORDER BY sequence DESC LIMIT :limit",
            {
                "urn": urn,
                "since": as_moment(since) if since else "",
                "limit": _ALL if limit is None else limit,
            },
        )
        return tuple(map(_version_of, reversed(rows)))

    def current(self, urn: str) -> DatasetVersion | None:
        """Return the newest version of a dataset, if it has any."""
        rows = self._database.query(
            f"{_SELECT_VERSIONS} WHERE urn = :urn ORDER BY sequence DESC LIMIT 1",
            {"urn": urn},
        )
        return _version_of(rows[0]) if rows else None

    def since(
        self, moment: datetime | None, *, limit: int, now: datetime | None = None
    ) -> tuple[int, tuple[tuple[str, DatasetVersion], ...]]:
        """Count the versions of all datasets made after a moment, and return the newest first.

        Args:
            moment: the time; all versions without it.
            limit: how many to return.
            now: versions that are dated after this come last: their clock was wrong.
        """
        given = {"moment": as_moment(moment) if moment else ""}
        count = self._database.query(
            "SELECT count(*) AS n FROM versions WHERE timestamp > :moment", given
        )
        rows = self._database.query(
            f"{_SELECT_VERSIONS} WHERE timestamp > :moment "
            "ORDER BY CASE WHEN timestamp > :now THEN 1 ELSE 0 END, "
            "timestamp DESC, urn, sequence DESC LIMIT :limit",
            {
                **given,
                "limit": limit,
                "now": as_moment(now + CLOCK_SLACK) if now else END_OF_TIME,
            },
        )
        newest = ((row.text("urn"), _version_of(row)) for row in rows)
        return count[0].integer("n"), tuple(newest)

    def dataset_at(self, urn: str, version: str) -> LumosDataset:
        """Return the dataset as it was in a version.

        Raises:
            VersionNotFoundError: there is no such version; the known ones are named.
            DamagedDocumentError: it is not what was written.
        """
        rows = self._database.query(
            f"{_SELECT_STATES} WHERE urn = :urn AND version = :version",
            {"urn": urn, "version": storable(version)},
        )
        if not rows:
            raise self._not_found(urn, version)
        PACKED_STATES.require(rows[0])
        return state_of(rows[0])

    def states(self, urn: str) -> Iterator[tuple[DatasetVersion, LumosDataset]]:
        """Yield every version with the dataset as it was in it, oldest first, a few at a time."""
        after = 0
        while True:
            rows = self._database.query(
                f"{_SELECT_BOTH} "
                "WHERE urn = :urn AND sequence > :after ORDER BY sequence LIMIT :limit",
                {"urn": urn, "after": after, "limit": _STATES_AT_A_TIME},
            )
            for row in rows:
                PACKED_STATES.require(row)
                yield _version_of(row), state_of(row)
            if len(rows) < _STATES_AT_A_TIME:
                return
            after = rows[-1].integer("sequence")

    def changes(self, urn: str, version: str) -> tuple[Change, ...]:
        """Return what a version changed, in the order in which it was given.

        Raises:
            VersionNotFoundError: there is no such version; the known ones are named.
        """
        sequences = self._database.query(
            "SELECT sequence FROM versions WHERE urn = :urn AND version = :version",
            {"urn": urn, "version": storable(version)},
        )
        if not sequences:
            raise self._not_found(urn, version)
        rows = self._database.query(
            f"{_SELECT_CHANGES} WHERE urn = :urn AND sequence = :sequence ORDER BY position",
            {"urn": urn, "sequence": sequences[0].integer("sequence")},
        )
        for row in rows:
            CHANGES.require(row)
        return tuple(as_model(Change, row.text("document")) for row in rows)

    def _insert(self, entry: NewEntry) -> None:
        version = entry.version
        row: dict[str, SqlValue] = {
            "urn": entry.urn,
            "sequence": entry.sequence,
            "version": version.version,
            "cloud_version": storable(version.cloud_version or "") or None,
            "timestamp": as_moment(version.timestamp),
            "document": stored_text(version.to_json()),
            "state": packed_state(entry.dataset),
            "contract_hash": entry.dataset.contract_hash,
        }
        row["checksum"] = VERSIONS.checksum(row)
        row["state_checksum"] = PACKED_STATES.checksum(row)
        self._database.execute(
            "INSERT INTO versions (urn, sequence, version, cloud_version, timestamp, document, "
            "dataset, state, contract_hash, checksum, state_checksum) VALUES (:urn, :sequence, "
            ":version, :cloud_version, :timestamp, :document, '', :state, :contract_hash, "
            ":checksum, :state_checksum)",
            row,
        )
        self._append_changes(entry.urn, entry.sequence, changes=entry.changes)

    def _append_changes(self, urn: str, sequence: int, *, changes: Sequence[Change]) -> None:
        rows: list[dict[str, SqlValue]] = [
            {
                "urn": urn,
                "sequence": sequence,
                "position": position,
                "rule": storable(change.rule),
                "level": change.level.value,
                "document": stored_text(change.to_json()),
            }
            for position, change in enumerate(changes)
        ]
        self._database.execute_many(
            "INSERT INTO changes (urn, sequence, position, rule, level, document, checksum) "
            "VALUES (:urn, :sequence, :position, :rule, :level, :document, :checksum)",
            ({**row, "checksum": CHANGES.checksum(row)} for row in rows),
        )

    def _known(self, urn: str) -> list[str]:
        rows = self._database.query(
            "SELECT version FROM versions WHERE urn = :urn ORDER BY sequence", {"urn": urn}
        )
        return [row.text("version") for row in rows]

    def _not_found(self, urn: str, version: str) -> VersionNotFoundError:
        known = self._known(urn)
        if not known:
            return VersionNotFoundError(
                f"{urn} has no version {version}: it has no history",
                hint="look for the dataset with: lumos search NAME",
            )
        listed = ", ".join(known[-_MOST_NAMED:])
        older = f" and {len(known) - _MOST_NAMED} older" if len(known) > _MOST_NAMED else ""
        return VersionNotFoundError(
            f"{urn} has no version {version}", hint=f"it has {listed}{older}"
        )


def _known_version(row: Row) -> KnownVersion:
    return KnownVersion(
        row.text("urn"),
        row.integer("sequence"),
        row.optional_text("contract_hash"),
        row.text("document"),
    )


def _version_of(row: Row) -> DatasetVersion:
    VERSIONS.require(row)
    return as_model(DatasetVersion, row.text("document"))


def _chunks(urns: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(urns), _URNS_AT_A_TIME):
        yield urns[start : start + _URNS_AT_A_TIME]


def _listed(urns: Sequence[str]) -> tuple[str, dict[str, str]]:
    given = {f"urn_{number}": urn for number, urn in enumerate(urns)}
    return ", ".join(f":{name}" for name in given), given
