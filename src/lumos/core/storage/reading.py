"""Reads files and tables of any storage in the sandbox."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from lumos.core.formats.sandbox import DEFAULT_LIMITS, Limits, StoredItem, shared_sandbox

if TYPE_CHECKING:
    from lumos.core.errors import UnreadableItemError
    from lumos.core.storage.port import Storage

__all__ = ["DEFAULT_LIMITS", "Limits", "ReadItem", "read_items", "read_rows"]

ReadItem = StoredItem
_ROW_READER = "lumos.core.formats.fact_rows:read_row"


def read_items(
    items: Iterable[ReadItem],
    storage: Storage,
    *,
    limits: Limits = DEFAULT_LIMITS,
    value_ranges: bool = False,
) -> Iterator[bytes | UnreadableItemError]:
    """Yield the canonical JSON of each file's or table's facts, or why there are none, in order.

    Nothing of a storage that is not local, neither credentials nor connection, is in the process
    that parses. A file that kills or hangs its reader is named, and the others go on.

    Args:
        items: what to read, as it was listed; a table is read by its root.
        storage: where it lies.
        limits: what one file or table may take.
        value_ranges: whether to return the smallest and largest values of columns without text.

    Raises:
        SourceError: the readers could not be started.
    """
    return shared_sandbox(limits).read_stored(items, storage, value_ranges=value_ranges)


def read_rows(
    items: Iterable[ReadItem],
    storage: Storage,
    *,
    limits: Limits = DEFAULT_LIMITS,
    value_ranges: bool = False,
) -> Iterator[bytes | UnreadableItemError]:
    """Yield like `read_items`, with a file's facts as `read_row` writes them.

    A schema comes with the first file that has it, once in the life of the process that reads.

    Raises:
        SourceError: the readers could not be started.
    """
    sandbox = shared_sandbox(limits, reader=_ROW_READER)
    return sandbox.read_stored(items, storage, value_ranges=value_ranges)
