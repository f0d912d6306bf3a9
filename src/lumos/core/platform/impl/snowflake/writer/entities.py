"""People, vocabulary, jobs, names in other catalogs and all else that belongs to no table."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from lumos.core.errors import PlatformLimitError
from lumos.core.models import Tag, Urn
from lumos.core.platform.entities import ENTITY_MODELS, Entity, EntityKind, kind_of, name_of
from lumos.core.platform.impl.snowflake.mapping.conversion import LONGEST_COMMENT, OWN_VALUE
from lumos.core.platform.impl.snowflake.mapping.records import TagUse
from lumos.core.platform.impl.snowflake.mapping.sql import (
    identifier,
    literal,
    qualified,
    shown_text,
)
from lumos.core.platform.impl.snowflake.side_store import digest, parts_of
from lumos.core.platform.side_store import SideStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

    from lumos.core.platform.impl.snowflake.client import SnowflakeSession
    from lumos.core.platform.impl.snowflake.mapping.conversion import Conversion
    from lumos.core.platform.impl.snowflake.settings import SnowflakeSettings
    from lumos.core.platform.impl.snowflake.side_store import StashTable
    from lumos.core.platform.impl.snowflake.writer.tables import TableWriter
    from lumos.core.platform.unreadable import UnreadableItems

MOST_SHOWN: Final = 10_000
"""How many rows a SHOW statement gives; it says nothing of those beyond."""
_IDENTITY, _EXTENSION = "identity", "extension"


class Entities:
    """What is neither a dataset nor an edge, in the side store; tags are tags of Snowflake, too."""

    def __init__(
        self,
        session: SnowflakeSession,
        settings: SnowflakeSettings,
        *,
        table: StashTable,
        writer: TableWriter,
        conversion: Conversion,
    ) -> None:
        self._session = session
        self._settings = settings
        self._table = table
        self._store = SideStore(table)
        self._writer = writer
        self._conversion = conversion

    def put(self, entity: Entity) -> None:
        """Keep an entity, in place of the one of the same name."""
        kind, name = kind_of(entity), name_of(entity)
        held = self._table.texts(kind, [digest(name)])
        if isinstance(entity, Tag) and self._conversion.is_shown(name):
            self._show(entity, is_known=bool(held))
        self._table.write(kind, {digest(name): entity.to_json()}, held=held)

    def all(self, kind: EntityKind, unread: UnreadableItems) -> list[Entity]:
        """Return the entities of a kind in the order of their names (jobs: URN).

        One that cannot be read is noted.
        """

        def entity(document: JsonValue) -> Entity:
            return ENTITY_MODELS[kind].from_json(document)

        kept = self._store.read(kind, entity, unread=unread, kind=kind).values()
        found: dict[str, Entity] = {name_of(each): each for each in kept}
        if kind == "tag" and self._settings.use_tags:
            self._add_shown(found, unread)
        return [found[name] for name in sorted(found)]

    def put_identity(self, urn: Urn, catalog: str, *, external_id: str) -> None:
        """Keep what another catalog calls a dataset."""
        document: JsonValue = {"urn": urn, "catalog": catalog, "id": external_id}
        self._store.put(_IDENTITY, {f"{digest(urn)}-{digest(catalog)}": document})

    def identities(self, unread: UnreadableItems) -> dict[Urn, dict[str, str]]:
        """Return what other catalogs call each dataset."""
        found: dict[Urn, dict[str, str]] = defaultdict(dict)
        kept = self._store.read(_IDENTITY, _identity, unread=unread, kind=_IDENTITY)
        for urn, catalog, external_id in kept.values():
            found[urn][catalog] = external_id
        return {urn: found[urn] for urn in sorted(found)}

    def put_extension(self, name: str, value: JsonValue) -> None:
        """Keep something that Lumos does not model."""
        self._store.put(_EXTENSION, {digest(name): {"name": name, "value": value}})

    def extensions(self, unread: UnreadableItems) -> dict[str, JsonValue]:
        """Return what is kept so."""
        kept = self._store.read(_EXTENSION, _named_value, unread=unread, kind=_EXTENSION)
        found = dict(kept.values())
        return {name: found[name] for name in sorted(found)}

    def _show(self, tag: Tag, *, is_known: bool) -> None:
        place = self._settings.stash_place
        self._table.make()
        self._writer.make_tags([TagUse(*place, tag.name, OWN_VALUE)])
        comment = shown_text(tag.description, longest=LONGEST_COMMENT)
        if comment or is_known:
            name = qualified(*place, tag.name)
            self._session.run(f"ALTER TAG {name} SET COMMENT = {literal(comment)}")

    def _shown_tags(self, database: str, unread: UnreadableItems) -> Iterator[dict[str, object]]:
        """Yield the tags of a database; of more than one statement shows, schema by schema."""
        rows = self._session.named_rows(f"SHOW TAGS IN DATABASE {identifier(database)}")
        if len(rows) < MOST_SHOWN:
            yield from rows
            return
        schemata = f"{identifier(database)}.INFORMATION_SCHEMA.SCHEMATA"
        for (schema,) in self._session.rows(f"SELECT SCHEMA_NAME FROM {schemata}"):  # noqa: S608
            place = qualified(database, str(schema))
            rows = self._session.named_rows(f"SHOW TAGS IN SCHEMA {place}")
            yield from rows
            if len(rows) >= MOST_SHOWN:
                error = PlatformLimitError(
                    f"Snowflake shows no more than {MOST_SHOWN:,} tags of the schema {place}"
                )
                unread.add("tag", f"others of {place}", error=error)

    def _add_shown(self, found: dict[str, Entity], unread: UnreadableItems) -> None:
        """Add the tags of others, and what people wrote on those of Lumos."""
        for database in self._settings.databases:
            for row in self._shown_tags(database, unread):
                name, comment = str(row["name"]), str(row.get("comment") or "")
                place = str(row["database_name"]), str(row["schema_name"])
                kept = found.get(name)
                if place != self._settings.stash_place:
                    found.setdefault(name, Tag(name=name, description=comment or None))
                elif isinstance(kept, Tag) and comment != shown_text(
                    kept.description, longest=LONGEST_COMMENT
                ):
                    found[name] = kept.model_copy(update={"description": comment or None})


def _identity(document: JsonValue) -> tuple[Urn, str, str]:
    parts = parts_of(document)
    return Urn(str(parts["urn"])), str(parts["catalog"]), str(parts["id"])


def _named_value(document: JsonValue) -> tuple[str, JsonValue]:
    parts = parts_of(document)
    return str(parts["name"]), parts["value"]
