"""Datasets and jobs on an OpenMetadata server: found, read, written and removed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Final

from lumos.core.errors import PlatformConflictError, PlatformError
from lumos.core.json_reading import as_list, as_object
from lumos.core.models import LumosDataset, Urn
from lumos.core.platform.impl.openmetadata.mapping.changes import (
    changes,
    extension_changes,
    stash_changes,
    with_stash,
)
from lumos.core.platform.impl.openmetadata.mapping.entities import (
    NAME,
    SERVICE_TYPE,
    custom_properties,
    kept_of,
    other_constraints,
    wire_dataset,
)
from lumos.core.platform.impl.openmetadata.mapping.names import (
    OWN,
    Place,
    fqn,
    nested_place,
    path_of,
    place_of,
    urn_of,
)
from lumos.core.platform.impl.openmetadata.mapping.quality import OWN_TESTS, planned_tests
from lumos.core.platform.impl.openmetadata.mapping.services import service_type
from lumos.core.platform.impl.openmetadata.mapping.stashed import (
    MENTIONED,
    REMOVABLE,
    SHOWN,
    Node,
    Plan,
    mention_text,
    node_of,
    own,
    read_dataset,
    with_constraints,
    with_extension,
)
from lumos.core.platform.impl.openmetadata.side_store import stash_text
from lumos.core.platform.impl.openmetadata.writer.fields import DISPLAY_NAME
from lumos.core.platform.impl.openmetadata.writer.lineage import EDGES
from lumos.core.platform.impl.openmetadata.writer.profiles import (
    ProfileWires,
    SeenProfile,
    tells_of_profile,
)
from lumos.core.platform.impl.openmetadata.writer.quality import QualityWires
from lumos.core.platform.interface import changed_since

if TYPE_CHECKING:
    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.openmetadata.client import OpenMetadataApi
    from lumos.core.platform.impl.openmetadata.writer.fields import FieldWriter
    from lumos.core.platform.impl.openmetadata.writer.references import References
    from lumos.core.platform.unreadable import UnreadableItems

OWN_PROPERTIES: Final = "properties"
"""Where the stash names the custom properties that Lumos set; it takes away no others."""
_TYPES: Final = ("table", "container")
_BUCKET: Final = 2
FIRST_VERSION: Final = 0.1


def name_in(entity: Json) -> str:
    """Return the name under which people find an entity, where it has one."""
    found = (entity.get(key) for key in ("fullyQualifiedName", "name", "id"))
    return str(next((each for each in found if each), "without a name"))


def _is_own(entity: Json) -> bool:
    return path_of(str(entity.get("fullyQualifiedName")))[:1] == (OWN,)


class DatasetWires:
    """Reads and writes tables, containers and pipelines."""

    def __init__(
        self,
        api: OpenMetadataApi,
        references: References,
        *,
        fields: FieldWriter,
        profile_days: int,
    ) -> None:
        self._api = api
        self._references = references
        self._fields = fields
        self._quality = QualityWires(api, fields)
        self._profiles = ProfileWires(api, days=profile_days)
        self._there: set[tuple[str, str]] = set()
        self._making = RLock()

    def find(self, urn: Urn) -> Node | None:
        """Return the entity of a URN, also one that is only mentioned."""
        place, entity = self._located(urn)
        return None if entity is None else node_of(place.type, entity)

    def at(self, type_: str, name: str) -> Node | None:
        """Return the entity of a fully qualified name, also one that is only mentioned."""
        entity = self._api.find(type_, name)
        return None if entity is None else node_of(type_, entity)

    def nodes(self, unread: UnreadableItems, *, kind: str = "dataset") -> Iterator[Node]:
        """Yield the entities of all datasets, with those that are only mentioned.

        One that has no name is noted under a kind.
        """
        for type_ in _TYPES:
            listed = (entity for entity in self._api.list(type_) if not _is_own(entity))
            yield from unread.each(kind, listed, partial(node_of, type_), name=name_in)

    def read(
        self, node: Node, *, with_tests: bool = True, with_profile: bool = True
    ) -> LumosDataset | None:
        """Return the dataset of an entity without its lineage, None for one only mentioned.

        Without its tests and its profile it costs no request.
        """
        if node.stash.get(MENTIONED):
            return None
        seen = self._quality.with_tests(node.type, node.entity) if with_tests else node.entity
        dataset = read_dataset(node.type, seen)
        return self._profiled(node, dataset).dataset if with_profile else dataset

    def completed(self, node: Node, dataset: LumosDataset) -> LumosDataset:
        """Return a dataset that was read without its tests and its profile with both."""
        if node.type != "table":
            return dataset
        seen = self._quality.with_tests(node.type, node.entity)
        whole = dataset if seen is node.entity else read_dataset(node.type, seen)
        return self._profiled(node, whole).dataset

    def write(self, dataset: LumosDataset) -> None:
        """Bring the entity of a dataset up to date; one that says the same is left alone."""
        self.write_at(*self._located(dataset.urn), dataset=dataset)

    def create(self, dataset: LumosDataset) -> None:
        """Write a dataset that is not there, or only mentioned.

        Raises:
            PlatformConflictError: it is there.
        """
        place, entity = self._located(dataset.urn)
        if entity is not None and not node_of(place.type, entity).stash.get(MENTIONED):
            raise changed_since(dataset.urn, place=NAME)
        self.write_at(place, entity, dataset=dataset)

    def write_at(self, place: Place, entity: Json | None, *, dataset: LumosDataset) -> None:
        """Bring an entity that was just read, or none, to what a dataset says."""
        plan = self.plan(dataset, place, entity=entity)
        if plan is None:
            return
        there = plan.entity
        if there is None:
            body = self.creating(plan)
            try:
                self.finish(plan, self._fields.create(place.type, body, wanted=plan.wanted))
            except PlatformConflictError:
                if self._api.find(place.type, place.fqn) is not None:
                    raise
                self._api.put(place.type, body)  # people had deleted it; it comes back as it was
                there = as_object(self._seen(place), "entity")
            else:
                return
        self._change(plan.over(there), there)
        self.finish(plan.over(there), there)

    def plan(self, dataset: LumosDataset, place: Place, *, entity: Json | None) -> Plan | None:
        """Return what is to be written of a dataset; None where its entity says it already.

        What it refers to is made first.
        """
        if entity is not None:
            entity = self._quality.with_tests(place.type, entity)
        node = node_of(place.type, entity) if entity else None
        there = self._compared(node, dataset=dataset)
        if there is not None and there.dataset == dataset:
            return None
        tests = planned_tests(dataset, place.fqn) if place.type == "table" else {}
        kept: Json = {OWN_TESTS: [*tests]} if tests else {}
        if node:
            kept |= self._still_kept(node, dataset, there=there)
        wire = self._named(wire_dataset(dataset, place), node, kept=kept)
        wanted = self._references.added_to(wire, dataset, held=entity or {})
        if entity is not None and place.type == "table":
            wanted = with_constraints(wanted, other_constraints(entity, dataset))
        properties = self._custom_properties(place, dataset)
        if properties:
            kept[OWN_PROPERTIES] = [*properties]
        return Plan(dataset, place, node, entity, there, tests, kept, wanted, properties)

    def _named(self, wire: Json, node: Node | None, *, kept: Json) -> Json:
        """Return a wire with a display name that Lumos may write: one of people stays theirs."""
        held = node.entity.get(DISPLAY_NAME) if node else None
        shown = node.stash.get(SHOWN) if node else None
        if node and (held != shown or not self._fields.may_name):
            wire = {**wire, DISPLAY_NAME: held}
        if wire.get(DISPLAY_NAME) and not (held and held != shown):
            kept[SHOWN] = wire[DISPLAY_NAME]
        return {name: value for name, value in wire.items() if value or name != DISPLAY_NAME}

    def creating(self, plan: Plan) -> Json:
        """Return the request that creates the entity of a dataset, with all that it lies in."""
        hints = (str(kept_of(plan.dataset).get(SERVICE_TYPE)), plan.dataset.platform)
        body = plan.wanted
        if plan.properties:
            body = {**body, "extension": {**plan.properties}}
        return self._created_by(plan.place, body, stash=plan.stash, hints=hints)

    def finish(self, plan: Plan, entity: Json, *, stored: Json | None = None) -> None:
        """Write what stands beside an entity that was written, and what the server altered of it.

        Args:
            plan: what was written.
            entity: what was there before, or what was made.
            stored: what is there now, where it was read already.
        """
        self._quality.write(entity, plan.tests, ours=own(plan.node, OWN_TESTS))
        stored = self._settled(plan, None if plan.tests else stored)
        if plan.place.type == "table":
            self._profiles.write(plan.dataset, stored, there=plan.there)

    def mention(self, urn: Urn) -> Node:
        """Return the entity of a URN; where there is none, an empty one that is not listed."""
        place, entity = self._located(urn)
        if entity is None:
            with self._making:
                if self._api.find(place.type, place.fqn) is None:
                    self._create(place, {}, stash=mention_text(urn, place))
            entity = self._api.find(place.type, place.fqn)
        return node_of(place.type, as_object(entity, "entity"))

    def keep(self, node: Node, stash: Json) -> None:
        """Make this the stash of an entity, unless that was changed since it was read."""
        text = stash_text({"v": 1, **stash}) if stash else None
        if changed := stash_changes(node.entity, text):
            self._api.declare(node.type, text)
            self._api.patch(node.type, node.entity, changes=changed)

    def remove(self, node: Node) -> None:
        """Remove a dataset; a bucket, which others lie in, is emptied instead."""
        path = path_of(str(node.entity["fullyQualifiedName"]))
        if node.type == "container" and len(path) == _BUCKET:
            place = Place("container", path)
            current = as_object(self._api.find("container", place.fqn), "container")
            managed = [name for name in REMOVABLE["container"] if name != DISPLAY_NAME]
            changed = changes(current, {}, removable=managed)
            changed += stash_changes(current, mention_text(node.urn, place))
            self._fields.patch("container", current, changes=changed)
        else:
            self._api.delete(node.type, node.entity)

    def urn_of_reference(self, reference: Json) -> Urn:
        """Return the URN of what a reference leads to."""
        type_, name = str(reference["type"]), reference.get("fullyQualifiedName")
        known = urn_of(type_, str(name)) if name and type_ in _TYPES else None
        if known is not None:
            return known
        entity = self._api.find(type_, str(name)) if name and type_ in _TYPES else None
        if entity is None:
            return Urn.of("openmetadata", type_, str(name or reference["id"]))
        return node_of(type_, entity).urn

    def _located(self, urn: Urn) -> tuple[Place, Json | None]:
        """Return where a dataset lies or would lie, and what is there; also where others put it."""
        place, nested = place_of(urn), nested_place(urn)
        entity = self._api.find(place.type, place.fqn)
        if entity is None and nested is not None and nested != place:
            entity = self._api.find(nested.type, nested.fqn)
            return (place if entity is None else nested), entity
        return place, entity

    def _seen(self, place: Place) -> Json | None:
        """Return what is at a place, with its test cases."""
        entity = self._api.find(place.type, place.fqn)
        return None if entity is None else self._quality.with_tests(place.type, entity)

    def _profiled(self, node: Node, dataset: LumosDataset) -> SeenProfile:
        if node.type != "table":
            return SeenProfile(dataset)
        return self._profiles.seen(dataset, node.entity, stash=node.stash)

    def _compared(self, node: Node | None, *, dataset: LumosDataset) -> SeenProfile | None:
        """Return what is there of a dataset; with what others measured, where it has figures."""
        if node is None or node.stash.get(MENTIONED):
            return None
        held = read_dataset(node.type, node.entity)
        if held == dataset or not tells_of_profile(dataset):
            return SeenProfile(held)
        return self._profiled(node, held)

    def _still_kept(self, node: Node, dataset: LumosDataset, *, there: SeenProfile | None) -> Json:
        """Return what of its stash stays with an entity, whatever the dataset says."""
        edges: Json = {EDGES: node.stash[EDGES]} if EDGES in node.stash else {}
        if node.type != "table" or there is None:
            return edges
        before = read_dataset(node.type, node.entity) if there.is_theirs else there.dataset
        return edges | self._profiles.kept_time(dataset, before, stash=node.stash)

    def _custom_properties(self, place: Place, dataset: LumosDataset) -> Json:
        if not dataset.properties:
            return {}
        return custom_properties(dataset, self._api.properties(place.type))

    def _change(self, plan: Plan, entity: Json) -> None:
        type_ = plan.place.type
        gone = dict.fromkeys(own(plan.node, OWN_PROPERTIES) - plan.properties.keys())
        parts: Json = {**gone, **plan.properties, **with_stash(entity, plan.stash)}
        changed = changes(entity, plan.wanted, removable=REMOVABLE[type_])
        changed += extension_changes(entity, parts)
        if changed:
            self._api.declare(type_, plan.stash)
            self._fields.patch(type_, entity, changes=changed)

    def _settled(self, plan: Plan, stored: Json | None) -> Json:
        """Return what was written; what the server altered is put into the stash."""
        place = plan.place
        stored = stored or self._seen(place)
        if stored is None:
            raise PlatformError(
                "openmetadata: what was written cannot be read",
                hint="give the token's user the right to see all entities",
            )
        text = plan.stash_with(stored)
        if changed := stash_changes(stored, text):
            self._api.declare(place.type, text)
            self._api.patch(place.type, stored, changes=changed)
        return stored

    def _create(
        self, place: Place, wanted: Json, *, stash: str | None, hints: tuple[str, ...] = ()
    ) -> Json:
        """Create an entity and what it lies in."""
        body = self._created_by(place, wanted, stash=stash, hints=hints)
        return self._api.put(place.type, body)

    def _created_by(
        self, place: Place, wanted: Json, *, stash: str | None, hints: tuple[str, ...]
    ) -> Json:
        """Return the request that creates an entity, and create what it lies in.

        Args:
            place: where.
            wanted: what it is to say.
            stash: what it is to keep besides.
            hints: what may show the type of its service, where its name does not.
        """
        self._api.declare(place.type, stash)
        body: Json = {"name": place.path[-1], **wanted}
        domains = body.pop("domains", None)
        if domains:
            body["domains"] = [
                as_object(each, "each")["fullyQualifiedName"]
                for each in as_list(domains, "domains")
            ]
        service = place.path[0]
        if place.type == "table":
            body.setdefault("columns", [])
            body["databaseSchema"] = self._schema(place, hints)
        else:
            self.service("storageService", service, hints=hints)
            body["service"] = fqn((service,))
            if len(place.path) > _BUCKET:
                body["parent"] = self._bucket(place)
        return with_extension(body, stash)

    def _schema(self, place: Place, hints: tuple[str, ...]) -> str:
        service, database, schema, _ = place.path
        self.service("databaseService", service, hints=hints)
        self._ensure(
            "database", (service, database), {"name": database, "service": fqn((service,))}
        )
        above = fqn((service, database))
        self._ensure(
            "databaseSchema", (service, database, schema), {"name": schema, "database": above}
        )
        return fqn((service, database, schema))

    def _bucket(self, place: Place) -> Json:
        path = place.path[:-1]
        bucket = self._api.find("container", fqn(path))
        if bucket is None:
            with self._making:
                bucket = self._api.find("container", fqn(path)) or self._made_bucket(path)
        return {"id": bucket["id"], "type": "container"}

    def _made_bucket(self, path: tuple[str, ...]) -> Json:
        above = Place("container", path)
        urn = urn_of("container", above.fqn) or Urn.of("openmetadata", path[-1])
        return self._create(above, {}, stash=mention_text(urn, above))

    def service(self, type_: str, name: str, *, hints: tuple[str, ...] = ()) -> None:
        """Make a service, where there is none of the name."""
        kind = service_type(type_, (*hints, name))
        self._ensure(type_, (name,), {"name": name, "serviceType": kind})

    def _ensure(self, type_: str, path: tuple[str, ...], body: Json) -> None:
        key = (type_, fqn(path))
        if key not in self._there:
            with self._making:
                if self._api.find(*key) is None:
                    self._api.put(type_, body)
                self._there.add(key)
