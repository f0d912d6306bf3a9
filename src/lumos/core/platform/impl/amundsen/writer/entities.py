"""People, vocabulary and all else that belongs to the catalog as a whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from sqlalchemy import MetaData, or_, select
from sqlalchemy import Table as AnyTable
from sqlalchemy import inspect as inspection

from lumos.core.json_reading import as_object, required_text_at
from lumos.core.models import Tag, Urn, User
from lumos.core.platform.entities import ENTITY_MODELS, Entity, EntityKind, kind_of, name_of
from lumos.core.platform.impl.amundsen.client.database import Row, Value, rows_of
from lumos.core.platform.impl.amundsen.mapping import tables
from lumos.core.platform.impl.amundsen.mapping.conversion import EXTENSION, native_text
from lumos.core.platform.impl.amundsen.mapping.keys import digest, fits_key
from lumos.core.platform.impl.amundsen.reader import listed
from lumos.core.platform.impl.amundsen.side_store import side_store
from lumos.core.platform.impl.amundsen.writer.tables import TableWriter

if TYPE_CHECKING:
    from pydantic import JsonValue
    from sqlalchemy import Connection, Table

    from lumos.core.platform.impl.amundsen.client.database import AmundsenDatabase
    from lumos.core.platform.unreadable import UnreadableItems

_USER_FIELDS = {
    "email": "email",
    "first_name": "first_name",
    "last_name": "last_name",
    "full_name": "full_name",
    "title": "role_name",
    "manager_urn": "manager_rk",
    "picture_link": "profile_url",
}
_USER_EXTRAS = ("github_username", "employee_type", "slack_id", "is_active")
_IDENTITY, _EXTENSION = "identity", "extension"
_NOT_METADATA = ("alembic_version", "updated_timestamp")


class Entities:
    """What is not a dataset or an edge, within one transaction."""

    def __init__(self, database: AmundsenDatabase, connection: Connection) -> None:
        self._database = database
        self._connection = connection
        self._store = side_store(database, connection)

    def put(self, entity: Entity) -> None:
        """Keep an entity; users and tags are shown by Amundsen, too."""
        name = name_of(entity)
        writer = TableWriter(self._database, self._connection)
        if isinstance(entity, User) and fits_key(name, longest=tables.LONGEST_USER):
            table = tables.USER
            rows, scope = [_user_row(entity)], table.c.rk == name
            self._database.bring(self._connection, table, rows=rows, scope=scope)
        elif isinstance(entity, Tag) and fits_key(name, longest=tables.LONGEST_TAG):
            writer.add_tags([name])
        self._store.put(_section(kind_of(entity)), {digest(name): entity.to_json()})

    def all(self, kind: EntityKind, unread: UnreadableItems) -> list[Entity]:
        """Return the entities of a kind in the order of their names (jobs: URN).

        One that cannot be read is noted.
        """
        found: dict[str, Entity] = {}
        if kind in _SHOWN:
            table, read = _SHOWN[kind]
            rows = self._of_others(table)
            shown = unread.each(kind, rows, read, name=lambda row: str(row["rk"]))
            found = {name_of(entity): entity for entity in shown}

        def entity(document: JsonValue) -> Entity:
            return ENTITY_MODELS[kind].from_json(document)

        kept = self._store.read(_section(kind), entity, unread=unread, kind=kind)
        found |= {name_of(entity): entity for entity in kept.values()}
        return [found[name] for name in sorted(found)]

    def put_identity(self, urn: Urn, catalog: str, *, external_id: str) -> None:
        """Keep what another catalog calls a dataset."""
        document: JsonValue = {"urn": urn, "catalog": catalog, "id": external_id}
        self._store.put(_IDENTITY, {f"{digest(urn)}-{digest(catalog)}": document})

    def identities(self, unread: UnreadableItems) -> dict[Urn, dict[str, str]]:
        """Return what other catalogs call each dataset, and Amundsen those that it had itself."""
        found: dict[Urn, dict[str, str]] = defaultdict(dict)
        for place in listed(self._connection):
            if not place.is_own:
                found[place.urn][EXTENSION] = place.key
        kept = self._store.read(_IDENTITY, _identity, unread=unread, kind=_IDENTITY)
        for urn, catalog, external_id in kept.values():
            found[urn][catalog] = external_id
        return {urn: found[urn] for urn in sorted(found)}

    def put_extension(self, name: str, value: JsonValue) -> None:
        """Keep something that Lumos does not model."""
        self._store.put(_EXTENSION, {digest(name): {"name": name, "value": value}})

    def extensions(self, unread: UnreadableItems) -> dict[str, JsonValue]:
        """Return what is kept so, and the rows of Amundsen's tables that Lumos does not model."""
        found: dict[str, JsonValue] = {}
        if others := self._other_rows():
            found[EXTENSION] = others
        kept = self._store.read(_EXTENSION, _named_value, unread=unread, kind=_EXTENSION)
        found |= dict(kept.values())
        return {name: found[name] for name in sorted(found)}

    def _of_others(self, table: Table) -> list[dict[str, Value]]:
        """Return the rows that Lumos did not make to hang an owner or a tag on."""
        publisher = table.c.published_tag
        scope = or_(publisher.is_(None), publisher != tables.PUBLISHER)
        return rows_of(self._connection, table, scope)

    def _other_rows(self) -> dict[str, JsonValue]:
        """Return the rows of tables such as those of dashboards, as they are."""
        names = {*inspection(self._connection).get_table_names()}
        names -= {*tables.METADATA.tables, *_NOT_METADATA}
        found: dict[str, JsonValue] = {}
        reflected = MetaData()
        for name in sorted(names):
            table = AnyTable(name, reflected, autoload_with=self._connection, resolve_fks=False)
            query = select(table).order_by(*table.primary_key.columns)
            rows = self._connection.execute(query).mappings()
            if documents := [{str(key): _json(row[key]) for key in row} for row in rows]:
                found[name] = [*documents]
        return found


