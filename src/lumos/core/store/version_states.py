"""How the state of a dataset is kept with a version: its contract, compressed."""

from __future__ import annotations

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


def packed_state(dataset: LumosDataset) -> bytes:
    """Return the state that a version keeps.

    Observations are left out: they belong to a moment, and profiles of columns would make up most
    of the database.
    """
    document = {name: part for name, part in dataset.to_json().items() if name not in NOT_COMPARED}
    return zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True).compress(
        canonical_json(document)
    )


def state_of(row: Row) -> LumosDataset:
    """Read the state of a row with the columns `state` and `dataset`.

    Raises:
        StateError: the state is damaged.
    """
    packed = row["state"]
    if not isinstance(packed, bytes):  # written before states were packed
        return as_model(LumosDataset, row.text("dataset"))
    try:
        plain = zstandard.ZstdDecompressor().decompress(packed, max_output_size=_LARGEST_STATE)
        return as_model(LumosDataset, plain.decode())
    except (zstandard.ZstdError, UnicodeDecodeError):
        raise StateError(
            "a stored version is damaged", hint="import the latest snapshot anew"
        ) from None
