"""Connects to sources to see whether they are there, for as long as somebody is ready to wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lumos.core.errors import LumosError, SourceError
from lumos.feature.ingestion.handlers.factory import HandlerFactory
from lumos.feature.ingestion.records import PreviousScan

if TYPE_CHECKING:
    from lumos.core.settings import SourceEntry


class SourceAttempts:
    """Connects to all sources at once; one that hangs keeps no other from answering."""

    def __init__(self, entries: Iterable[SourceEntry], *, seconds: float) -> None:
        """Begin to connect.

        Args:
            entries: the sources.
            seconds: how long to wait for each of them.
        """
        self._seconds = seconds
        self._attempts = {entry.name: _Attempt(entry) for entry in entries}
        self._deadline = time.monotonic() + seconds

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._attempts)

    def outcome(self, name: str) -> str:
        """Wait for a source, and say what it answered.

        Raises:
            LumosError: why it cannot be reached or read.
        """
        attempt = self._attempts[name]
        attempt.thread.join(max(0.0, self._deadline - time.monotonic()))
        if attempt.thread.is_alive():
            raise SourceError(
                f"it did not answer within {self._seconds:g} s",
                hint="check its address, the network and that it runs",
            )
        if attempt.error is not None:
            raise attempt.error
        return attempt.answer


class _Attempt:
    def __init__(self, entry: SourceEntry) -> None:
        self.answer = ""
        self.error: LumosError | None = None
        self.thread = threading.Thread(
            target=self._run, args=(entry,), name="lumos-doctor", daemon=True
        )
        self.thread.start()

    def _run(self, entry: SourceEntry) -> None:
        try:
            self.answer = reached(entry)
        except LumosError as error:
            self.error = error
        except Exception as error:  # noqa: BLE001 - a driver may raise anything; its words may hold secrets
            self.error = SourceError(f"connecting failed: {type(error).__name__}")


def reached(entry: SourceEntry) -> str:
    """Connect to one source and say what answered; no file and no table is read.

    Raises:
        LumosError: its settings are wrong, it is not there, or it does not let us in.
    """
    handler = HandlerFactory.get_handler(entry)
    places = []
    for storage in handler.storages():
        opened = storage.open()
        opened.check()
        places.append(opened.shown(b""))
    if places:
        return f"{', '.join(places)} can be listed"
    scanner = handler.scanner()
    units = len(scanner.planned_units(PreviousScan())) if scanner is not None else 0
    return f"it answers, {units:,} {'part' if units == 1 else 'parts'} to scan"
