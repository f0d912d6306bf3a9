"""Reads datasets from a DataHub server, with what others attached to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from lumos.core.errors import InvalidUrnError
from lumos.core.models import LumosDataset, NeighboursBuilder
from lumos.core.platform.batches import together
from lumos.core.platform.impl.datahub.client import StoredEntity, is_removed, pages_of
from lumos.core.platform.impl.datahub.mapping.aspects import DERIVED
from lumos.core.platform.impl.datahub.mapping.lineage import ASPECT, read_edges
from lumos.core.platform.impl.datahub.mapping.stash import KEY
from lumos.core.platform.impl.datahub.mapping.urns import is_shortened
from lumos.core.platform.refusals import Streak
from lumos.core.platform.unreadable import UNFIT

if TYPE_CHECKING:
    from lumos.core.errors import LumosError
    from lumos.core.models import LineageEdge
    from lumos.core.platform.http import CatalogHttp
    from lumos.core.platform.impl.datahub.client import DataHubClient
    from lumos.core.platform.impl.datahub.mapping.aspects import DatasetConversion
    from lumos.core.platform.impl.datahub.settings import DataHubSettings
    from lumos.core.platform.impl.datahub.writer.companions import Companions
    from lumos.core.platform.unreadable import UnreadableItems

DATASET: Final = "dataset"
LARGEST_PAGE: Final = 200
_PARTS: Final[Mapping[str, str]] = {
    "globalTags": "tags",
    "ownership": "owners",
    "glossaryTerms": "governance:glossary_terms",
    "domains": "governance:domains",
    "deprecation": "governance:deprecation",
    "institutionalMemory": "documentation:links",
}
"""Which part of a dataset an aspect holds."""


class DatasetReader:
    """Makes datasets from entities."""

    def __init__(
        self,
        http: CatalogHttp,
        client: DataHubClient,
        *,
        settings: DataHubSettings,
        conversion: DatasetConversion,
        companions: Companions,
    ) -> None:
        self._http = http
        self._client = client
        self._settings = settings
        self._conversion = conversion
        self._companions = companions

    def found(self, held: StoredEntity) -> LumosDataset | None:
        """Return the dataset of an entity without what others point at it for, if it is one."""
        return self._read(held, downstream=(), assertions=()) if is_dataset(held) else None

    def hidden(self, held: StoredEntity) -> frozenset[str]:
        """Return the parts of a dataset that the token may not read, as far as that can be known.

        Neither Lumos nor DataHub's pages delete the aspect of a dataset's tags or owners: what is
        taken away is emptied. Where Lumos wrote the dataset, an aspect that is missing is hidden,
        or was never there.
        """
        properties = held.aspects.get("datasetProperties")
        custom = properties.get("customProperties") if isinstance(properties, dict) else None
        if not isinstance(custom, dict) or KEY not in custom:
            return frozenset()
        return frozenset(part for name, part in _PARTS.items() if name not in held.aspects)

    def whole(self, held: StoredEntity) -> LumosDataset:
        """Return a dataset with what others point at it for."""
        related = self._client.related(held.urn, "DownstreamOf", "Asserts")
        downstream = []
        for other in {other for kind, other in related if kind == "DownstreamOf"} - {held.urn}:
            with suppress(InvalidUrnError):
                downstream.append(self._lumos_name(other))
        assertions = [other for kind, other in related if kind == "Asserts"]
        return self._read(held, downstream=downstream, assertions=assertions)

    def pages(
        self, platform: str | None, page_size: int, *, unread: UnreadableItems
    ) -> Iterator[LumosDataset]:
        """Yield all datasets in ascending order of URN; what cannot be read is noted."""
        names: dict[str, str] = {}
        downstream: dict[str, list[str]] = {}
        for held in self._client.scroll(DATASET, aspects=("datasetKey", ASPECT)):
            names[held.urn] = ""
            with suppress(InvalidUrnError):  # its name is, and the listing of edges reports it
                for edge in self._edges(held):
                    downstream.setdefault(edge.upstream_urn, []).append(edge.downstream_urn)
        named = unread.each(
            DATASET, [*names], lambda there: (there, self._lumos_name(there)), name=str
        )
        names = dict(named)
        assertions = self._companions.assertions_by_dataset()
        in_order = sorted(names, key=names.__getitem__)
        order = [*pages_of(in_order, min(page_size, LARGEST_PAGE))]
        got = partial(self._got, unread=unread)
        pages = self._http.map(got, order, workers=self._settings.workers)
        for page, wanted in zip(pages, order, strict=False):
            found = {held.urn: held for held in page}
            there_now = [found[there] for there in wanted if there in found]

            def read(held: StoredEntity) -> LumosDataset:
                return self._read(
                    held,
                    downstream=downstream.get(names[held.urn], ()),
                    assertions=assertions.get(held.urn, ()),
                )

            datasets = filter(is_dataset, there_now)
            for dataset in unread.each(DATASET, datasets, read, name=attrgetter("urn")):
                if platform is None or dataset.platform == platform:
                    yield dataset

    def _got(self, names: Sequence[str], *, unread: UnreadableItems) -> list[StoredEntity]:
        """Return what the server holds of some datasets; one that it refuses to give is noted."""
        streak = Streak()

        def refused(there: str, error: LumosError) -> StoredEntity:
            if streak.ends_run(error):
                raise error
            unread.add(DATASET, there, error=error)
            return StoredEntity(there, {}, {})

        return together(partial(self._client.get, DATASET), names, refused=refused)

    def _read(
        self, held: StoredEntity, *, downstream: Iterable[str], assertions: Sequence[str]
    ) -> LumosDataset:
        """Return a dataset; a value of it that does not fit is kept in its extension."""
        try:
            return self._read_as(held, downstream, assertions=assertions)
        except UNFIT:
            return self._read_as(held, downstream, assertions=assertions, fitted=True)

    def _read_as(
        self,
        held: StoredEntity,
        downstream: Iterable[str],
        *,
        assertions: Sequence[str],
        fitted: bool = False,
    ) -> LumosDataset:
        document = self._conversion.document(held.urn, held.aspects, fitted=fitted)
        name = str(document["urn"])
        upstream = NeighboursBuilder(self._edges(held, downstream=name)).of(name)
        document["lineage"] = {**upstream.to_json(), "downstream": [*downstream]}
        self._companions.add_assertions(document, held.urn, assertions)
        return LumosDataset.from_json(document)

    def _edges(self, held: StoredEntity, *, downstream: str | None = None) -> list[LineageEdge]:
        lineage = held.aspects.get(ASPECT)
        if not isinstance(lineage, dict):
            return []
        environment = self._settings.environment
        return read_edges(held.urn, lineage, environment=environment, downstream=downstream)

    def _lumos_name(self, there: str) -> str:
        aspects = {}
        if is_shortened(there):
            found = self._client.get(DATASET, [there], aspects=("datasetProperties",))
            aspects = found[0].aspects if found else {}
        return self._conversion.name_in(there, aspects)


def is_dataset(held: StoredEntity) -> bool:
    """Return whether an entity is a dataset: neither hidden nor only the end of lineage.

    Of the end of an edge DataHub has a name and the lineage. Somebody else made whatever has a
    status, or a name and no lineage.
    """
    if is_removed(held):
        return False
    known = held.aspects.keys() - DERIVED
    return bool(held.aspects) and known != {ASPECT}
