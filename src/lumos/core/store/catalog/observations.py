"""What was measured of datasets: a series for each dataset, kind and contributor.

A series only grows at its end and is cut at its beginning by a policy. Its order is that of a
number given when a measurement is stored, not of time: a clock that was wrong once spoils no more
than the times that it gave.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.models import Observation, ObservationKind, Urn
from lumos.core.models.facets import OBSERVED_PARTS
from lumos.core.store.checksums import OBSERVATIONS, whole_rows
from lumos.core.store.documents import as_moment, stored_object, stored_text
from lumos.core.store.settings import ObservationSettings
from lumos.core.store.sql_text import as_key, from_key
from lumos.core.store.version_states import packed, unpacked

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models import Contributor
    from lumos.core.models.contribution import Contribution
    from lumos.core.store.checksums import NoteDamage
    from lumos.core.store.database import StateDatabase
    from lumos.core.store.engine import Row, SqlValue

NEVER_TOO_OLD: Final = 30
"""So many of the newest of a series stay however old they are: a clock may have jumped."""
DEFAULT_RETENTION: Final = ObservationSettings()
_KINDS: Final = {path: ObservationKind(path.upper()) for path in OBSERVED_PARTS}
_NONE: Final = "null"
"""The document of one who says that there is nothing to measure."""
_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)
_LAST = f"""
SELECT {", ".join(f"o.{name}" for name in OBSERVATIONS.columns)} FROM observations o
JOIN (SELECT kind, contributor, max(sequence) AS sequence FROM observations
      WHERE urn = :urn GROUP BY kind, contributor) l
ON o.urn = :urn AND o.kind = l.kind AND o.contributor = l.contributor AND o.sequence = l.sequence
"""  # noqa: S608 - names of columns
_PUT = """
INSERT INTO observations (urn, kind, contributor, sequence, at, document, checksum)
VALUES (:urn, :kind, :contributor, :sequence, :at, :document, :checksum)
ON CONFLICT (urn, kind, contributor, sequence) DO UPDATE SET
    at = excluded.at, document = excluded.document, checksum = excluded.checksum
"""
_PRUNE = """
DELETE FROM observations
WHERE urn = :urn AND kind = :kind AND contributor = :contributor
    AND (sequence <= :last OR (sequence <= :old AND at < :oldest))
