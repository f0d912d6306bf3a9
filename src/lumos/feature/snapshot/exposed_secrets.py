"""Credentials that slipped into a dataset's metadata, found by where they are and never told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import JsonValue

from lumos.core.redaction import MASK, find_secrets, looks_secret

if TYPE_CHECKING:
    from lumos.core.models import LumosDataset

_LOCATION = ("bucket", "path", "prefix")


def exposed_secrets(dataset: LumosDataset) -> Iterator[str]:
    """Yield the places in a dataset's location and properties that seem to hold credentials."""
    for name in _LOCATION:
        value = getattr(dataset.location, name, None)
        if value and find_secrets(value):
            yield f"{dataset.urn}: location.{name}"
    for name, inner in dataset.properties.items():
        if _holds_secret(name, inner):
            yield f"{dataset.urn}: properties.{name}"


def _holds_secret(name: str, value: JsonValue) -> bool:
    if isinstance(value, dict):
        return any(_holds_secret(inner_name, inner) for inner_name, inner in value.items())
    if isinstance(value, list):
        return any(_holds_secret(name, inner) for inner in value)
    if not isinstance(value, str) or value in {"", MASK}:
        return False
    return looks_secret(name) or bool(find_secrets(value))
