"""People, groups, tags, terms and domains in OpenMetadata.

What a dataset refers to is created where it is missing, and marked: it was only mentioned, and is
not listed until somebody emits it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from threading import RLock
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.errors import InvalidModelError, PlatformConflictError, PlatformError
from lumos.core.json_reading import as_object
from lumos.core.models import Domain, GlossaryTerm, Group, Tag, User
from lumos.core.platform.impl.openmetadata.mapping.changes import changes
from lumos.core.platform.impl.openmetadata.mapping.columns import CLASSIFICATION, TAG_LEVELS
from lumos.core.platform.impl.openmetadata.mapping.names import (
    decoded,
    entity_name,
    fqn,
    label_name,
    label_path,
    levels_of,
    path_of,
    term_stand_in,
    user_name,
)
from lumos.core.platform.impl.openmetadata.side_store import get_value, put_value, values
from lumos.core.platform.stash import residue, restored

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.openmetadata.client import OpenMetadataApi
    from lumos.core.platform.impl.openmetadata.writer.fields import FieldWriter
    from lumos.core.platform.side_store import SideStore
    from lumos.core.platform.unreadable import UnreadableItems

Word = User | Group | Tag | GlossaryTerm | Domain
MENTIONED: Final = "mentioned"
PLACEHOLDER: Final = "Made by Lumos for what has no other place."
"""What a glossary or classification says that Lumos made, as a word of it was needed."""
_NO_MAIL: Final = "@no-mail.lumos.example.com"
_MAIL = re.compile(r"[a-z0-9._%+-]+@[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]{2,}\Z")
_LONGEST_MAIL: Final = 127
_ADMIN: Final = "admin"
"""The user that every server comes with."""
_ORGANIZATION: Final = "Organization"
"""The team that every server comes with, and that every user without a team is in."""


class _Sort(NamedTuple):
    """How one kind of word is written and read."""

    entity: str
    model: type[Word]
    key: str
    path: Callable[[str], tuple[str, ...]]
    wire: Callable[[Json], Json]
    told: Callable[[Json], Json]


def _user_wire(user: Json) -> Json:
    mail = str(user.get("email") or "")
    usable = len(mail) <= _LONGEST_MAIL and _MAIL.match(mail) and not mail.endswith(_NO_MAIL)
    return {
        "displayName": user.get("display_name"),
        "description": user.get("about_me"),
        "email": mail if usable else f"{user_name(str(user['username']))}{_NO_MAIL}",
    }


def _user_told(entity: Json) -> Json:
    mail = str(entity.get("email") or "")
    return {
        "username": entity["name"],
        "display_name": entity.get("displayName"),
        "about_me": entity.get("description"),
        "email": None if not mail or mail.endswith(_NO_MAIL) else mail,
        "teams": [name for name in _names(entity.get("teams")) if name != _ORGANIZATION],
    }


def _group_wire(group: Json) -> Json:
    mail = str(group.get("email") or "")
    usable = len(mail) <= _LONGEST_MAIL and _MAIL.match(mail)
    return {
        "displayName": group.get("display_name"),
        "description": group.get("description"),
        "email": mail if usable else None,
        "teamType": _GROUP,
    }


def _group_told(entity: Json) -> Json:
    return {
        "name": decoded(str(entity["name"])),
        "display_name": entity.get("displayName"),
        "description": entity.get("description"),
        "email": entity.get("email"),
        "members": _names(entity.get("users")),
    }


def _tag_wire(tag: Json) -> Json:
    return {"description": tag.get("description") or str(tag["name"])}


def _tag_told(entity: Json) -> Json:
    return {"name": _labelled(entity), "description": entity.get("description")}


def _term_wire(term: Json) -> Json:
    return {
        "description": term.get("definition") or str(term["name"]),
        "synonyms": term.get("synonyms") or [],
    }


def _term_told(entity: Json) -> Json:
    path = path_of(str(entity["fullyQualifiedName"]))
    above = path[:-1]
    return {
        "name": label_name(path),
        "definition": entity.get("description"),
        "synonyms": entity.get("synonyms") or [],
        "parent": label_name(above) if len(above) > 1 else None,
    }


def _domain_wire(domain: Json) -> Json:
    return {
        "description": domain.get("description") or str(domain["name"]),
        "domainType": "Aggregate",
    }


def _domain_told(entity: Json) -> Json:
    path = path_of(str(entity["fullyQualifiedName"]))
    return {
        "name": ".".join(map(decoded, path)),
        "description": entity.get("description"),
        "parent": ".".join(map(decoded, path[:-1])) or None,
    }


def _names(references: JsonValue) -> list[JsonValue]:
    given = references if isinstance(references, list) else []
    return [
        decoded(str(each["name"])) for each in given if isinstance(each, dict) and each.get("name")
    ]


def _labelled(entity: Json) -> str:
    return label_name(path_of(str(entity["fullyQualifiedName"])))


_SORTS: Final[Mapping[str, _Sort]] = {
    "user": _Sort(
        "user", User, "username", lambda name: (user_name(name),), _user_wire, _user_told
    ),
    "group": _Sort(
        "team", Group, "name", lambda name: (entity_name(name),), _group_wire, _group_told
    ),
    "tag": _Sort(
        "tag", Tag, "name", lambda name: label_path(name, most=TAG_LEVELS), _tag_wire, _tag_told
    ),
    "glossary_term": _Sort(
        "glossaryTerm", GlossaryTerm, "name", label_path, _term_wire, _term_told
    ),
    "domain": _Sort(
        "domain",
        Domain,
        "name",
        lambda name: levels_of(name) or (entity_name(name),),
        _domain_wire,
        _domain_told,
    ),
}
_REMOVABLE: Final = frozenset({"description", "synonyms"})
_FIXED: Final = ("email", "teamType", "domainType")
_GROUP: Final = "Group"
_TERM: Final = "glossaryTerm"
_OF_TERMS: Final = ("glossary", _TERM)


class Vocabulary:
    """Writes and reads the words of one server."""

    def __init__(self, api: OpenMetadataApi, store: SideStore, *, fields: FieldWriter) -> None:
        self._api = api
        self._store = store
        self._fields = fields
        self._known: dict[tuple[str, str], Json] = {}
        self._refused: set[str] = set()
        self._exclusive: dict[tuple[str, str], bool] = {}
        self._making = RLock()

    def emit(self, kind: str, word: Word) -> None:
        """Bring a word up to date; of one that the server came with only the side store is."""
        sort = _SORTS[kind]
        meant = word.to_json()
        entity = self._found(sort, sort.path(str(meant[sort.key])))
        if entity is not None:
            stash = get_value(self._store, sort.entity, str(entity["fullyQualifiedName"]))
            if stash != MENTIONED and self._word(sort, entity, stash) == word:
                return
        if entity is None or not _is_built_in(entity):
            entity = self._written(sort, meant, entity=entity)
        left = residue(self._told(sort, entity), meant)
        name = str(entity["fullyQualifiedName"])
        put_value(self._store, sort.entity, name, value={} if left is None else left)

    def all(self, kind: str, unread: UnreadableItems) -> Iterator[Word]:
        """Yield the words of a kind that somebody emitted, or that people made in the catalog."""
        sort = _SORTS[kind]
        kept = values(self._store, sort.entity, unread, kind=kind)

        def word(entity: Json) -> Word | None:
            stash = kept.get(str(entity.get("fullyQualifiedName")))
            if stash == MENTIONED or (stash is None and _is_built_in(entity)):
                return None
            return self._word(sort, entity, stash)

        read = unread.each(kind, self._api.list(sort.entity), word, name=_name_in)
        found = [each for each in read if each is not None]
        yield from sorted(found, key=lambda word: str(getattr(word, sort.key)))

    def mention(self, kind: str, name: str) -> Json:
        """Return a reference to the word of a name, which is created where it is missing."""
        return self.mention_at(kind, _SORTS[kind].path(name))

    def mention_at(self, kind: str, path: tuple[str, ...]) -> Json:
        """Return a reference to the word at a path, which is created where it is missing."""
        sort = _SORTS[kind]
        name = fqn(path)
        if (kind, name) not in self._known:
            with self._making:
                self._known[kind, name] = self._mentioned(sort, path)
        return self._known[kind, name]

    def may_be_attached(self, reference: Json) -> bool:
        """Return whether the server takes something as an owner or a label, as it is now."""
        return str(reference["id"]) not in self._refused

    def excludes(self, source: str, above: str) -> bool:
        """Return whether a thing may have one label only below a full name."""
        key = (source, above)
        if key not in self._exclusive:
            root = ("classification", "tag") if source == CLASSIFICATION else _OF_TERMS
            type_ = root[len(path_of(above)) > 1]
            entity = self._api.find(type_, above) or {}
            self._exclusive[key] = bool(entity.get("mutuallyExclusive"))
        return self._exclusive[key]

    def _found(self, sort: _Sort, path: tuple[str, ...]) -> Json | None:
        """Return the entity at a path, or that which stands for it."""
        entity = self._api.find(sort.entity, fqn(path))
        if entity is None and sort.entity == _TERM:
            entity = self._api.find(_TERM, fqn(term_stand_in(path)))
        return entity

    def _mentioned(self, sort: _Sort, path: tuple[str, ...]) -> Json:
        entity = self._found(sort, path)
        if entity is None:
            entity = self._created(sort, path, wire=sort.wire({sort.key: path[-1]}))
            put_value(self._store, sort.entity, str(entity["fullyQualifiedName"]), value=MENTIONED)
        if entity.get("disabled") or entity.get("teamType") not in {None, _GROUP}:
            self._refused.add(str(entity["id"]))
        known = {part: entity[part] for part in ("id", "name", "fullyQualifiedName")}
        return {**known, "type": sort.entity}

    def _written(self, sort: _Sort, meant: Json, *, entity: Json | None) -> Json:
        path = sort.path(str(meant[sort.key]))
        known = sort.wire(meant)
        wire: Json = {name: value for name, value in known.items() if value}
        removable = known.keys() & _REMOVABLE  # display names are never taken away
        if entity is None:
            entity = self._created(sort, path, wire=wire)
        elif changed := changes(entity, self._changeable(wire, entity), removable=removable):
            self._fields.patch(sort.entity, entity, changes=changed)
        else:
            return entity
        return as_object(self._api.find(sort.entity, str(entity["fullyQualifiedName"])), "entity")

    def _changeable(self, wire: Json, entity: Json) -> Json:
        """Leave out what is fixed once it is there, and what the token may not change."""
        left = {name: value for name, value in wire.items() if name not in _FIXED}
        if "displayName" in left and not self._fields.may_name:
            left["displayName"] = entity.get("displayName")
        return left

    def _created(self, sort: _Sort, path: tuple[str, ...], *, wire: Json) -> Json:
        *above, name = path
        body: Json = {"name": name, **{key: value for key, value in wire.items() if value}}
        if sort.entity == "tag":
            body["classification"] = self._root("classification", above[0])
        elif sort.entity == "glossaryTerm":
            body["glossary"] = self._root("glossary", above[0])
        if len(above) > (sort.entity != "domain"):
            body["parent"] = self._parent(sort, tuple(above))
        try:
            return self._api.put(sort.entity, body)
        except PlatformConflictError:
            if sort.entity != "user":
                raise
            # No two users have the same address; the real one stays in the stash.
            return self._api.put(sort.entity, {**body, "email": f"{name}{_NO_MAIL}"})
        except PlatformError as error:
            if sort.entity != _TERM or type(error) is not PlatformError:
                raise
            # No two terms of a glossary have the same name, in any case and at any level.
            root, name = term_stand_in(path)
            body |= {"name": name, "glossary": self._root("glossary", root)}
            return self._api.put(_TERM, {key: body[key] for key in body if key != "parent"})

    def _root(self, type_: str, name: str) -> str:
        with self._making:
            if self._api.find(type_, fqn((name,))) is None:
                self._api.put(type_, {"name": name, "description": PLACEHOLDER})
        return fqn((name,))

    def _parent(self, sort: _Sort, path: tuple[str, ...]) -> str:
        kind = "domain" if sort.entity == "domain" else "glossary_term"
        return str(self.mention_at(kind, path)["fullyQualifiedName"])

    @staticmethod
    def _told(sort: _Sort, entity: Json) -> Json:
        given = {name: value for name, value in sort.told(entity).items() if value}
        return sort.model.from_json(given).to_json()

    def _word(self, sort: _Sort, entity: Json, stash: JsonValue | None) -> Word:
        told = self._told(sort, entity)
        try:
            return sort.model.from_json(restored(told, stash) if stash else told)
        except InvalidModelError:
            return sort.model.from_json(told)


def _name_in(entity: Json) -> str:
    return str(entity.get("fullyQualifiedName") or entity.get("name") or entity.get("id"))


def _is_built_in(entity: Json) -> bool:
    """Return whether the server came with it; its first administrator is not marked as such."""
    made = entity.get("provider") == "system" or bool(entity.get("isBot"))
    is_admin = entity.get("name") == _ADMIN and bool(entity.get("isAdmin"))
    return made or is_admin or entity.get("teamType") == _ORGANIZATION
