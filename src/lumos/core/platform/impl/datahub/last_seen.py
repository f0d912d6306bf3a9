"""What was found of datasets when they were last asked for, until they are written."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import TYPE_CHECKING

from lumos.core.platform.impl.datahub.client import Held

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST = 2_000
"""More than a sync looks up ahead of what it writes."""


class LastSeen:
    """Remembers a bounded number of datasets, also of those that were not there."""

    def __init__(self, ask: Callable[[Sequence[str]], Iterable[Held]]) -> None:
        self._ask = ask
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._lock = Lock()

    def look(self, urns: Sequence[str]) -> list[Held]:
        """Ask for datasets and return those that are there."""
        found = {held.urn: held for held in self._ask(urns)}
        with self._lock:
            for urn in urns:
                self._held.pop(urn, None)
                self._held[urn] = found.get(urn) or Held(urn, {}, {})
            while len(self._held) > _MOST:
                self._held.popitem(last=False)
        return [*found.values()]

    def of(self, urns: Sequence[str]) -> list[Held]:
        """Return what was found of datasets, asking anew only for those that are forgotten."""
        with self._lock:
            known = {urn: self._held[urn] for urn in urns if urn in self._held}
        if forgotten := [urn for urn in urns if urn not in known]:
            known |= {held.urn: held for held in self._ask(forgotten)}
        return [known[urn] for urn in urns if urn in known]
