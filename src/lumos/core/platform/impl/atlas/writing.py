"""Datasets written as entities, in as few requests as Atlas allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumos.core.platform.impl.atlas.datasets import own_values
from lumos.core.platform.impl.atlas.reading import live_columns, own_classifications
from lumos.core.platform.impl.atlas.wire import Json, mapping, texts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lumos.core.platform.impl.atlas.client import AtlasClient
    from lumos.core.platform.impl.atlas.columns import Labelled
    from lumos.core.platform.impl.atlas.datasets import DatasetEntity
    from lumos.core.platform.impl.atlas.vocabulary import Vocabulary

_HEAD = "-1"


class DatasetWriter:
    """Brings the entities of a dataset to what they should be."""

    def __init__(self, client: AtlasClient, vocabulary: Vocabulary) -> None:
        self._client = client
        self._vocabulary = vocabulary

    def write(self, wanted: DatasetEntity, held: tuple[Json, Json] | None) -> None:
        """Create the entities, or update those that are held.

        Classifications, labels and business metadata count in a bulk request only for what it
        creates, so for what it updates they are sent apart.
        """
        parts = (wanted.head, *wanted.columns)
        names = self._vocabulary.define_tags({tag for part in parts for tag in part.tags})
        terms = self._vocabulary.define_terms({term for part in parts for term in part.terms})
        known = _by_key(held)
        columns = [
            _with_labels(column, names, terms=terms, guid=f"-{number}")
            for number, column in enumerate(wanted.columns, start=2)
        ]
        head = _with_labels(wanted.head, names, terms=terms, guid=_HEAD)
        for column in columns:  # what belongs to another must say to which
            owner: Json = {"guid": _HEAD, "typeName": head["typeName"]}
            mapping(column["relationshipAttributes"])["dataset"] = owner
        related = mapping(head["relationshipAttributes"])
        related["columns"] = [
            {"guid": column["guid"], "typeName": column["typeName"]} for column in columns
        ]
        guids = self._client.put([head, *columns])
        for entity in (head, *columns):
            if (before := known.pop(_key(entity), None)) is not None:
                self._update_labels(entity, before, guid=str(before["guid"]))
        self._client.remove([str(column["guid"]) for column in known.values()])
        if held is None:
            self._set_own(head, {}, guid=guids.get(_HEAD))

    def _update_labels(self, wanted: Json, before: Json, *, guid: str) -> None:
        has = {*own_classifications(before)}
        should = {*own_classifications(wanted)}
        self._client.declassify(guid, has - should)
        self._client.classify(guid, should - has)
        self._set_own(wanted, before, guid=guid)

    def _set_own(self, wanted: Json, before: Json, *, guid: str | None) -> None:
        """Set what the bulk request leaves alone, where it is to differ."""
        if guid is None or "labels" not in wanted:
            return
        has = own_values(before)
        if before and texts(wanted["labels"]) != texts(has.get("labels")):
            self._client.set_labels(guid, texts(wanted["labels"]))
        business = mapping(wanted.get("businessAttributes"))
        if before and business != mapping(has.get("businessAttributes")):
            self._client.set_business_metadata(guid, business)


def _with_labels(
    part: Labelled, names: dict[str, str], *, terms: dict[str, str], guid: str
) -> Json:
    return {
        **part.entity,
        "guid": guid,
        "classifications": [{"typeName": names[tag], "propagate": False} for tag in part.tags],
        "relationshipAttributes": {
            "meanings": [
                {"guid": terms[term], "typeName": "AtlasGlossaryTerm"} for term in part.terms
            ]
        },
    }


def _by_key(held: tuple[Json, Json] | None) -> dict[str, Json]:
    """Return the entities that are held, a dataset and its columns, by qualified name."""
    if held is None:
        return {}
    entities: Iterable[Json] = (held[0], *live_columns(*held))
    return {_key(entity): entity for entity in entities}


def _key(entity: Json) -> str:
    return str(mapping(entity.get("attributes")).get("qualifiedName"))
