"""Keeps what a dataset was last known to have where some of its files cannot be read any more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from lumos.core.models import DatasetKind, LumosDataset, with_parts
from lumos.feature.discovery.merging import SchemaVariant, merge_schemas

if TYPE_CHECKING:
    from pydantic import JsonValue

UNSEEN: Final = "unseen"
"""The extension of a dataset with files that cannot be read and of which nothing is known."""
_MOST_TOLD: Final = 100


def is_in_doubt(dataset: LumosDataset) -> bool:
    """Return whether files that could not be read may hold more than is known of the dataset."""
    return UNSEEN in dataset.extensions


def unseen_columns(dataset: LumosDataset) -> tuple[str, ...]:
    """Return the columns that no readable file has, up to a bearable number."""
    told = dataset.extensions.get(UNSEEN)
    names = told.get("columns") if isinstance(told, Mapping) else None
    return tuple(str(name) for name in names) if isinstance(names, list | tuple) else ()


def with_unseen_parts(
    present: LumosDataset, found: LumosDataset, *, unreadable: int
) -> LumosDataset:
    """Return a dataset as found, its unreadable files taken to be as the dataset was known.

    Nothing that it had is gone: columns stay, types are as wide as they were. What is new is there.

    Args:
        present: as it was last known.
        found: the dataset built from the files that can be read.
        unreadable: how many of its files cannot.
    """
    if found.kind is not DatasetKind.FILES:
        return found
    statistics = found.statistics
    readable = (statistics.file_count if statistics else None) or 1
    unseen = SchemaVariant(present.schema, files=unreadable, newest=1)
    merged = merge_schemas([unseen, SchemaVariant(found.schema, files=readable)]).schema
    known = {field.name for field in found.schema.fields}
    names: list[JsonValue] = [each.name for each in merged.fields if each.name not in known]
    return with_parts(
        found,
        schema=merged,
        location=present.location or found.location,
        extensions={**found.extensions, UNSEEN: {"columns": names[:_MOST_TOLD]}},
    )
