"""Where an import writes to."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from lumos.core.controllers.import_memory import ImportMemory
    from lumos.core.controllers.publishing import Publisher, Transactional
    from lumos.core.platform.interface import MetadataPlatformInterface


class ImportTarget(NamedTuple):
    """A catalog that can be written, with the database that its versions are kept in."""

    platform: MetadataPlatformInterface
    publisher: Publisher
    database: Transactional
    place: str | None = None
    """What tells it from other catalogs of the same kind, where there may be several."""
    workers: int = 8
    """How many requests may be under way at once, where the catalog takes as many."""
    memory: ImportMemory | None = None
    """What is remembered of it; nothing where it lies in the database of its versions."""
