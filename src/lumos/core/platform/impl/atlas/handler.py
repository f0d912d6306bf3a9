"""The platform adapter of Apache Atlas."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Self, cast

from typing_extensions import override

from lumos.core.errors import (
    DatasetNotFoundError,
    InvalidUrnError,
    PlatformError,
    PlatformForbiddenError,
)
from lumos.core.json_reading import find_object, find_objects, find_text, object_or_empty
from lumos.core.models import (
    DatasetLineage,
    GlossaryTerm,
    LineageEdge,
    LumosDataset,
    Tag,
    Urn,
    with_parts,
)
from lumos.core.platform.batch import Batch, Seen
from lumos.core.platform.catalog_handler import CatalogHandler
from lumos.core.platform.impl.atlas.client import NAME, AtlasClient, is_hidden
from lumos.core.platform.impl.atlas.fidelity import FIDELITY
from lumos.core.platform.impl.atlas.mapping.datasets import (
    DatasetEntity,
    dataset_entity,
    is_placeholder,
    tags_of,
)
from lumos.core.platform.impl.atlas.mapping.foreign import foreign_names, foreign_urn
from lumos.core.platform.impl.atlas.mapping.own_values import OWN
from lumos.core.platform.impl.atlas.mapping.things import (
    THINGS,
    edge_key,
    thing_entity,
    thing_of,
)
from lumos.core.platform.impl.atlas.mapping.typedefs import DATASET, EDGE, TYPE_NAMES
from lumos.core.platform.impl.atlas.mapping.wire import is_live
from lumos.core.platform.impl.atlas.reader.datasets import DatasetReader, live_columns, name_in
from lumos.core.platform.impl.atlas.search import AtlasSearch
from lumos.core.platform.impl.atlas.settings import AtlasSettings
from lumos.core.platform.impl.atlas.side_store import OwnEntities, under_name
from lumos.core.platform.impl.atlas.writer.datasets import DatasetWriter
from lumos.core.platform.impl.atlas.writer.edges import EdgeWriter, End
from lumos.core.platform.impl.atlas.writer.own_types import OwnTypes
from lumos.core.platform.impl.atlas.writer.vocabulary import Vocabulary
from lumos.core.platform.interface import Entity, EntityKind, changed_since, name_of
from lumos.core.platform.server_version import usable_version
from lumos.core.platform.side_store import SideStore
from lumos.core.platform.unreadable import UnreadableItems

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.platform.search_match import Narrowed


_ASKED = {DATASET: ("placeholder",)}
_LOCKS = 64
_IDENTITY, _EXTENSION = "identity", "extension"
_LEAST_VERSION = (2, 0)
"""The first one with relationships, glossaries and propagation that can be turned off."""


class AtlasHandler(CatalogHandler):
    """Apache Atlas, through its REST interface of version 2."""

    name = NAME
    FIDELITY = FIDELITY
    CONCURRENCY = 8
    BATCH = 20
    EDGE_BATCH = 50
    LOOK_UP = 50

    def __init__(self, settings: AtlasSettings) -> None:
        self._settings = settings
        self._client = AtlasClient(settings)
        self._vocabulary = Vocabulary(self._client, glossary=settings.glossary)
        self._reader = DatasetReader(
            self._client, self._vocabulary, table_types=settings.table_types
        )
        self._search = AtlasSearch(
            self._client,
            self._reader,
            table_types=settings.table_types,
            is_known=self._is_known,
        )
        self._writer = DatasetWriter(self._client, self._vocabulary)
        self._types = OwnTypes(self._client, self._vocabulary)
        self._store = SideStore(OwnEntities(self._client, self._types, listed=self._all))
        self._locks = tuple(Lock() for _ in range(_LOCKS))
        self._edge_writer = EdgeWriter(self._client, locked=self._locked)

    @classmethod
    @override
    def from_config(cls, config: Mapping[str, JsonValue]) -> Self:
        return cls(cls._checked(AtlasSettings, config))

    @override
    def reached(self) -> str:
        version = usable_version(self._client.place, self._client.version(), least=_LEAST_VERSION)
        self._client.type_names()
        return f"{self.name} {version}"

    @override
    def apply(self, batch: Batch, seen: Mapping[str, Seen] | None = None) -> None:
        for entity in batch.entities:
            self._emit_entity(entity)
        if batch.datasets:
            self._emit_datasets(batch.models(), seen or {})
        if batch.edges:
            self._emit_edges(batch.edges)
        for edge in batch.removed_edges:
            self._remove(self._client.entity(EDGE, edge_key(edge)))
        for urn in batch.removed_datasets:
            self._remove_dataset(Urn(urn))
        for urn, catalog, external_id in batch.identities:
            identity: Json = {"urn": Urn(urn), "catalog": catalog, "id": external_id}
            self._store.put(_IDENTITY, under_name(_IDENTITY, identity))
        for name, value in batch.extensions.items():
            self._store.put(_EXTENSION, under_name(_EXTENSION, {"name": name, "value": value}))

    def _emit_datasets(self, datasets: Sequence[LumosDataset], seen: Mapping[str, Seen]) -> None:
        self._types.ensure()
        held = self._written({dataset.urn: dataset for dataset in datasets}, seen)
        for dataset in datasets:
            self._connect(dataset, held.get(dataset.urn))

    def _written(
        self, datasets: Mapping[Urn, LumosDataset], seen: Mapping[str, Seen]
    ) -> Mapping[str, tuple[Json, Json]]:
        """Write datasets without lineage, and return what was held of them before.

        Raises:
            PlatformConflictError: one is no longer what was seen of it; nothing is written.
        """
        with self._locked(datasets):
            held = self._client.named(DATASET, datasets)
            for urn in datasets:
                if urn in seen:
                    self._refuse_other(urn, seen[urn].version, held.get(urn))
            changed = []
            for urn, dataset in datasets.items():
                before, known = held.get(urn), None
                if before is not None and not is_placeholder(before[0]):
                    known = self._reader.dataset(*before)
                if with_parts(dataset, lineage=DatasetLineage()) != known:
                    changed.append((dataset, before))
            undefined = self._undefined_tags(dataset for dataset, _ in changed)
            self._writer.write(
                [(self._entity_of(dataset, undefined), before) for dataset, before in changed]
            )
        return held

    def _entity_of(self, dataset: LumosDataset, undefined: Collection[str]) -> DatasetEntity:
        business = self._vocabulary.business_metadata() if OWN in dataset.extensions else {}
        return dataset_entity(dataset, business=business, undefined=undefined)

    def _undefined_tags(self, datasets: Iterable[LumosDataset]) -> set[str]:
        """Return the tags of datasets that have no classification where none can be made."""
        wanted = {tag for dataset in datasets for tag in tags_of(dataset)}
        return wanted - self._vocabulary.define_tags(wanted).keys()

    def _refuse_other(self, urn: Urn, seen: object, now: tuple[Json, Json] | None) -> None:
        """Compare what was seen with what is there now, as Atlas itself does not."""
        before = cast("tuple[Json, Json] | None", seen)
        if not _is_same(before, now) and self._shown(before) != self._shown(now):
            raise changed_since(urn, place=self._client.place)

    def _shown(self, held: tuple[Json, Json] | None) -> LumosDataset | None:
        if held is None or is_placeholder(held[0]):
            return None
        return self._reader.dataset(*held)

    def _connect(self, dataset: LumosDataset, held: tuple[Json, Json] | None) -> None:
        """Add the edges to neighbours that a dataset lists, where there are none."""
        listed = dataset.lineage.ends(dataset.urn)
        if not listed:
            return
        edges = self._reader.edges([held[0]] if held else [])
        neighbours = {(edge.upstream_urn, edge.downstream_urn) for edge in edges}
        for upstream, downstream in listed:
            if (upstream, downstream) not in neighbours:
                edge = LineageEdge(upstream_urn=upstream, downstream_urn=downstream)
                self._emit_edges([edge])

    @override
    def get_dataset(self, urn: str) -> LumosDataset:
        entity, referred = self._held(Urn(urn)) or self._foreign(Urn(urn))
        unread = UnreadableItems()
        for dataset in self._reader.datasets([entity], referred, unread=unread):
            return dataset
        raise next(iter(unread)).error

    @override
    def find_datasets(self, urns: Sequence[str]) -> dict[str, Seen]:
        held = self._client.named(DATASET, [*map(Urn, urns)]) if urns else {}
        own = {urn: each for urn, each in held.items() if not is_placeholder(each[0])}
        others = self._foreign_together([Urn(urn) for urn in urns if urn not in own])
        shown = {**others, **own}
        return {
            urn: Seen(self._reader.dataset(*shown[urn]) if urn in shown else None, held.get(urn))
            for urn in urns
        }

    def _emit_edges(self, edges: Sequence[LineageEdge]) -> None:
        self._types.ensure()
        if len(edges) == 1:
            self._edge_writer.write(edges[0])
        else:
            self._edge_writer.write_all(edges)

    @override
    def list_edges(self) -> Iterator[LineageEdge]:
        self._unread.begin("lineage_edge")
        guids = {str(head.get("guid")) for head in self._heads(EDGE, "lineage_edge")}
        if self._settings.table_types:
            others = self._heads("Process", "lineage_edge", with_subtypes=True)
            guids |= {str(head.get("guid")) for head in others}
        edges = {edge.key: edge for edge in self._reader.edges_of(sorted(guids), self._unread)}
        return iter([edges[key] for key in sorted(edges)])

    def _emit_entity(self, entity: Entity) -> None:
        if isinstance(entity, Tag):
            self._vocabulary.put_tag(entity)
        elif isinstance(entity, GlossaryTerm):
            self._vocabulary.put_term(entity)
        else:
            self._types.ensure()
            written = thing_entity(entity)
            if entity_ends := {*getattr(entity, "inputs", ()), *getattr(entity, "outputs", ())}:
                ends = self._edge_writer.ends(entity_ends)
                written = _with_ends(written, entity, ends)
            self._client.put([{**written, "guid": "-1"}])

    @override
    def identity_map(self) -> dict[Urn, dict[str, str]]:
        found: dict[Urn, dict[str, str]] = {}
        self._unread.begin(_IDENTITY)
        read = self._store.read(_IDENTITY, _identity, unread=self._unread, kind=_IDENTITY)
        for urn, catalog, external_id in read.values():
            found.setdefault(urn, {})[catalog] = external_id
        return found

    @override
    def extensions(self) -> dict[str, JsonValue]:
        others = self._vocabulary.others()
        self._unread.begin(_EXTENSION)
        read = self._store.read(_EXTENSION, _extension, unread=self._unread, kind=_EXTENSION)
        kept = dict(read.values())
        found = {**({NAME: others} if others else {}), **kept}
        return {name: found[name] for name in sorted(found)}

    def _remove_dataset(self, urn: Urn) -> None:
        held = self._held(urn)
        if held is None:
            self._foreign(urn)
            raise PlatformError(
                f"{self.name}: {urn} was not written by Lumos, so it is not deleted",
                hint="delete it where it comes from, or in Atlas",
            )
        self._remove(held)

    @override
    def close(self) -> None:
        self._client.close()

    def _held(self, urn: Urn) -> tuple[Json, Json] | None:
        held = self._client.entity(DATASET, urn)
        return None if held is None or is_placeholder(held[0]) else held

    def _foreign(self, urn: Urn) -> tuple[Json, Json]:
        for type_name, name in foreign_names(urn, self._settings.table_types):
            held = self._client.entity(type_name, name) if self._is_known(type_name) else None
            if held is not None:
                return held
        raise DatasetNotFoundError(urn, platform=self.name)

    def _foreign_together(self, urns: Sequence[Urn]) -> dict[str, tuple[Json, Json]]:
        """Return the tables of others that some URNs stand for, each type asked for at once."""
        found: dict[str, tuple[Json, Json]] = {}
        for type_name in self._settings.table_types:
            names = {
                name: str(urn)
                for urn in urns
                for each, name in foreign_names(urn, (type_name,))
                if str(urn) not in found
            }
            if names and self._is_known(type_name):
                held = self._client.named(type_name, names)
                found |= {names[name]: each for name, each in held.items()}
        return found

    def _remove(self, held: tuple[Json, Json] | None) -> None:
        """Delete an entity with its columns and the edges that lead to and from it."""
        if held is None:
            return
        related = find_object(held[0], "relationshipAttributes")
        guids = [
            str(other.get("guid"))
            for name in ("columns", "columnEdges", "inputToProcesses", "outputFromProcesses")
            for other in find_objects(related, name)
            if is_live(other) and other.get("typeName") in TYPE_NAMES
        ]
        self._client.remove([*guids, str(held[0].get("guid"))], purge=self._settings.purge)

    @override
    def _pages(self, platform: str | None, page_size: int) -> Iterator[LumosDataset]:
        self._vocabulary.forget()
        guids = {
            urn: str(head.get("guid"))
            for type_name in self._settings.table_types
            for urn, head in self._named_heads(type_name, partial(foreign_urn, type_name))
        }
        for urn, head in self._named_heads(DATASET, Urn):
            if urn not in guids or not is_placeholder(head):
                guids[urn] = str(head.get("guid"))
        chosen = [guids[urn] for urn in sorted(guids) if platform in (None, urn.platform)]
        names = {guid: str(urn) for urn, guid in guids.items()}
        for start in range(0, len(chosen), page_size):
            entities, referred = self._client.entities(
                chosen[start : start + page_size],
                forbidden=lambda guid, error: self._unread.add("dataset", names[guid], error=error),
            )
            whole = [entity for entity in entities if not is_placeholder(entity)]
            datasets = self._reader.datasets(whole, referred, unread=self._unread)
            yield from sorted(datasets, key=lambda dataset: dataset.urn)

    def _named_heads(
        self, type_name: str, named: Callable[[str], Urn]
    ) -> Iterator[tuple[Urn, Json]]:
        """Yield what the server has of a type, by URN; one without a usable name is noted."""

        def head_of(head: Json) -> tuple[Urn, Json]:
            name = find_text(head, "attributes", "qualifiedName")
            if name is None:
                raise InvalidUrnError("it has no qualified name")
            return named(name), head

        return self._unread.each("dataset", self._heads(type_name), head_of, name=name_in)

    def _heads(
        self, type_name: str, kind: str = "dataset", *, with_subtypes: bool = False
    ) -> Iterator[Json]:
        """Yield the heads of all that the server shows of a type; what it hides is noted."""
        if not self._is_known(type_name):
            return
        hidden = 0
        for head in self._client.headers(
            type_name, attributes=_ASKED.get(type_name, ()), with_subtypes=with_subtypes
        ):
            if is_hidden(head):
                hidden += 1
            else:
                yield head
        if hidden:
            error = PlatformForbiddenError(
                f"{self._client.place}: the login may not read {hidden:,} entities of the type "
                f"{type_name}, which are not named",
                hint="give its user the right to read them; what is not read is not removed",
            )
            self._unread.add(kind, f"{hidden:,} of type {type_name}", error=error)

    def _is_known(self, type_name: str) -> bool:
        """Return whether the server has a type; those of Lumos may be there since it was asked."""
        if type_name in TYPE_NAMES and type_name not in self._vocabulary.type_names():
            self._vocabulary.forget()
        return type_name in self._vocabulary.type_names()

    def _all(self, type_name: str, kind: str) -> Iterable[Json]:
        """Return all entities of a type; those that may not be read are noted."""
        heads = {str(head.get("guid")): head for head in self._heads(type_name, kind)}
        return self._client.entities(
            heads,
            forbidden=lambda guid, error: self._unread.add(kind, name_in(heads[guid]), error=error),
        )[0]

    @override
    def _entities(self, kind: EntityKind) -> Iterable[Entity]:
        found: Iterable[Entity]
        if kind == "tag":
            found = self._vocabulary.tags(self._unread)
        elif kind == "glossary_term":
            found = self._vocabulary.terms(self._unread)
        else:
            type_name, model = THINGS[kind]
            read: Callable[[Json], Entity] = partial(thing_of, model=model)
            found = self._unread.each(kind, self._all(type_name, kind), read, name=name_in)
        return sorted(found, key=name_of)

    @override
    def _narrowed(self, words: tuple[str, ...]) -> Narrowed:
        return self._search.narrowed(words)

    @contextmanager
    def _locked(self, urns: Iterable[Urn]) -> Iterator[None]:
        """Let one thread at a time create what these URNs name.

        Locks are taken in an order that all threads share.
        """
        places = sorted({hash(urn) % len(self._locks) for urn in urns})
        with ExitStack() as held:
            for place in places:
                held.enter_context(self._locks[place])
            yield


def _identity(document: JsonValue) -> tuple[Urn, str, str]:
    parts = object_or_empty(document)
    return Urn(str(parts["urn"])), str(parts["catalog"]), str(parts["id"])


def _extension(document: JsonValue) -> tuple[str, JsonValue]:
    whole = object_or_empty(document)
    return str(whole.get("name")), whole.get("value")


def _is_same(one: tuple[Json, Json] | None, other: tuple[Json, Json] | None) -> bool:
    """Return whether two answers say the same of an entity and its columns."""
    if one is None or other is None:
        return one is other
    return one[0] == other[0] and [*live_columns(*one)] == [*live_columns(*other)]


def _with_ends(written: Json, entity: Entity, ends: Mapping[Urn, End]) -> Json:
    attributes: Json = {**find_object(written, "attributes")}
    for name in ("inputs", "outputs"):
        attributes[name] = [ends[urn].reference for urn in getattr(entity, name)]
    return {**written, "attributes": attributes}
