"""What artifacts of dbt need beside `core/json_reading.py`: texts in lists, and error reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumos.core.errors import LumosError, UnexpectedJsonError, UnreadableItemError
from lumos.core.json_reading import Json, texts_at
from lumos.feature.ingestion.records import UnreadableItem

if TYPE_CHECKING:
    from lumos.core.models import Urn


def one_or_more_texts_at(node: Json, key: str) -> list[str]:
    """Return the texts under a key that are not empty; dbt takes one text in place of a list.

    Raises:
        UnexpectedJsonError: it is something else.
    """
    value = node.get(key)
    return [text for text in ([value] if isinstance(value, str) else texts_at(node, key)) if text]


def unread_item(item: str, error: LumosError, urn: Urn | None = None) -> UnreadableItem:
    """Return the record of something that could not be read, with what to do about it."""
    if isinstance(error, UnexpectedJsonError):
        error = UnreadableItemError(
            error.message, hint="write the artifact again with: dbt docs generate"
        )
    return UnreadableItem(item, error, urn)


def printable_dbt_name(name: str) -> str:
    """Return a name for reports; code points that are no characters are spelled out."""
    return name.encode("utf-8", "backslashreplace").decode()
