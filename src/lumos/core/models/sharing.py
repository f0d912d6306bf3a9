"""Building a dataset beside an earlier state of it: what is spelt alike is built only once.

Two states of a dataset mostly differ in little. The parts that they share are then the same
objects, so that a comparison may skip a part that is the very same object.
"""

from __future__ import annotations

from typing import NamedTuple

import orjson
from pydantic import JsonValue

from lumos.core.errors import InvalidModelError
from lumos.core.json_reading import Json
from lumos.core.models.dataset import LumosDataset
from lumos.core.models.types import Field, Schema


class Known(NamedTuple):
    """A dataset and the JSON object that it was built from."""

    document: Json
    dataset: LumosDataset


def built_beside(document: Json, known: Known) -> LumosDataset:
    """Build a dataset from parsed JSON, taking over from a known one what is spelt alike.

    The result equals that of `LumosDataset.from_json`.

    Raises:
        InvalidModelError: the document is no dataset; no value of it is echoed.
    """
    shared: dict[str, object] = {**document}
    for name, value in document.items():
        before = known.document.get(name)
        if isinstance(value, dict) and name in LumosDataset.model_fields:
            if _alike(value, before):
                shared[name] = getattr(known.dataset, name)
            elif name == "schema" and isinstance(before, dict):
                shared[name] = _shared_schema(value, before, known.dataset) or value
    return LumosDataset.from_json(shared)


def _shared_schema(schema: Json, before: Json, dataset: LumosDataset) -> Schema | None:
    """Build a schema with the columns that are spelt as before; None where that is not possible."""
    fields, fields_before = schema.get("fields"), before.get("fields")
    if not isinstance(fields, list) or not isinstance(fields_before, list):
        return None
    built = {
        _spelt(document): field
        for document, field in zip(fields_before, dataset.schema.fields, strict=True)
    }
    try:
        columns = tuple(built.get(_spelt(each)) or Field.from_json(each) for each in fields)
        rest = Schema.from_json({**schema, "fields": ()})
    except InvalidModelError:
        return None  # built as a whole, the dataset is refused with the place of what is wrong
    # Each column is checked already; what columns must be to each other is checked by the dataset.
    given = {**dict(rest), "fields": columns}
    return Schema.model_construct(_fields_set={*schema}, **given)


def _alike(value: JsonValue, other: JsonValue) -> bool:
    """Return whether two values are the same JSON; in Python 1 equals True."""
    return value == other and _spelt(value) == _spelt(other)


def _spelt(value: JsonValue) -> bytes:
    return orjson.dumps(value)
