"""The progress of a long operation: which stage it is in and how far it has come."""

from __future__ import annotations

from typing import Protocol

from typing_extensions import override

from lumos.core.events import Event, current_run, tell


class Progress(Protocol):
    """Receives from an operation how far it has come; never fails and never slows it down."""

    def stage(self, name: str, *, total: int | None = None, unit: str = "files") -> None:
        """Begin a stage, which ends the one before.

        Args:
            name: what is done in it, e.g. `reading files`.
            total: how many there are to do, where that is known.
            unit: what is counted, in the plural.
        """
        ...

    def advance(self, done: int) -> None:
        """Say how many of the stage are done by now, from its beginning."""
        ...

    def note(self, text: str) -> None:
        """Say in a few words what is being waited for between stages."""
        ...


class EventProgress(Progress):
    """Turns the progress of an operation into events for a display and the log."""

    def __init__(self, display: Progress | None = None) -> None:
        self._display = display

    @override
    def stage(self, name: str, *, total: int | None = None, unit: str = "files") -> None:
        if (run := current_run()) is not None:
            run.begin_phase(name, unit)
        tell(self._hear, "phase.started", phase=name, total=total, unit=unit)

    @override
    def advance(self, done: int) -> None:
        if (run := current_run()) is not None:
            run.advance(done)
        tell(self._hear, "phase.advanced", done=done)

    @override
    def note(self, text: str) -> None:
        tell(self._hear, "waiting", text=text)

    def _hear(self, event: Event) -> None:
        if self._display is not None:
            show(event, self._display)


def show(event: Event, display: Progress) -> None:
    """Let a display show an event of its run."""
    fields = event.fields
    if event.name == "phase.started":
        total = fields["total"]
        display.stage(
            str(fields["phase"]),
            total=total if isinstance(total, int) else None,
            unit=str(fields["unit"]),
        )
    elif event.name == "phase.advanced" and isinstance(done := fields["done"], int):
        display.advance(done)
    elif event.name == "waiting":
        display.note(str(fields["text"]))


SILENT: Progress = EventProgress()
"""Shows nothing; the log hears it."""
