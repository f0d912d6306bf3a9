"""What people write under `meta`, and whom they name as owner there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from lumos.core.errors import UnreadableItemError
from lumos.core.json_reading import object_at, text_at
from lumos.core.models import Group, Owner, User
from lumos.core.models.frozen import DEEPEST_JSON
from lumos.core.redaction import looks_secret, redact

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json

_OWNER_KEYS: Final = ("owner", "owners")
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+\Z")


def meta_of(node: Json) -> Json:
    """Return the meta of a node or column: that of its source, of its `config` and its own."""
    return {
        **object_at(node, "source_meta"),  # dbt 1.10 repeats it in `meta`
        **object_at(object_at(node, "config"), "meta"),
        **object_at(node, "meta"),
    }


def properties_of(meta: Json) -> Json:
    """Return the meta of a dataset as properties, without its owners."""
    return flattened({key: meta[key] for key in meta if key not in _OWNER_KEYS})


def flattened(meta: Json) -> Json:
    """Return meta as properties: `runbook: {page: x}` becomes `runbook.page`.

    What looks like a secret is left out.
    """
    return dict(_flat(meta, prefix=""))


def without_secrets(value: JsonValue, *, depth: int = 0) -> JsonValue:
    """Return JSON without what looks like a secret.

    Raises:
        UnreadableItemError: it is nested too deeply.
    """
    if depth > DEEPEST_JSON:
        raise UnreadableItemError(f"it is nested more than {DEEPEST_JSON} levels deep")
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [without_secrets(item, depth=depth + 1) for item in value]
    if isinstance(value, dict):
        return {
            key: without_secrets(item, depth=depth + 1)
            for key, item in value.items()
            if not looks_secret(key)
        }
    return value


def _flat(meta: Json, *, prefix: str, depth: int = 0) -> Iterator[tuple[str, JsonValue]]:
    if depth > DEEPEST_JSON:
        raise UnreadableItemError(f"meta is nested more than {DEEPEST_JSON} levels deep")
    for key, value in meta.items():
        if looks_secret(key):
            continue
        if isinstance(value, dict) and value:
            yield from _flat(value, prefix=f"{prefix}{key}.", depth=depth + 1)
        elif value is not None:
            yield f"{prefix}{key}", without_secrets(value)


class People:
    """Collects the users and groups that own something, each once."""

    def __init__(self) -> None:
        self._users: dict[str, User] = {}
        self._groups: dict[str, Group] = {}

    def owners_of(self, meta: Json, *, group: Json | None = None) -> list[Owner]:
        """Return the owners that `meta` names, and the dbt group that a model belongs to.

        An e-mail address is a user; any other name is a group.
        """
        named = [meta[key] for key in _OWNER_KEYS if key in meta]
        owners = [owner for value in named for owner in self._owners(value)]
        if group is not None:
            owners.append(self._owner_of_group(group))
        return list(dict.fromkeys(owners))

    def records(self) -> Iterator[User | Group]:
        """Yield the people, in ascending order."""
        yield from (self._users[name] for name in sorted(self._users))
        yield from (self._groups[name] for name in sorted(self._groups))

    def _owners(self, value: JsonValue) -> Iterator[Owner]:
        match value:
            case str():
                several = value.split(",") if "@" in value else [value]
                yield from (self._owner(name) for name in _names(several))
            case list():
                for each in value:
                    if isinstance(each, str | dict):
                        yield from self._owners(each)
            case dict():
                email, name = text_at(value, "email"), text_at(value, "name")
                if named := next(iter(_names((email or "", name or ""))), None):
                    yield self._owner(named, full_name=name if named != name else None)
            case _:
                pass

    def _owner(self, name: str, *, full_name: str | None = None) -> Owner:
        if not _EMAIL.match(name):
            self._groups.setdefault(name, Group.from_json({"name": name}))
            return Owner(group=name)
        if full_name or name not in self._users:
            person = {"username": name, "email": name, "display_name": full_name}
            self._users[name] = User.from_json(person)
        return Owner(user=name)

    def _owner_of_group(self, group: Json) -> Owner:
        owner = object_at(group, "owner")
        found = Group.from_json(
            {
                "name": text_at(group, "name"),
                "display_name": text_at(owner, "name"),
                "email": text_at(owner, "email"),
                "description": text_at(group, "description"),
            }
        )
        self._groups[found.name] = found
        return Owner(group=found.name)


def _names(texts: Iterable[str]) -> list[str]:
    return [name for text in texts if (name := text.strip())]


def text_properties(values: Mapping[str, str | None]) -> Json:
    """Return those properties that have a value, without credentials in URLs."""
    return {key: redact(value) for key, value in values.items() if value}
