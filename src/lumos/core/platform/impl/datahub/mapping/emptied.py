"""What stands in DataHub in place of an aspect that a dataset no longer has.

DataHub deletes an aspect without asking which version it is, but writes one only over the version
that was read. What is gone is therefore emptied and not deleted, as DataHub's own pages do, and
whatever somebody adds in between is not lost. Few have to be deleted, once their version was read
again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from lumos.core.platform.impl.datahub.mapping.governance import STAMP

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json

_SCHEMA: Final = "schemaMetadata"
EMPTIED: Final[Mapping[str, Json]] = {
    "globalTags": {"tags": []},
    "glossaryTerms": {"terms": [], "auditStamp": STAMP},
    "domains": {"domains": []},
    "ownership": {"owners": [], "lastModified": STAMP},
    "deprecation": {"deprecated": False, "note": "", "actor": STAMP["actor"]},
    "institutionalMemory": {"elements": []},
    "structuredProperties": {"properties": []},
    "editableDatasetProperties": {},
    "editableSchemaMetadata": {"editableSchemaFieldInfo": []},
    "documentation": {"documentations": []},
    _SCHEMA: {
        "schemaName": "",
        "platform": "",
        "version": 0,
        "created": STAMP,
        "lastModified": STAMP,
        "hash": "",
        "platformSchema": {"com.linkedin.schema.OtherSchema": {"rawSchema": ""}},
        "fields": [],
    },
}
"""Aspects that say what the dataset says, and nothing where it says nothing."""
DELETED: Final = ("subTypes",)
"""The same, where DataHub's own tools take for granted that there is something in them."""


def emptied(name: str, urn: str) -> Json:
    """Return an aspect of a dataset of DataHub without anything in it."""
    empty = EMPTIED[name]
    if name != _SCHEMA:
        return empty
    return {**empty, "platform": urn[len("urn:li:dataset:(") : urn.index(",")]}


def is_empty(name: str, aspect: JsonValue) -> bool:
    """Return whether an aspect is one that was emptied."""
    empty = EMPTIED.get(name)
    if empty is None or not isinstance(aspect, dict) or aspect.keys() != empty.keys():
        return False
    return aspect == (empty if name != _SCHEMA else {**empty, "platform": aspect["platform"]})