"""
_SERIES = "WHERE urn = :urn AND kind = :kind AND document IS NOT NULL AND at >= :since"


class _Name(NamedTuple):
    """Which series of a dataset."""

    contributor: str
    kind: ObservationKind

    @property
    def path(self) -> str:
        return self.kind.lower()

    @property
    def is_part(self) -> bool:
        """Whether a part of the dataset shows the latest."""
        return self.path in OBSERVED_PARTS


class _Last(NamedTuple):
    """The end of a series."""

    sequence: int
    at: str
    document: str | None
    """None where the contributor measures it no more."""
    is_whole: bool


class StoredObservation(NamedTuple):
    """A measurement and who made it."""

    contributor: str
    observation: Observation


class ObservationTable:
    """Reads and writes the series of measurements."""

    def __init__(
        self, database: StateDatabase, *, retention: ObservationSettings = DEFAULT_RETENTION
    ) -> None:
        self._database = database
        self._retention = retention

    def joined(self, urn: str, said: Sequence[Contribution]) -> tuple[Contribution, ...]:
        """Return contributions to a dataset together with what their contributors measured last.

        What is damaged is left as it is given.
        """
        last = self._last(urn)
        joined: list[Contribution] = []
        for each in said:
            contributor = as_key(str(each.contributor))
            now = each
            for name, found in last.items():
                if name.contributor == contributor and name.is_part and found.is_whole:
                    now = _with(now, name.path, found)
            joined.append(now)
        return tuple(joined)

    def record(
        self,
        urn: str,
        said: Sequence[Contribution],
        *,
        at: datetime,
        withdraw: bool = True,
        renew: bool = False,
    ) -> None:
        """Append what contributors measured, where it is not what they measured last.

        Args:
            urn: the dataset.
            said: what each contributor says; what it measured has the time of the facet.
            at: the time; no measurement is later.
            withdraw: whether a series ends of which nothing is said.
            renew: whether the same as before counts as new where it was measured later.
        """
        last = self._last(urn)
        now = as_moment(at)
        stated: dict[_Name, tuple[str, str]] = {}
        for each in said:
            contributor = as_key(str(each.contributor))
            for path, value in each.measured.items():
                measured_at = each.at_of(path)
                moment = now if measured_at >= at else as_moment(measured_at)
                stated[_Name(contributor, _KINDS[path])] = moment, stored_text(value)
        for name, (moment, document) in stated.items():
            before = last.get(name)
            is_later = renew and before is not None and before.at < moment
            if before is None or not before.is_whole or before.document != document or is_later:
                self._append(urn, name, moment, document=document, before=before)
        for name, before in last.items() if withdraw else ():
            if name not in stated and name.is_part and before.document is not None:
                self._append(urn, name, now, document=None, before=before)

    def append(
        self, contributor: Contributor, observations: Iterable[Observation], *, at: datetime
    ) -> bool:
        """Append what a contributor measured of one dataset, and return whether any of it is new.

        What is older than the end of its series is known, or comes too late.

        Args:
            contributor: who measured it.
            observations: in ascending order of time.
            at: the time; no measurement is later.
        """
        is_new = False
        for observation in observations:
            name = _Name(as_key(str(contributor)), observation.kind)
            before = self._last(observation.urn).get(name)
            document = stored_text(observation.to_json().get("document", {}))
            moment = as_moment(min(observation.at, at))
            if before is None or not before.is_whole or _is_news(before, moment, document):
                self._append(observation.urn, name, moment, document=document, before=before)
                is_new = True
        return is_new

    def series(
        self,
        urn: str,
        kind: ObservationKind,
        *,
        since: datetime | None = None,
        limit: int,
        damaged: NoteDamage,
    ) -> list[StoredObservation]:
        """Return what was measured of a dataset, newest last.

        Args:
            urn: the dataset.
            kind: what was measured.
            since: only what was measured at this time or later.
            limit: only so many, the newest.
            damaged: is called with the error of each damaged row.
        """
        rows = self._database.query(
            f"{OBSERVATIONS.select()} {_SERIES} ORDER BY at DESC, sequence DESC LIMIT :limit",
            {
                "urn": urn,
                "kind": kind.value,
                "since": as_moment(since) if since else "",
                "limit": limit,
            },
        )
        whole = whole_rows(rows, OBSERVATIONS, damaged)
        every = [(row, _text(row)) for row in reversed(whole)]
        return [_stored(row, text) for row, text in every if text not in (None, _NONE)]

    def forget(self, urn: str) -> None:
        """Forget all that was measured of a dataset."""
        self._database.execute("DELETE FROM observations WHERE urn = :urn", {"urn": urn})

    def _append(
        self, urn: str, name: _Name, at: str, *, document: str | None, before: _Last | None
    ) -> None:
        sequence = before.sequence + 1 if before else 1
        if before and before.at == at:  # two measurements of one moment are one
            sequence = before.sequence
        # A profile has many columns, and a series many profiles.
        content = None if document is None else packed(document.encode())
        row: dict[str, SqlValue] = {
            "urn": urn,
            "kind": name.kind.value,
            "contributor": name.contributor,
            "sequence": sequence,
            "at": at,
            "document": content,
        }
        self._database.execute(_PUT, {**row, "checksum": OBSERVATIONS.checksum(row)})
        if sequence > min(NEVER_TOO_OLD, self._retention.keep_last):
            self._prune(row, sequence)

    def _prune(self, row: Mapping[str, SqlValue], newest: int) -> None:
        rules = self._retention
        end = datetime.fromisoformat(str(row["at"])).astimezone(UTC)
        self._database.execute(
            _PRUNE,
            {
                "urn": row["urn"],
                "kind": row["kind"],
                "contributor": row["contributor"],
                "last": newest - rules.keep_last,
                "old": newest - NEVER_TOO_OLD,
                "oldest": as_moment(end - min(timedelta(days=rules.keep_days), end - _BEGINNING)),
            },
        )

    def _last(self, urn: str) -> dict[_Name, _Last]:
        """Return the ends of the series of a dataset."""
        return dict(_ends(self._database.query(_LAST, {"urn": urn})))


def _ends(rows: Sequence[Row]) -> Iterator[tuple[_Name, _Last]]:
    for row in rows:
        is_whole = OBSERVATIONS.is_whole(row)
        try:
            kind = ObservationKind(str(row["kind"]))
        except ValueError:  # damaged
            continue
        yield (
            _Name(str(row["contributor"]), kind),
            _Last(
                row.integer("sequence"),
                str(row["at"]),
                _text(row) if is_whole else "",
                is_whole,
            ),
        )


def _is_news(before: _Last, moment: str, document: str) -> bool:
    return before.document != document and before.at <= moment


def _with(contribution: Contribution, path: str, last: _Last) -> Contribution:
    """Return a contribution with the end of a series, or without it where the series ended."""
    if last.document is None:
        facets = {name: value for name, value in contribution.facets.items() if name != path}
        return contribution._replace(facets=facets)
    return contribution.measuring(path, _json(last.document), at=_moment(last.at))


def _json(text: str) -> JsonValue:
    return None if text == _NONE else dict(stored_object(text))


def _text(row: Row) -> str | None:
    document = row["document"]
    return unpacked(document) if isinstance(document, bytes) else None


def _stored(row: Row, text: str | None) -> StoredObservation:
    observation = Observation(
        urn=Urn.canonical(row.text("urn")),
        kind=ObservationKind(row.text("kind")),
        at=_moment(row.text("at")),
        document=stored_object(text or "{}"),
    )
    return StoredObservation(from_key(row.text("contributor")), observation)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
