"""How the state of a dataset is kept with a version: its contract, compressed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import zstandard

from lumos.core.errors import StateError
from lumos.core.models import LumosDataset
from lumos.core.models.base import canonical_json
from lumos.core.models.facets import NOT_COMPARED
from lumos.core.store.documents import as_model

if TYPE_CHECKING:
    from lumos.core.store.engine import Row

_LEVEL = 3
_LARGEST_STATE = 256 * 1024 * 1024


class _OfThread(threading.local):
    """What a thread packs with; to make it costs more than to use it, and no two may share it."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True)
        self.decompressor = zstandard.ZstdDecompressor()


_OWN = _OfThread()


def packed_state(dataset: LumosDataset) -> bytes:
    """Return the state that a version keeps.

    Observations are left out: they belong to a moment, and profiles of columns would make up most
    of the database.
    """
    document = {name: part for name, part in dataset.to_json().items() if name not in NOT_COMPARED}
    return packed(canonical_json(document))


def packed(document: bytes) -> bytes:
    """Return a document compressed."""
    return _OWN.compressor.compress(document)


def unpacked(document: bytes) -> str:
    """Return a document that `packed` compressed.

    Raises:
        StateError: it is damaged.
    """
    try:
        plain = _OWN.decompressor.decompress(document, max_output_size=_LARGEST_STATE)
        return plain.decode()
    except (zstandard.ZstdError, UnicodeDecodeError):
        raise StateError(
            "a stored version is damaged", hint="import the latest snapshot anew"
        ) from None


def state_of(row: Row) -> LumosDataset:
    """Read the state of a row with the columns `state` and `dataset`.

    Raises:
        StateError: the state is damaged.
    """
    state = row["state"]
    if not isinstance(state, bytes):  # written before states were packed
        return as_model(LumosDataset, row.text("dataset"))
    return as_model(LumosDataset, unpacked(state))
