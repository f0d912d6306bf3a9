"""What a dataset refers to: made where it is missing, and left out where a rule forbids it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lumos.core.errors import InvalidUrnError
from lumos.core.models import Urn
from lumos.core.platform.impl.openmetadata.mapping.columns import GLOSSARY
from lumos.core.platform.impl.openmetadata.mapping.entities import foreign_key
from lumos.core.platform.impl.openmetadata.mapping.names import path_of, place_of
from lumos.core.platform.impl.openmetadata.mapping.rules import (
    Labels,
    allowed_domains,
    allowed_labels,
    allowed_owners,
    with_labels,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.models import LumosDataset
    from lumos.core.platform.impl.openmetadata.client import OpenMetadataApi
    from lumos.core.platform.impl.openmetadata.writer.vocabulary import Vocabulary

_URN_SCHEME: Final = "lumos://"


class References:
    """Turns the names that datasets mention into references to entities of one server."""

    def __init__(self, api: OpenMetadataApi, words: Vocabulary, *, rules: bool) -> None:
        self._api = api
        self._words = words
        self._rules = rules

    def added_to(self, wire: Json, dataset: LumosDataset, *, held: Json) -> Json:
        """Return what an entity is to say, with its references and within the server's rules.

        Args:
            wire: what it is to say without references.
            dataset: what it stands for.
            held: what is there now.
        """
        mention = self._words.mention
        owners = {
            (owner.category, owner.name): mention(owner.category, owner.name)
            for owner in dataset.ownership.owners
        }
        owning = [each for each in owners.values() if self._words.may_be_attached(each)]
        domains = [mention("domain", each) for each in dataset.governance.domains]
        if self._rules:
            owning = allowed_owners(owning, held.get("owners"))
            domains = allowed_domains(domains, held.get("domains"))
        found: Json = {"owners": [*owning], "domains": [*domains]}
        if "columns" in wire:
            constraints = wire.get("tableConstraints")
            given = constraints if isinstance(constraints, list) else []
            found["tableConstraints"] = [*given, *self._foreign_keys(dataset)]
        labelled = with_labels(wire, held, chosen=self._labels)
        return {**labelled, **{name: value for name, value in found.items() if value}}

    def _labels(self, wanted: Labels, held: JsonValue) -> Labels:
        """Return the labels of one thing that the server takes, by the names that they have."""
        found: Labels = []
        for label in wanted:
            kind = "glossary_term" if label.get("source") == GLOSSARY else "tag"
            known = self._words.mention_at(kind, path_of(str(label.get("tagFQN"))))
            if self._words.may_be_attached(known):
                found.append({**label, "tagFQN": known["fullyQualifiedName"]})
        return allowed_labels(found, held, excludes=self._words.excludes)

    def _foreign_keys(self, dataset: LumosDataset) -> list[JsonValue]:
        """Return the foreign keys that lead to tables which are there, with their columns."""
        own = {field.name for field in dataset.schema.fields}
        found: list[JsonValue] = []
        for key in dataset.schema.foreign_keys:
            table = self._referred(key.references)
            constraint = foreign_key(key, table=table) if table else None
            if constraint and own.issuperset(key.columns):
                found.append(constraint)
        return found

    def _referred(self, references: str) -> Json | None:
        if not references.startswith(_URN_SCHEME):
            return None
        try:
            place = place_of(Urn(references))
        except InvalidUrnError:
            return None
        return self._api.find("table", place.fqn) if place.type == "table" else None
