"""How files of one dataset differ: in which field, in which partitions, and since when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from pydantic import JsonValue

from lumos.core.changes.text import quoted

if TYPE_CHECKING:
    from lumos.feature.discovery.partitions import RankedPartition

_SECOND = 1_000_000


class FileSpan(NamedTuple):
    """When some files were written, and in which partitions they lie."""

    oldest_us: int | None = None
    newest_us: int | None = None
    first: RankedPartition | None = None
    last: RankedPartition | None = None

    def as_json(self) -> dict[str, JsonValue]:
        """Return what is known of it, for people and for tools."""
        document: dict[str, JsonValue] = {}
        if self.first is not None and self.last is not None:
            document["partitions"] = {"first": self.first.shown, "last": self.last.shown}
        written = {"first": _spelled(self.oldest_us), "last": _spelled(self.newest_us)}
        if all(written.values()):
            document["written"] = dict(written)
        return document

    @property
    def where(self) -> str:
        """The partitions as people read them; empty where there are none."""
        if self.first is None or self.last is None:
            return ""
        first, last = self.first.shown, self.last.shown
        return f" (in {first})" if first == last else f" (from {first} to {last})"


NOWHERE: Final = FileSpan()


def span_of(spans: Iterable[FileSpan]) -> FileSpan:
    """Return the span that holds all of them."""
    every = list(spans)
    return FileSpan(
        min((s.oldest_us for s in every if s.oldest_us is not None), default=None),
        max((s.newest_us for s in every if s.newest_us is not None), default=None),
        min((s.first for s in every if s.first is not None), default=None),
        max((s.last for s in every if s.last is not None), default=None),
    )


def moment_of(microseconds: int) -> datetime | None:
    """Return a file's time; None for one that no calendar holds."""
    try:
        return datetime.fromtimestamp(microseconds / _SECOND, UTC)
    except (OverflowError, OSError, ValueError):  # a clock gone wrong, not a reason to fail
        return None


def _spelled(microseconds: int | None) -> str | None:
    moment = None if microseconds is None else moment_of(microseconds)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z") if moment else None


class DriftKind(StrEnum):
    """How files of one dataset differ."""

    MISSING = "missing"
    WIDENED = "widened"
    CONFLICT = "conflict"


@dataclass(frozen=True)
class Drift:
    """A field in which the files of one dataset differ."""

    path: str
    kind: DriftKind
    files: int
    """How many files differ from the merged schema; of a conflict, from most other files."""
    of: int
    """How many files could have held the field."""
    types: tuple[str, ...] = ()
    """The type in the merged schema, then those of the files that differ."""
    usual: str = ""
    """Of a conflict, the type that most files have."""
    span: FileSpan = NOWHERE
    """When and where the files that differ were written."""

    @property
    def rank(self) -> tuple[str, str, int, int, tuple[str, ...]]:
        return self.path, self.kind.value, self.files, self.of, self.types

    @property
    def message(self) -> str:
        """The drift as people read it."""
        field = f"field {quoted(self.path)}"
        share = f"in {self.files} of {self.of} files{self.span.where}"
        if self.kind is DriftKind.MISSING:
            return f"{field} is missing {share}"
        chosen, *others = self.types
        found = ", ".join(others)
        if self.kind is DriftKind.WIDENED:
            return f"{field} is {found} {share}; {chosen} holds all"
        return (
            f"{field} is {found} {share}, but {self.usual} in the others; only {chosen} holds all"
        )

    def as_json(self) -> dict[str, JsonValue]:
        return {
            "path": self.path,
            "kind": self.kind.value,
            "files": self.files,
            "of": self.of,
            **({"types": list(self.types)} if self.types else {}),
            **({"usual": self.usual} if self.usual else {}),
            **self.span.as_json(),
        }
