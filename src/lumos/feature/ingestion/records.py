"""What a source handler hands over: units of work, and records of what it found in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from lumos.core.models import (
    Domain,
    GlossaryTerm,
    Group,
    Job,
    LineageEdge,
    LumosDataset,
    Observation,
    Tag,
    Urn,
    User,
)
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
class PreviousScan:
    """What the last complete scan of a source left for the next one to plan by."""

    marks: Mapping[str, str] = field(default_factory=dict)
    """The `ScanMark`s that it yielded: a log position, a checksum, a time."""


@dataclass(frozen=True)
class ScanMark:
    """A position or checksum that the next `plan` is given, once this run is published."""

    key: str
    value: str


@dataclass(frozen=True)
class ScannedScope:
    """A part of the URN space that a unit has listed in full.

    Nothing else allows removals: a dataset within the prefix that the same run did not find, and
    that this source found before, is gone. Yield it at the end of a unit, when nothing can fail
    any more.
    """

    urn_prefix: str
    """A URN, such as `lumos://postgres/shop/public`: it and all below it."""


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
    "PreviousScan",
    "ScanMark",
    "ScanRecord",
    "ScanUnit",
    "ScanWarning",
    "ScannedScope",
    "SkippedItem",
    "UnlistedPart",
    "UnreadableItem",
    "printable",
]

Statement: TypeAlias = (
    LumosDataset | LineageEdge | Job | User | Group | Tag | GlossaryTerm | Domain | Observation
)
"""What a source says. A dataset may be partial: what it leaves out, others may say."""
ScanRecord: TypeAlias = (
    Statement | ScannedScope | ScanMark | UnreadableItem | UnlistedPart | SkippedItem | ScanWarning
)
