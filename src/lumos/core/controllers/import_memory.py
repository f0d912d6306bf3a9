"""What is remembered of a catalog that others may change and that no transaction here covers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from lumos.core.store.sync_states import SentState, SyncStates

if TYPE_CHECKING:
    from lumos.core.controllers.publishing import Clock
    from lumos.core.store.database import StateDatabase

_UNRECORDED = "unrecorded"
_IMPORTED = "imported"


class ImportMemory:
    """Which datasets were about to be written, and what was imported of others.

    A run may be killed after the catalog has taken a batch and before its versions are kept here.
    What was about to be written is therefore noted before it is sent, and forgotten together with
    the keeping of its versions; what is left of it is looked at by the next run.
    """

    def __init__(self, database: StateDatabase, place: str, *, clock: Clock) -> None:
        """Remember things of the catalog at a place."""
        self._states = SyncStates(database, f"import {place}")
        self._clock = clock

    def expect(self, urns: Iterable[str]) -> None:
        """Note that datasets, or the lineage that leads to them, are about to be written."""
        self._states.put(_UNRECORDED, (SentState(urn, "") for urn in urns), at=self._clock())

    def recorded(self, urns: Iterable[str]) -> None:
        """Forget that datasets were about to be written: what became of them is in the history."""
        self._states.forget(_UNRECORDED, urns)

    def unrecorded(self) -> tuple[str, ...]:
        """Return the datasets that were about to be written when a run was ended."""
        return tuple(self._states.names(_UNRECORDED))

    def marks(self, urns: Sequence[str]) -> dict[str, str]:
        """Return what was kept of datasets by `keep_marks`."""
        return self._states.hashes(_IMPORTED, urns)

    def keep_marks(self, marks: Mapping[str, str]) -> None:
        """Keep what tells that a dataset was imported and looked like this afterwards."""
        self._states.put(
            _IMPORTED, (SentState(urn, mark) for urn, mark in marks.items()), at=self._clock()
        )
