"""Which source ingestion found a dataset in, kept with the dataset as an extension."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.models.dataset import LumosDataset

ORIGIN = "lumos"
"""The name of the extension."""


class Origin(NamedTuple):
    """The source that a dataset was found in, and its place there."""

    source: str
    dataset: str


FOLDER = "folder"
"""The key in the extension of the folder where this machine has the source; local sources only."""


def folder_of(extensions: Mapping[str, JsonValue]) -> str | None:
    """Return the folder in which the machine that ingested a dataset last has its source."""
    origin = extensions.get(ORIGIN)
    folder = origin.get(FOLDER) if isinstance(origin, Mapping) else None
    return folder if isinstance(folder, str) else None


def origin_of(dataset: LumosDataset) -> Origin | None:
    """Return where a dataset was found, if ingestion found it."""
    return origin_in(dataset.extensions)


def origin_in(extensions: Mapping[str, JsonValue]) -> Origin | None:
    """Return where the dataset was found that has these extensions."""
    origin = extensions.get(ORIGIN)
    if not isinstance(origin, Mapping):
        return None
    return Origin(str(origin.get("source")), str(origin.get("dataset")))
