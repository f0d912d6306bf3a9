"""What people add to one dataset, in Lumos's own shape or the earlier framework's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, model_validator

from lumos.core.models import Documentation, Governance, Link, LumosDataset, with_parts
from lumos.core.models.base import CanonicalModel, NameSet, Properties
from lumos.core.platform.dataset_reference import OTHER_NAMES, DatasetReference
from lumos.core.settings.item_document import with_names


class EnrichmentConfig(CanonicalModel):
    """The `config` of one enrichment in the earlier framework's shape."""

    description: str | None = None
    business_context: str | None = None
    tags: NameSet = ()
    glossary_terms: NameSet = ()
    custom_properties: Properties = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _accept_other_spellings(cls, value: object) -> object:
        return with_names(
            value, {"documentation": "description", "properties": "custom_properties"}
        )


class TypedEnrichment(CanonicalModel):
    """One enrichment in the earlier framework's shape."""

    enrichment_type: Literal["description", "documentation", "tags", "properties", "glossary_terms"]
    config: EnrichmentConfig


class Enrichment(CanonicalModel):
    """What is added to one dataset.

    Texts replace what was there; tags, terms, domains, links and properties are added to it.
    """

    dataset: DatasetReference
    description: str | None = None
    business_context: str | None = None
    sla: str | None = None
    links: tuple[Link, ...] = ()
    tags: NameSet = ()
    glossary_terms: NameSet = ()
    domains: NameSet = ()
    properties: Properties = Field(default_factory=dict)
    enrichments: tuple[TypedEnrichment, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _accept_other_spellings(cls, value: object) -> object:
        """Gather keys that name the dataset, as in `{data_type, dataset_name, env}`."""
        if not isinstance(value, Mapping) or "dataset_name" not in value:
            return value
        named = {key: value[key] for key in OTHER_NAMES if key in value}
        rest = {key: item for key, item in value.items() if key not in named}
        return {**rest, "dataset": named}

    @model_validator(mode="after")
    def _says_a_text_once(self) -> Enrichment:
        for name in ("description", "business_context"):
            if len(set(self._texts(name))) > 1:
                raise ValueError(f"the document says {name} twice, and differently")
        return self

    def applied_to(self, dataset: LumosDataset) -> LumosDataset:
        """Return the dataset with this added; equal to it where nothing is new."""
        configs = [each.config for each in self.enrichments]
        return with_parts(
            dataset,
            documentation=self._documentation(dataset.documentation),
            tags=(*dataset.tags, *self.tags, *(tag for each in configs for tag in each.tags)),
            governance=self._governance(dataset.governance, configs),
            properties=self._properties(dataset.properties, configs),
        )

    def _documentation(self, held: Documentation) -> Documentation:
        new = [link for link in self.links if link not in held.links]
        return Documentation(
            description=self._text("description") or held.description,
            business_context=self._text("business_context") or held.business_context,
            sla=self.sla or held.sla,
            links=(*held.links, *new),
        )

    def _governance(self, held: Governance, configs: list[EnrichmentConfig]) -> Governance:
        terms = (term for each in configs for term in each.glossary_terms)
        return held.model_copy(
            update={
                "domains": (*held.domains, *self.domains),
                "glossary_terms": (*held.glossary_terms, *self.glossary_terms, *terms),
            }
        )

    def _properties(self, held: Properties, configs: list[EnrichmentConfig]) -> Properties:
        merged = {**held}
        for properties in (self.properties, *(each.custom_properties for each in configs)):
            merged |= properties
        return merged

    def _text(self, name: str) -> str | None:
        return next(iter(self._texts(name)), None)

    def _texts(self, name: str) -> list[str]:
        configs = (each.config for each in self.enrichments)
        texts = (getattr(self, name), *(getattr(each, name) for each in configs))
        return [text for text in texts if text]
