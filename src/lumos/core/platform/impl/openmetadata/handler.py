"""OpenMetadata behind the interface that all catalogs have."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from typing_extensions import override

from lumos.core.errors import (
    DatasetNotFoundError,
    LumosError,
    PlatformConflictError,
    PlatformError,
    PlatformFailureError,
    PlatformNotFoundError,
)
from lumos.core.json_reading import as_object
from lumos.core.models import DatasetLineage, Job, LineageEdge, LumosDataset, Urn, with_parts
from lumos.core.platform.batch import Batch, Identity, Seen
from lumos.core.platform.catalog_handler import CatalogHandler
from lumos.core.platform.http import DEFAULT_RETRIES, CatalogHttp, RetryPolicy
from lumos.core.platform.impl.openmetadata.client import OpenMetadataApi
from lumos.core.platform.impl.openmetadata.fidelity import FIDELITY
from lumos.core.platform.impl.openmetadata.mapping.entities import NAME, kept_of
from lumos.core.platform.impl.openmetadata.mapping.names import place_of
from lumos.core.platform.impl.openmetadata.mapping.stashed import MENTIONED, Node
from lumos.core.platform.impl.openmetadata.reader.look_up import LookUp
from lumos.core.platform.impl.openmetadata.search import narrowed
from lumos.core.platform.impl.openmetadata.settings import OpenMetadataSettings
from lumos.core.platform.impl.openmetadata.side_store import (
    OwnContainers,
    get_value,
    put_value,
    values,
)
from lumos.core.platform.impl.openmetadata.writer.bulk import BulkWires, lies_at
from lumos.core.platform.impl.openmetadata.writer.datasets import DatasetWires, name_in
from lumos.core.platform.impl.openmetadata.writer.definitions import Definitions, merged
from lumos.core.platform.impl.openmetadata.writer.fields import FieldWriter
from lumos.core.platform.impl.openmetadata.writer.jobs import JobWires
from lumos.core.platform.impl.openmetadata.writer.lineage import ITSELF, Between, LineageWires
from lumos.core.platform.impl.openmetadata.writer.references import References
from lumos.core.platform.impl.openmetadata.writer.vocabulary import Vocabulary, Word
from lumos.core.platform.interface import Entity, EntityKind, kind_of
from lumos.core.platform.login import NOBODY, TOKEN
from lumos.core.platform.refusals import Streak
from lumos.core.platform.server_version import usable_version
from lumos.core.platform.side_store import SideStore
from lumos.core.platform.threads import KeyedLock, mapped
from lumos.core.platform.unreadable import UNFIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import JsonValue

    from lumos.core.platform.search_match import Narrowed

_ATTEMPTS: Final = 4
_IDENTITY: Final = "identity"
_EXTENSION: Final = "extension"
_EDGE: Final = "lineage_edge"
_OF_ONE: Final = (*UNFIT, PlatformFailureError, PlatformNotFoundError)
"""Errors about one table: a value it cannot read, or that it is gone or makes the server fail."""
_LEAST_VERSION = (1, 11)
"""The first one that Lumos is meant for."""


class OpenMetadataHandler(CatalogHandler):
    """A catalog on an OpenMetadata server, 1.11 or later."""

    name = NAME
    FIDELITY = FIDELITY
    LIMITED = frozenset({"owner", "domain"})
    CONCURRENCY = 8
    EDGE_BATCH = 20
    LOOK_UP = 100
    BATCH = 50

    def __init__(self, api: OpenMetadataApi, settings: OpenMetadataSettings) -> None:
        self._api = api
        self._workers = workers = settings.workers
        self._locks = KeyedLock()
        self._store = SideStore(OwnContainers(api))
        self._fields = FieldWriter(api)
        self._words = Vocabulary(api, self._store, fields=self._fields)
        references = References(api, self._words, rules=settings.entity_rules)
        self._datasets = DatasetWires(
            api, references, fields=self._fields, profile_days=settings.profile_days
        )
        self._jobs = JobWires(api, self._datasets, fields=self._fields)
        self._look_up = LookUp(api, self._datasets, workers=workers)
        self._bulk = BulkWires(api, self._datasets, look_up=self._look_up, workers=workers)
        self._definitions = Definitions(api)
        self._lineage = LineageWires(api, self._datasets.urn_of_reference)

    @classmethod
    @override
    def from_config(cls, config: Mapping[str, JsonValue]) -> Self:
        return cls.at(cls._checked(OpenMetadataSettings, config))

    @classmethod
    def at(cls, settings: OpenMetadataSettings, *, retries: RetryPolicy = DEFAULT_RETRIES) -> Self:
        """Return the adapter for a server; nothing is sent yet."""
        token = settings.auth_token
        http = CatalogHttp(
            f"{settings.server.rstrip('/').removesuffix('/api')}/api/v1",
            name=NAME,
            headers={"Authorization": f"Bearer {token.get_secret_value()}"} if token else {},
            timeout=settings.timeout,
            verify=settings.verify,
            retries=retries,
            connections=settings.workers,
            login=TOKEN if token else NOBODY,
            limits=settings.answer_limits,
        )
        return cls(OpenMetadataApi(http, page_size=settings.page_size), settings)

    @override
    def reached(self) -> str:
        version = usable_version(self._api.place, self._api.version(), least=_LEAST_VERSION)
        self._api.find("user", "admin")
        return f"{self.name} {version}"

    @override
    def apply(self, batch: Batch, seen: Mapping[str, Seen] | None = None) -> None:
        if NAME in batch.definitions:
            _unless_changed_meanwhile(partial(self._definitions.make, batch.definitions[NAME]))
        for entity in batch.entities:
            self._emit_entity(entity)
        if batch.datasets:
            self._emit_datasets(batch.models(), seen or {})
        if batch.edges:
            self._emit_edges(batch.edges)
        for edge in batch.removed_edges:
            self._remove_edge(edge)
        for urn in batch.removed_datasets:
            self._remove(Urn(urn))
        for identity in batch.identities:
            self._emit_identity(identity)
        for name, value in batch.extensions.items():
            put = partial(put_value, self._store, _EXTENSION, name, value=value)
            _unless_changed_meanwhile(put)

    def _emit_datasets(self, datasets: Sequence[LumosDataset], seen: Mapping[str, Seen]) -> None:
        latest = {dataset.urn: _without_lineage(dataset) for dataset in datasets}
        versions = {urn: seen[urn].version for urn in latest if urn in seen}
        known = {
            urn: node
            for urn, node in versions.items()
            if isinstance(node, Node) and lies_at(node, place_of(urn))
        }
        absent = {urn for urn, node in versions.items() if node is None}
        self._refuse_changed([urn for urn in versions if urn not in known.keys() | absent], seen)

        def update(urn: Urn) -> None:
            self._datasets.write_at(place_of(urn), known[urn].entity, dataset=latest[urn])

        with self._hold(*known):
            deque(mapped(update, known, workers=min(self._workers, len(known) or 1)), maxlen=0)
        others = {urn: dataset for urn, dataset in latest.items() if urn not in known}
        with self._hold(*others):
            left = self._bulk.write(others, absent=absent)
            write = partial(self._write, absent=absent)
            deque(mapped(write, left, workers=min(self._workers, len(left) or 1)), maxlen=0)
        for dataset in datasets:
            self._connect(dataset)

    @override
    def get_dataset(self, urn: str) -> LumosDataset:
        name = Urn(urn)
        node = self._datasets.find(name)
        dataset = self._datasets.read(node) if node else None
        if node is None or dataset is None:
            raise DatasetNotFoundError(name, platform=self.name)
        return self._lineage.around(node, dataset)

    @override
    def find_datasets(self, urns: Sequence[str]) -> dict[str, Seen]:
        nodes = self._look_up.nodes([*map(Urn, urns)])
        read = partial(self._datasets.read, with_profile=False)
        datasets = mapped(read, nodes.values(), workers=min(self._workers, len(nodes) or 1))
        found: dict[str, Seen] = {urn: Seen() for urn in urns}
        for (urn, node), dataset in zip(nodes.items(), datasets, strict=True):
            found[urn] = Seen(dataset, node)
        return found

    def _emit_edges(self, edges: Sequence[LineageEdge]) -> None:
        ends = [urn for edge in edges for urn in (edge.upstream_urn, edge.downstream_urn)]
        known = self._look_up.nodes(ends) if len(edges) > 1 else {}
        into: dict[Urn, list[LineageEdge]] = {}
        for edge in edges:
            into.setdefault(edge.downstream_urn, []).append(edge)
        for urn, some in into.items():
            self._lead_to(urn, some, known=known)

    @override
    def list_edges(self) -> Iterator[LineageEdge]:
        self._unread.begin(_EDGE)
        nodes = self._datasets.nodes(self._unread, kind=_EDGE)
        found = mapped(partial(self._edges_into, Streak()), nodes, workers=self._workers)
        return iter(sorted((edge for edges in found for edge in edges), key=lambda edge: edge.key))

    def _edges_into(self, streak: Streak, node: Node) -> list[LineageEdge]:
        try:
            return [edge for edges in self._lineage.into(node).values() for edge in edges]
        except _OF_ONE as error:
            self._pass_over(_EDGE, node, error=error, streak=streak)
            return []

    def _pass_over(self, kind: str, node: Node, *, error: Exception, streak: Streak) -> None:
        """Note what cannot be read, unless the server fails at everything."""
        if isinstance(error, LumosError) and streak.ends_run(error):
            raise error
        self._unread.add(kind, name_in(node.entity), error=error)

    def _remove_edge(self, edge: LineageEdge) -> None:
        def remove() -> None:
            upstream = self._datasets.find(edge.upstream_urn)
            downstream = self._datasets.find(edge.downstream_urn)
            if upstream is None or downstream is None:
                return
            held = self._lineage.into(downstream).get(upstream.urn, ())
            rest = tuple(each for each in held if each.key != edge.key)
            if rest != held:
                self._put_edges(downstream, [Between(upstream, rest)])

        with self._hold(edge.downstream_urn):
            _unless_changed_meanwhile(remove)

    def _emit_entity(self, entity: Entity) -> None:
        if isinstance(entity, Job):
            job = entity
            _unless_changed_meanwhile(lambda: self._jobs.write(job))
        else:
            word: Word = entity
            _unless_changed_meanwhile(lambda: self._words.emit(kind_of(word), word))

    def _emit_identity(self, identity: Identity) -> None:
        name = Urn(identity.urn)

        def add() -> None:
            known = get_value(self._store, _IDENTITY, name)
            others = known if isinstance(known, dict) else {}
            value: JsonValue = {**others, identity.catalog: identity.external_id}
            put_value(self._store, _IDENTITY, name, value=value)

        _unless_changed_meanwhile(add)

    @override
    def identity_map(self) -> dict[Urn, dict[str, str]]:
        self._unread.begin(_IDENTITY)
        return {
            Urn(urn): {name: str(value) for name, value in as_object(ids, "ids").items()}
            for urn, ids in values(self._store, _IDENTITY, self._unread).items()
        }

    @override
    def extensions(self) -> dict[str, JsonValue]:
        self._unread.begin(_EXTENSION)
        found = values(self._store, _EXTENSION, self._unread)
        own = merged(found.get(NAME), self._definitions.all())
        return found if own is None else {**found, NAME: own}

    def _remove(self, urn: Urn) -> None:
        node = self._datasets.find(urn)
        if node is None or node.stash.get(MENTIONED):
            raise DatasetNotFoundError(urn, platform=self.name)
        around = self._lineage.neighbours(node.type, node.entity)
        for identity in around.upstream:
            self._api.delete_edge(around.references[identity], node.reference)
        for identity in around.downstream:
            downstream = self._datasets.urn_of_reference(around.references[identity])
            with self._hold(downstream):
                _unless_changed_meanwhile(partial(self._part, node, downstream))
        _unless_changed_meanwhile(lambda: self._datasets.remove(node))

    def _hold(self, *urns: str) -> AbstractContextManager[None]:
        """Hold the locks of some datasets while they are read and written."""
        return self._locks.hold(urns)

    @override
    def notices(self) -> tuple[str, ...]:
        return self._fields.notices()

    @override
    def close(self) -> None:
        self._api.close()

    @override
    def _entities(self, kind: EntityKind) -> Iterable[Entity]:
        if kind == "job":
            return self._jobs.all(self._unread)
        return self._words.all(kind, self._unread)

    @override
    def _narrowed(self, words: tuple[str, ...]) -> Narrowed:
        return narrowed(self._api, self._datasets, words=words, workers=self._workers)

    @override
    def _pages(self, platform: str | None, page_size: int) -> Iterator[LumosDataset]:
        def read(node: Node) -> tuple[LumosDataset | None, Node]:
            return self._datasets.read(node, with_tests=False, with_profile=False), node

        nodes = self._datasets.nodes(self._unread)
        pairs = self._unread.each("dataset", nodes, read, name=lambda node: name_in(node.entity))
        found = [
            (dataset, node)
            for dataset, node in pairs
            if dataset is not None and platform in {None, dataset.platform}
        ]
        found.sort(key=lambda pair: pair[0].urn)
        whole = mapped(partial(self._with_lineage, Streak()), found, workers=self._workers)
        yield from (dataset for dataset in whole if dataset is not None)

    def _with_lineage(
        self, streak: Streak, found: tuple[LumosDataset, Node]
    ) -> LumosDataset | None:
        dataset, node = found
        try:
            return self._lineage.around(node, self._datasets.completed(node, dataset))
        except _OF_ONE as error:
            self._pass_over("dataset", node, error=error, streak=streak)
            return None

    def _write(self, dataset: LumosDataset, *, absent: Collection[Urn] = ()) -> None:
        """Write a dataset; one that was looked up and was not there is only created.

        Raises:
            PlatformConflictError: somebody made it since.
        """
        if dataset.urn in absent:
            self._datasets.create(dataset)
        else:
            _unless_changed_meanwhile(partial(self._datasets.write, dataset))

    def _connect(self, dataset: LumosDataset) -> None:
        """Make edges of the neighbours that a dataset lists and the catalog does not know."""
        leads_to_itself = ITSELF in kept_of(dataset)
        if dataset.lineage == DatasetLineage() and not leads_to_itself:
            return
        node = self._datasets.find(dataset.urn)
        if node and leads_to_itself:
            self._lineage.put_itself(node, dataset)
        known = self._lineage.of(node.type, node.entity) if node else DatasetLineage()
        held = {*known.ends(dataset.urn)}
        new = [
            LineageEdge(upstream_urn=upstream, downstream_urn=downstream)
            for upstream, downstream in dataset.lineage.ends(dataset.urn)
            if (upstream, downstream) not in held
        ]
        if new:
            self._emit_edges(new)

    def _lead_to(
        self, urn: Urn, edges: Sequence[LineageEdge], *, known: Mapping[Urn, Node]
    ) -> None:
        """Add edges that lead to one dataset, of which and of whose neighbours some are known."""
        added: dict[Urn, list[LineageEdge]] = {}
        for edge in edges:
            added.setdefault(edge.upstream_urn, []).append(edge)
        upstreams = {each: known.get(each) or self._mentioned(each) for each in added}
        read = [known[urn]] if urn in known else []

        def add() -> None:
            downstream = read.pop() if read else self._datasets.mention(urn)
            held = self._lineage.into(downstream)
            between = []
            for each, some in added.items():
                before = {edge.key: edge for edge in held.get(upstreams[each].urn, ())}
                after = {**before, **{edge.key: edge for edge in some}}
                if after != before:
                    between.append(Between(upstreams[each], [*after.values()]))
            if between:
                self._put_edges(downstream, between)

        with self._hold(urn):
            _unless_changed_meanwhile(add)

    def _mentioned(self, urn: Urn) -> Node:
        with self._hold(urn):
            return self._datasets.mention(urn)

    def _part(self, upstream: Node, urn: Urn) -> None:
        """Remove all edges from one dataset to another."""
        downstream = self._datasets.find(urn)
        if downstream is not None:
            self._put_edges(downstream, [Between(upstream, ())])

    def _put_edges(self, downstream: Node, between: Iterable[Between]) -> None:
        self._datasets.keep(downstream, self._lineage.write(downstream, between))


def _without_lineage(dataset: LumosDataset) -> LumosDataset:
    if dataset.lineage == DatasetLineage():
        return dataset
    return with_parts(dataset, lineage=DatasetLineage())


def _unless_changed_meanwhile(act: Callable[[], None]) -> None:
    """Do something that begins by reading; begin anew where that no longer holds, or may not.

    Raises:
        PlatformError: what went wrong the last time.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return act()
        except PlatformConflictError as error:
            if attempt == _ATTEMPTS - 1:
                cause = error.__cause__
                raise (cause if isinstance(cause, PlatformError) else error) from None
    return None
