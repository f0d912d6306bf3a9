"""What datasets of another catalog looked like when they were as an import wanted them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lumos.core.store.sync_states import SentState, SyncStates

if TYPE_CHECKING:
    from lumos.core.run_report import Clock
    from lumos.core.store.database import StateDatabase

_IMPORTED = "imported"


class ImportMarks:
    """Marks of what was imported into one catalog, by the names of the items.

    A repeated import asks a catalog for many datasets at once. An answer that has the mark of the
    last import needs no closer look, also where the catalog cannot keep all that was written.
    """

    def __init__(self, database: StateDatabase, place: str, *, clock: Clock) -> None:
        """Keep marks of the catalog at a place."""
        self.database = database
        self._states = SyncStates(database, f"import {place}")
        self._clock = clock

    def of(self, names: Sequence[str]) -> dict[str, str]:
        """Return the marks of items; those without one are left out."""
        return self._states.hashes(_IMPORTED, names)

    def keep(self, marks: Mapping[str, str]) -> None:
        """Keep marks of items in place of earlier ones."""
        self._states.put(
            _IMPORTED, (SentState(name, mark) for name, mark in marks.items()), at=self._clock()
        )
