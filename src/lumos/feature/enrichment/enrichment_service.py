"""Adds descriptions, tags, terms and properties to datasets, from documents that people keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from lumos.core.errors import LumosError
from lumos.core.models import Domain, GlossaryTerm, LumosDataset, Tag, Urn
from lumos.core.platform.dataset_reference import DatasetFinder
from lumos.core.platform.entity_writer import UNCHANGED, EntityWriter
from lumos.core.settings.item_document import DocumentItem, ItemDocument
from lumos.feature.enrichment.enrichment import Enrichment

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.platform.interface import MetadataPlatformInterface
    from lumos.core.run_report import RunRecorder
    from lumos.core.settings import SettingsDocument

Publish = Callable[[LumosDataset, LumosDataset], None]

_KNOWN = ("operation", "description", "datasets", "tags", "glossary", "domains")


class EnrichmentService:
    """Documentation and governance by file. Running a document again changes nothing."""

    def __init__(
        self, platform: MetadataPlatformInterface, *, publish: Publish | None = None
    ) -> None:
        """Work on a catalog.

        Args:
            platform: the catalog.
            publish: takes the old and the new state of a dataset, once for each dataset that
                changes, and writes the new one; without it, the catalog simply gets the new one.
        """
        self._platform = platform
        self._publish = publish or (lambda _, new: platform.emit_dataset(new))

    def enrich(
        self, document: SettingsDocument | Mapping[str, JsonValue], *, recorder: RunRecorder
    ) -> None:
        """Add what a document says: first its `tags`, `glossary` and `domains`, then to `datasets`.

        Raises:
            ConfigurationError: the document as a whole is not one of enrichments.
            CapabilityError: it defines tags, terms or domains, and the catalog keeps none.
        """
        content = ItemDocument(document, known=_KNOWN)
        tags, terms, domains, datasets = (
            content.items(name) for name in ("tags", "glossary", "domains", "datasets")
        )
        if not (tags or terms or domains or datasets):
            content.items("datasets", required=True)
        writer = EntityWriter(self._platform)
        if tags:
            writer.write(tags, Tag, kind="tag", recorder=recorder)
        if terms:
            writer.write(terms, GlossaryTerm, kind="glossary_term", recorder=recorder)
        if domains:
            writer.write(domains, Domain, kind="domain", recorder=recorder)
        self._enrich(datasets, recorder)

    def _enrich(self, items: tuple[DocumentItem, ...], recorder: RunRecorder) -> None:
        readable = _readable(items, recorder)
        finder = DatasetFinder(self._platform)
        finder.prepare(enrichment.dataset for _, enrichment in readable)
        old: dict[Urn, LumosDataset] = {}
        new: dict[Urn, LumosDataset] = {}
        for item, enrichment in readable:
            try:
                dataset = finder.find(enrichment.dataset)
                before = old.setdefault(dataset.urn, dataset)
                new[dataset.urn] = enrichment.applied_to(new.get(dataset.urn, before))
            except LumosError as error:
                recorder.failed(f"{item.label}: {enrichment.dataset}", error, scope_seen=True)
        for urn, changed in new.items():
            self._write(old[urn], changed, recorder=recorder)

    def _write(self, old: LumosDataset, new: LumosDataset, *, recorder: RunRecorder) -> None:
        if old == new:
            recorder.skipped(str(old.urn), reason=UNCHANGED)
            return
        try:
            self._publish(old, new)
        except LumosError as error:
            recorder.failed(str(old.urn), error, scope_seen=True)
            return
        recorder.done(str(old.urn))


def _readable(
    items: tuple[DocumentItem, ...], recorder: RunRecorder
) -> list[tuple[DocumentItem, Enrichment]]:
    found = []
    for item in items:
        try:
            found.append((item, item.read(Enrichment)))
        except LumosError as error:
            recorder.failed(item.label, error, scope_seen=True)
    return found