def _section(kind: EntityKind) -> str:
    return kind.replace("_", "-")


def _user_row(user: User) -> Row:
    row: dict[str, Value] = {"rk": user.username, "is_active": True}
    for field, name in _USER_FIELDS.items():
        longest = cast("int", getattr(tables.USER.c[name].type, "length", 0))
        row[name] = native_text(getattr(user, field), longest=longest)
    if row["manager_rk"] is not None and not fits_key(str(row["manager_rk"]), longest=320):
        row["manager_rk"] = None
    row["email"] = row["email"] or user.username
    return {**row, "team_name": native_text(next(iter(user.teams), None), longest=128)}


def _user(row: Row) -> User:
    extras = {name: row[name] for name in _USER_EXTRAS if row[name] is not None}
    return User.from_json(
        {
            "username": row["rk"],
            **{field: row[name] or None for field, name in _USER_FIELDS.items()},
            "teams": [row["team_name"]] if row["team_name"] else [],
            "custom_properties": extras,
        }
    )


def _tag(row: Row) -> Tag:
    return Tag(name=str(row["rk"]))


def _identity(document: JsonValue) -> tuple[Urn, str, str]:
    parts = as_object(document, "identity")
    urn, catalog, name = (required_text_at(parts, key) for key in ("urn", "catalog", "id"))
    return Urn(urn), catalog, name


def _named_value(document: JsonValue) -> tuple[str, JsonValue]:
    parts = as_object(document, "extension")
    return required_text_at(parts, "name"), parts.get("value")


_SHOWN: Mapping[str, tuple[Table, Callable[[Row], Entity]]] = {
    "user": (tables.USER, _user),
    "tag": (tables.TAG, _tag),
}
"""What Amundsen has itself, where it is kept and how it is read."""


def _json(value: object) -> JsonValue:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value)
