"""What a source handler hands over: units of work, and records of what it found in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from lumos.core.models import LumosDataset, Urn
from lumos.core.storage.port import printable

if TYPE_CHECKING:
    from lumos.core.errors import LumosError


@dataclass(frozen=True, order=True)
class ScanUnit:
    """A part of a source that one worker scans: a folder, a prefix, a database, a topic set.

    It is small and picklable, because it travels to executors. A handler that needs more than a
    target to find its way makes a frozen subclass.
    """

    target: str
    """In the source's own words; a file name as `os.fsdecode` gives it."""

    @property
    def label(self) -> str:
        """The target as reports show it."""
        return printable(self.target)


@dataclass(frozen=True)
class UnreadableItem:
    """A file, table or topic that exists but could not be read; the others go on."""

    item: str
    error: LumosError
    urn: Urn | None = None
    """The dataset it would have been: it is not removed, only unknown this time."""


@dataclass(frozen=True)
class UnlistedPart:
    """A part of a unit that could not be listed, so nobody knows what lies in it."""

    item: str
    error: LumosError


@dataclass(frozen=True)
class SkippedItem:
    """Something that was seen and left out on purpose."""

    item: str
    reason: str


@dataclass(frozen=True)
class ScanWarning:
    """Something people should know about an item that was read all the same."""

    item: str
    text: str


__all__ = [
    "ScanRecord",
    "ScanUnit",
    "ScanWarning",
    "SkippedItem",
    "UnlistedPart",
    "UnreadableItem",
    "printable",
]

ScanRecord: TypeAlias = LumosDataset | UnreadableItem | UnlistedPart | SkippedItem | ScanWarning
