"""What a long operation tells those who wait: which stage it is in and how far it has come."""

from __future__ import annotations

from typing import Protocol

from typing_extensions import override


class Progress(Protocol):
    """Is told by an operation how far it has come; never fails and never slows it down."""

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


class _Silent(Progress):
    @override
    def stage(self, name: str, *, total: int | None = None, unit: str = "files") -> None:
        pass

    @override
    def advance(self, done: int) -> None:
        pass

    @override
    def note(self, text: str) -> None:
        pass


SILENT: Progress = _Silent()
