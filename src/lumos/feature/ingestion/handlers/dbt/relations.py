"""The URNs of what dbt calls relations: the tables and views of its adapters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from lumos.core.errors import SourceError, UnreadableItemError
from lumos.core.json_reading import text_at
from lumos.core.models import Urn

if TYPE_CHECKING:
    from lumos.core.json_reading import Json

_PLATFORMS: Final = {
    "alloydb": "postgres",
    "postgresql": "postgres",
    "mysql5": "mysql",
    "mariadb": "mysql",
    "azuresql": "sqlserver",
}
"""Adapters whose platform has another name; the others are called as their platforms."""
_PLATFORM: Final = re.compile(r"[a-z][a-z0-9_.-]*\Z")


def relation_platform(adapter: str | None) -> str:
    """Return the platform of the tables that a dbt adapter makes.

    Raises:
        SourceError: the manifest names no adapter that could be one.
    """
    platform = _PLATFORMS.get(adapter or "", adapter or "")
    if not _PLATFORM.match(platform):
        raise SourceError(
            "the manifest does not say which adapter dbt used (metadata.adapter_type)",
            hint="write it again with: dbt docs generate",
        )
    return platform


class Relations:
    """Names relations: `lumos://<platform>/<database>/<schema>/<name>`, spelled as dbt has them.

    A platform without databases, such as Spark, has shorter names; `instance` comes first.
    """

    def __init__(self, platform: str, *, instance: str | None) -> None:
        self.platform = platform
        self._first = (instance,) if instance else ()

    def urn_of(self, node: Json) -> Urn:
        """Return the URN of a model, seed, snapshot or source.

        Raises:
            UnreadableItemError: it has no name or no schema.
        """
        name = name_of(node)
        schema = text_at(node, "schema")
        if name is None or schema is None:
            raise UnreadableItemError("it has no name or no schema")
        database = text_at(node, "database")
        parts = (database, schema, name) if database else (schema, name)
        return Urn.of_path(self.platform, *self._first, *parts)

    def urn_of_exposure(self, node: Json) -> Urn:
        """Return the URN of an exposure.

        Raises:
            UnreadableItemError: it has no name or belongs to no package.
        """
        name, package = text_at(node, "name"), text_at(node, "package_name")
        if name is None or package is None:
            raise UnreadableItemError("it has no name or no package")
        return Urn.of_path("dbt", *self._first, package, "exposures", name)


def name_of(node: Json) -> str | None:
    """Return what the table is called: the alias of a model, the identifier of a source."""
    return text_at(node, "identifier") or text_at(node, "alias") or text_at(node, "name")
