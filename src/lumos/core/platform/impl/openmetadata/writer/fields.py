"""Writes entities field by field where a server refuses them as a whole.

The rights of a bot do not cover every field, and a server may have rules that Lumos does not know.
What is refused of the fields that an entity can do without is reported, and the rest is written.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Final

from lumos.core.errors import PlatformConflictError, PlatformError, PlatformForbiddenError
from lumos.core.platform.impl.openmetadata.mapping.entities import NAME

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.platform.impl.openmetadata.client import OpenMetadataApi

DISPLAY_NAME: Final = "displayName"
_OPTIONAL: Final = (DISPLAY_NAME, "description", "owners", "domains", "tags")
_MOST_NAMED: Final = 3


class FieldWriter:
    """Creates and changes entities, and remembers what was refused of them."""

    def __init__(self, api: OpenMetadataApi) -> None:
        self._api = api
        self._skipped: dict[tuple[str, str], list[str]] = {}
        self._guard = Lock()
        self.may_name = True
        """Whether the token's user may change display names, as far as is known."""

    def create(self, type_: str, body: Json, *, wanted: Json) -> Json:
        """Create an entity; where it is refused as a whole, what it can do without comes later.

        Args:
            type_: of the entity.
            body: the request.
            wanted: the same in the form in which the server gives entities out.

        Raises:
            PlatformConflictError: it is there already.
        """
        try:
            return self._api.post(type_, body)
        except PlatformError as error:
            bare = {name: value for name, value in body.items() if name not in _OPTIONAL}
            if not _is_refused(error) or bare.keys() == body.keys():
                raise
            made = self._api.post(type_, bare)
            entity = self._api.find(type_, str(made["fullyQualifiedName"])) or made
            self._one_by_one(type_, entity, changes=_adding(wanted, entity))
            return made

    def patch(self, type_: str, entity: Json, *, changes: list[JsonValue]) -> None:
        """Change an entity, unless somebody else changed it since it was read.

        Raises:
            PlatformConflictError: it is no longer in the version that was read.
            PlatformError: something is refused that the entity cannot do without.
        """
        try:
            self._api.patch(type_, entity, changes=changes)
        except PlatformError as error:
            optional = [each for each in changes if _field(each) in _OPTIONAL]
            if not _is_refused(error) or not optional:
                raise
            if len(changes) == 1:
                self.skip(_field(changes[0]), entity, error=error)
                return
            if needed := [each for each in changes if _field(each) not in _OPTIONAL]:
                self._api.patch(type_, entity, changes=needed)
            self._one_by_one(type_, entity, changes=optional)

    def skip(self, field: str, entity: Json, *, error: PlatformError) -> None:
        """Remember that a field of an entity was not written."""
        if field == DISPLAY_NAME and isinstance(error, PlatformForbiddenError):
            self.may_name = False
        reason = error.message.partition(": ")[2].partition(": ")[2] or error.message
        name = str(entity.get("fullyQualifiedName") or entity.get("name"))
        with self._guard:
            self._skipped.setdefault((field, reason), []).append(name)

    def notices(self) -> tuple[str, ...]:
        """Return what was not written, in one line for each field and reason."""
        with self._guard:
            return tuple(_notice(*key, names) for key, names in sorted(self._skipped.items()))

    def _one_by_one(self, type_: str, entity: Json, *, changes: list[JsonValue]) -> None:
        for change in changes:
            field = _field(change)
            current = self._api.find(type_, str(entity["fullyQualifiedName"]))
            if current is None or current.get(field) != entity.get(field):
                raise PlatformConflictError(f"{NAME}: it was changed by somebody else meanwhile")
            try:
                self._api.patch(type_, current, changes=[change])
            except PlatformError as error:
                if not _is_refused(error):
                    raise
                self.skip(field, entity, error=error)


def _is_refused(error: PlatformError) -> bool:
    """Return whether a server understood a request and does not allow what it says."""
    return type(error) is PlatformError or isinstance(error, PlatformForbiddenError)


def _adding(wanted: Json, entity: Json) -> list[JsonValue]:
    return [
        {"op": "add", "path": f"/{name}", "value": wanted[name]}
        for name in _OPTIONAL
        if wanted.get(name) and not entity.get(name)
    ]


def _field(change: JsonValue) -> str:
    return str(change["path"]).split("/")[1] if isinstance(change, dict) else ""


def _notice(field: str, reason: str, names: list[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED])
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{NAME}: {field} was not written, and is kept beside it, of {shown}{more}: {reason}"
