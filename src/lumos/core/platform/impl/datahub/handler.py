"""DataHub as a catalog of Lumos."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING, Self, TypeVar

from typing_extensions import override

from lumos.core.errors import DatasetNotFoundError, PlatformConflictError
from lumos.core.json_reading import as_texts, list_at, object_at
from lumos.core.models import DatasetLineage, LumosDataset, Urn
from lumos.core.platform.batch import Batch, Document, Seen
from lumos.core.platform.catalog_handler import CatalogHandler
from lumos.core.platform.http import DEFAULT_RETRIES, CatalogHttp, RetryPolicy
from lumos.core.platform.impl.datahub.client import (
    DataHubClient,
    StoredEntity,
    Write,
    is_removed,
    pages_of,
)
from lumos.core.platform.impl.datahub.fidelity import FIDELITY
from lumos.core.platform.impl.datahub.mapping.aspects import EXTENSION, DatasetConversion
from lumos.core.platform.impl.datahub.mapping.containers import ASPECT as CONTAINER
from lumos.core.platform.impl.datahub.mapping.containers import innermost
from lumos.core.platform.impl.datahub.mapping.emptied import DELETED
from lumos.core.platform.impl.datahub.mapping.entities import (
    FORMS,
    WITHOUT_PROPERTIES,
    Converted,
    read_entity,
    wire_entity,
)
from lumos.core.platform.impl.datahub.mapping.merging import merged
from lumos.core.platform.impl.datahub.reader import (
    DATASET,
    LARGEST_PAGE,
    DatasetReader,
    is_dataset,
)
from lumos.core.platform.impl.datahub.search import narrowed
from lumos.core.platform.impl.datahub.settings import DataHubSettings
from lumos.core.platform.impl.datahub.side_store import (
    HiddenContainers,
    named,
    pair_of,
    put_residue,
    residues,
)
from lumos.core.platform.impl.datahub.writer.companions import Companions, Stated
from lumos.core.platform.impl.datahub.writer.definitions import Definitions
from lumos.core.platform.impl.datahub.writer.edges import EdgeStore
from lumos.core.platform.impl.datahub.writer.foreign import NAME as FOREIGN
from lumos.core.platform.impl.datahub.writer.foreign import ForeignEntities, is_foreign
from lumos.core.platform.interface import Entity, EntityKind, kind_of, name_of
from lumos.core.platform.login import NOBODY, TOKEN
from lumos.core.platform.server_version import usable_version
from lumos.core.platform.side_store import SideStore

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.models import LineageEdge
    from lumos.core.platform.search_match import Narrowed

T = TypeVar("T")
_IDENTITY, _EXTENSION = "identity", "extension"
_CONFLICTS = 20
_STRUCTURED = "structuredProperties"

_LEAST_VERSION = (0, 14)
"""The first one whose interface v3 has all that is asked of it."""


class DataHubHandler(CatalogHandler):
    """A DataHub server, through its OpenAPI v3; every write waits for its answer."""

    name = "datahub"
    FIDELITY = FIDELITY
    CONCURRENCY = 8
    BATCH = 30  # of some six aspects each; a request takes 200
    EDGE_BATCH = LARGEST_PAGE
    LOOK_UP = LARGEST_PAGE

    def __init__(
        self, settings: DataHubSettings, *, retries: RetryPolicy = DEFAULT_RETRIES
    ) -> None:
        """Get ready; nothing is sent yet."""
        headers = {}
        if settings.token is not None:
            headers["Authorization"] = f"Bearer {settings.token.get_secret_value()}"
        self._settings = settings
        self._http = CatalogHttp(
            settings.gms_server,
            name=self.name,
            headers=headers,
            timeout=settings.timeout_seconds,
            verify=settings.verify,
            retries=retries,
            connections=settings.workers + settings.slices,
            login=NOBODY if settings.token is None else TOKEN,
            limits=settings.answer_limits,
        )
        self._client = DataHubClient(self._http, settings)
        self._conversion = DatasetConversion(settings.environment)
        self._edges = EdgeStore(self._client, settings.environment)
        self._store = SideStore(HiddenContainers(self._client))
        self._definitions = Definitions(self._client)
        self._foreign = ForeignEntities(
            self._client,
            settings.environment,
            definitions=self._definitions,
            store=self._store,
        )
        self._companions = Companions(self._client)
        self._reader = DatasetReader(
            self._http,
            self._client,
            settings=settings,
            conversion=self._conversion,
            companions=self._companions,
        )
        self._beside = Lock()  # what a dataset needs is there before it, whichever thread sends it

    @classmethod
    @override
    def from_config(cls, config: Mapping[str, JsonValue]) -> Self:
        return cls(cls._checked(DataHubSettings, config))

    @override
    def apply(self, batch: Batch, seen: Mapping[str, Seen] | None = None) -> None:
        for extension, value in batch.definitions.items():
            if extension == FOREIGN and is_foreign(value):
                retried(partial(self._foreign.define, value))
        for entity in batch.entities:
            self._emit_entity(entity)
        for part in pages_of(batch.documents(), LARGEST_PAGE):
            self._emit_datasets(part, seen or {})
        for edges in pages_of(batch.edges, self.EDGE_BATCH):
            retried(partial(self._edges.put, edges))
        for edge in batch.removed_edges:
            retried(partial(self._edges.remove, edge))
        for urn in batch.removed_datasets:
            self._remove(Urn(urn))
        for each in batch.identities:
            name: JsonValue = [Urn(each.urn), each.catalog]
            self._store.put(_IDENTITY, named(name, each.external_id))
        for extension, value in batch.extensions.items():
            self._emit_extension(extension, value)

    @override
    def get_dataset(self, urn: str) -> LumosDataset:
        name = Urn(urn)
        return self._reader.whole(self._held(name, self._conversion.datahub_urn(name)))

    @override
    def find_datasets(self, urns: Sequence[str]) -> dict[str, Seen]:
        names = {self._conversion.datahub_urn(Urn(urn)): urn for urn in urns}
        found: dict[str, Seen] = {urn: Seen() for urn in urns}
        for part in pages_of([*names], LARGEST_PAGE):
            for held in self._client.get(DATASET, part):
                dataset = self._reader.found(held)
                hidden = self._reader.hidden(held) if dataset is not None else frozenset()
                found[names[held.urn]] = Seen(dataset, hidden=hidden, version=held)
        return found

    @override
    def list_edges(self) -> Iterator[LineageEdge]:
        self._unread.begin("lineage_edge")
        return iter(sorted(self._edges.all(self._unread), key=lambda edge: edge.key))

    def _emit_entity(self, entity: Entity) -> None:
        document = entity.to_json()
        made = wire_entity(kind_of(entity), document, environment=self._settings.environment)
        self._companions.ensure(made.before)
        retried(partial(self._put_entity, kind_of(entity), document, made=made))
        if made.kind in WITHOUT_PROPERTIES:
            put_residue(self._store, made.kind, made.urn, left=made.beside)

    @override
    def identity_map(self) -> dict[Urn, dict[str, str]]:
        self._unread.begin(_IDENTITY)
        read = self._store.read(_IDENTITY, pair_of, unread=self._unread, kind=_IDENTITY)
        found: dict[Urn, dict[str, str]] = {}
        for name, value in read.values():
            urn, catalog = as_texts(name, "name")
            found.setdefault(Urn(urn), {})[catalog] = str(value)
        return {urn: dict(sorted(found[urn].items())) for urn in sorted(found)}

    def _emit_extension(self, name: str, value: JsonValue) -> None:
        if name == FOREIGN and is_foreign(value):
            retried(lambda: self._foreign.write(value))
        else:
            self._store.put(_EXTENSION, named(name, value))

    @override
    def extensions(self) -> dict[str, JsonValue]:
        self._unread.begin(_EXTENSION)
        read = self._store.read(_EXTENSION, pair_of, unread=self._unread, kind=_EXTENSION)
        kept = {str(name): value for name, value in sorted(read.values(), key=_name)}
        foreign = self._foreign.read()
        return kept if foreign is None else dict(sorted({**kept, FOREIGN: foreign}.items()))

    def _remove(self, name: Urn) -> None:
        there = self._conversion.datahub_urn(name)
        self._held(name, there)
        retried(lambda: self._edges.remove_all_of(name))
        if self._settings.hard_delete:
            self._client.delete(DATASET, there)
        else:
            self._client.write([Write(DATASET, there, {"status": {"removed": True}})])

    @override
    def notices(self) -> tuple[str, ...]:
        return (*self._companions.notices(), *self._definitions.notices())

    @override
    def close(self) -> None:
        self._http.close()

    def server_version(self) -> str:
        """Return the version that the server says it has."""
        return self._client.version()

    @override
    def reached(self) -> str:
        version = usable_version(self._http.place, self._client.version(), least=_LEAST_VERSION)
        self._client.get(DATASET, [self._conversion.datahub_urn(Urn.of("lumos", "doctor"))])
        return f"{self.name} {version}"

    @override
    def _entities(self, kind: EntityKind) -> Iterable[Entity]:
        environment = self._settings.environment
        there = FORMS[kind].kind
        beside = residues(self._store, there) if there in WITHOUT_PROPERTIES else {}

        def entity(held: StoredEntity) -> Entity | None:
            aspects = held.aspects
            return read_entity(kind, held.urn, aspects, environment=environment, beside=beside)

        read = self._unread.each(kind, self._client.scroll(there), entity, name=attrgetter("urn"))
        return sorted((entity for entity in read if entity is not None), key=name_of)

    @override
    def _narrowed(self, words: tuple[str, ...]) -> Narrowed:
        self._client.wait_for_index(DATASET)
        return narrowed(self._http, self._conversion, words=words, is_dataset=is_dataset)

    def _emit_datasets(self, documents: Sequence[Document], seen: Mapping[str, Seen]) -> None:
        if known := [each for each in documents if each["urn"] in seen]:
            versions = (seen[str(each["urn"])].version for each in known)
            self._emit(known, over=[each for each in versions if isinstance(each, StoredEntity)])
        if others := [each for each in documents if each["urn"] not in seen]:
            retried(partial(self._emit, others))
        for document in documents:
            if lineage := document.get("lineage"):
                name = Urn(str(document["urn"]))
                self._emit_neighbours(name, DatasetLineage.from_json(lineage))

    def _emit(
        self, datasets: Sequence[Document], *, over: Sequence[StoredEntity] | None = None
    ) -> None:
        """Write datasets over what was read of them, or else over what is there now."""
        documents = {self._conversion.datahub_urn(str(each["urn"])): each for each in datasets}
        there_now = self._client.get(DATASET, [*documents]) if over is None else over
        held = {each.urn: each for each in there_now}
        assigned = [each.aspects.get(_STRUCTURED) for each in there_now]
        self._definitions.learn(documents.values(), there=assigned)
        made = {each: self._aspects(each, documents[each], held.get(each)) for each in documents}
        self._create_companions(documents, made)
        writes: list[Write] = []
        gone: list[tuple[StoredEntity, str]] = []
        for there, document in documents.items():
            before = held.get(there) or StoredEntity(there, {}, {})
            aspects = made[there]
            if self._companions.lacks(_container_in(aspects)):
                aspects = self._aspects(there, document, before)
            changed = {
                name: value for name, value in aspects.items() if before.aspects.get(name) != value
            }
            if changed:
                writes.append(Write(DATASET, there, changed, versions=before.versions))
            seen = {
                name: value
                for name, value in self._conversion.series(document).items()
                if before.aspects.get(name) != value
            }
            writes.append(Write(DATASET, there, seen, headers={}))
            gone.extend(
                (before, name) for name in DELETED if name in before.aspects.keys() - aspects
            )
        self._client.write(writes)
        for before, name in gone:
            self._client.delete_aspect(DATASET, before, name)
        self._put_assertions(documents, held, only_changed=over is not None)

    def _aspects(self, there: str, document: Document, held: StoredEntity | None) -> Json:
        """Return the aspects that a dataset is to have."""
        before = {} if held is None else held.aspects
        properties = before.get(_STRUCTURED)
        aspects = self._conversion.aspects(
            document,
            knows=partial(self._has_place, there),
            there=before,
            takes=partial(self._definitions.takes, dataset=there, there=properties),
        )
        if CONTAINER in before and not _is_from_here(document):
            aspects.pop(CONTAINER, None)  # who put it elsewhere knows better
        return self._definitions.with_immutable(aspects, properties)

    def _create_companions(
        self, documents: Mapping[str, Document], made: Mapping[str, Json]
    ) -> None:
        """Create what datasets refer to and is not there."""
        with self._beside:
            for there, document in documents.items():
                own = _container_in(made[there]) == innermost(there)
                self._companions.prepare(there, document, container=own)
            self._companions.flush()

    def _has_place(self, there: str, aspect: str) -> bool:
        """Return whether the server can hold an aspect of a dataset."""
        if aspect == CONTAINER and self._companions.lacks(innermost(there)):
            return False
        return self._client.knows(DATASET, aspect)

    def _put_assertions(
        self,
        documents: Mapping[str, Document],
        held: Mapping[str, StoredEntity],
        *,
        only_changed: bool,
    ) -> None:
        stated: list[Stated] = []
        for there, document in documents.items():
            known = held.get(there)
            earlier = self._conversion.document(there, known.aspects) if known else {}
            if only_changed and _checked_alike(earlier, document):
                continue
            before = list_at(earlier, "assertions")
            if before or document.get("assertions"):
                stated.append(Stated(there, document, before))
        self._companions.put_assertions(stated)

    def _emit_neighbours(self, urn: Urn, lineage: DatasetLineage) -> None:
        for upstream, downstream in lineage.ends(urn):
            retried(partial(self._edges.put_unless_known, upstream, downstream))

    def _held(self, name: Urn, there: str) -> StoredEntity:
        found = self._client.get(DATASET, [there])
        if not found or not is_dataset(found[0]):
            raise DatasetNotFoundError(name, platform=self.name)
        return found[0]

    @override
    def _pages(self, platform: str | None, page_size: int) -> Iterator[LumosDataset]:
        return self._reader.pages(platform, page_size, unread=self._unread)

    def _put_entity(self, kind: EntityKind, document: Json, *, made: Converted) -> None:
        """Write what Lumos knows of an entity; all else that stands in its aspects stays."""
        found = self._client.get(made.kind, [made.urn])
        held = found[0] if found else StoredEntity(made.urn, {}, {})
        aspects = merged(
            kind, document, made=made, held=held, environment=self._settings.environment
        )
        if is_removed(held):
            aspects = {**aspects, "status": {"removed": False}}
        changed = {
            name: value for name, value in aspects.items() if held.aspects.get(name) != value
        }
        self._client.write([Write(made.kind, made.urn, changed, versions=held.versions)])


def retried(act: Callable[[], T]) -> T:
    """Do what reads before it writes again while somebody else writes in between."""
    for _ in range(_CONFLICTS - 1):
        try:
            return act()
        except PlatformConflictError:
            continue
    return act()


def _name(pair: tuple[JsonValue, JsonValue]) -> str:
    return str(pair[0])


def _container_in(aspects: Mapping[str, JsonValue]) -> str | None:
    container = aspects.get(CONTAINER)
    return str(container.get(CONTAINER)) if isinstance(container, dict) else None


def _checked_alike(one: Mapping[str, JsonValue], other: Mapping[str, JsonValue]) -> bool:
    """Return whether two states of a dataset have the same assertions and results of checks."""
    return all(one.get(name) == other.get(name) for name in ("assertions", "quality"))


def _is_from_here(document: Mapping[str, JsonValue]) -> bool:
    """Return whether a dataset was once read from a DataHub, and says how it stood there."""
    return EXTENSION in object_at(document, "extensions")
