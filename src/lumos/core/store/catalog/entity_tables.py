"""The tables of entities (users, groups, tags, terms, domains, jobs) and of identities."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING

from lumos.core.models import Urn
from lumos.core.store.checksums import ENTITIES, IDENTITIES, pass_over, whole_rows
from lumos.core.store.documents import as_moment, checked_key, stored_object, stored_text
from lumos.core.store.sql_text import as_key

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.store.checksums import NoteDamage
    from lumos.core.store.database import StateDatabase
    from lumos.core.store.engine import SqlValue

_PUT_ENTITY = """
INSERT INTO entities (kind, name, document, updated_at, checksum)
VALUES (:kind, :name, :document, :updated_at, :checksum)
ON CONFLICT (kind, name) DO UPDATE SET
    document = excluded.document, updated_at = excluded.updated_at, checksum = excluded.checksum
WHERE entities.document <> excluded.document OR entities.checksum <> excluded.checksum
"""
_PUT_IDENTITY = """
INSERT INTO identity_map (urn, catalog, document, checksum)
VALUES (:urn, :catalog, :document, :checksum)
ON CONFLICT (urn, catalog) DO UPDATE SET
    document = excluded.document, checksum = excluded.checksum
WHERE identity_map.document <> excluded.document OR identity_map.checksum <> excluded.checksum
"""
_SELECT_IDENTITIES = "SELECT urn, catalog, document, checksum FROM identity_map"
_NAMES_AT_ONCE = 500
"""Fewer than the parameters that any version of SQLite takes."""


class EntityTable:
    """Entities by kind and name."""

    def __init__(self, database: StateDatabase) -> None:
        self._database = database

    def put(self, kind: str, name: str, *, document: object, at: datetime) -> bool:
        """Store a user, group, tag, term, domain or job and return whether anything changed."""
        row: dict[str, SqlValue] = {
            "kind": kind,
            "name": checked_key(as_key(name)),
            "document": stored_text(document),
            "updated_at": as_moment(at),
        }
        row["checksum"] = ENTITIES.checksum(row)
        return bool(self._database.execute(_PUT_ENTITY, row))

    def get(self, kind: str, name: str) -> dict[str, JsonValue] | None:
        """Return the document of an entity, if there is one and it is what was written."""
        rows = self._database.query(
            "SELECT kind, name, document, checksum FROM entities "
            "WHERE kind = :kind AND name = :name",
            {"kind": kind, "name": as_key(name)},
        )
        whole = whole_rows(rows, ENTITIES, pass_over)
        return stored_object(whole[0].text("document")) if whole else None

    def after(
        self, kind: str, key: str, *, limit: int, damaged: NoteDamage
    ) -> tuple[list[str], str | None]:
        """Return the documents of the next entities of a kind, and the last key if there is any.

        `damaged` is called with the error of each damaged row.
        """
        rows = self._database.query(
            "SELECT kind, name, document, checksum FROM entities "
            "WHERE kind = :kind AND name > :after ORDER BY name LIMIT :limit",
            {"kind": kind, "after": key, "limit": limit},
        )
        found = [row.text("document") for row in whole_rows(rows, ENTITIES, damaged)]
        return found, rows[-1].text("name") if rows else None


class IdentityTable:
    """The names of datasets in other catalogs."""

    def __init__(self, database: StateDatabase) -> None:
        self._database = database

    def put(self, urn: str, catalog: str, *, external_id: str) -> bool:
        """Store what another catalog calls a dataset and return whether anything changed."""
        row: dict[str, SqlValue] = {
            "urn": checked_key(urn),
            "catalog": checked_key(as_key(catalog)),
            "document": stored_text({"catalog": catalog, "id": external_id}),
        }
        row["checksum"] = IDENTITIES.checksum(row)
        return bool(self._database.execute(_PUT_IDENTITY, row))

    def all(self, *, damaged: NoteDamage) -> dict[Urn, dict[str, str]]:
        """Return what other catalogs call each dataset."""
        identities: defaultdict[Urn, dict[str, str]] = defaultdict(dict)
        rows = self._database.query(f"{_SELECT_IDENTITIES} ORDER BY urn")
        for row in whole_rows(rows, IDENTITIES, damaged):
            identity = stored_object(row.text("document"))
            identities[Urn(row.text("urn"))][str(identity["catalog"])] = str(identity["id"])
        return dict(identities)

    def find(self, names: Collection[tuple[str, str]]) -> dict[tuple[str, str], Urn]:
        """Return the datasets that have these names in other catalogs."""
        documents = {
            stored_text({"catalog": catalog, "id": external_id}): (catalog, external_id)
            for catalog, external_id in names
        }
        found: dict[tuple[str, str], Urn] = {}
        texts = [*documents]
        for start in range(0, len(texts), _NAMES_AT_ONCE):
            part = texts[start : start + _NAMES_AT_ONCE]
            given = {f"name_{number}": document for number, document in enumerate(part)}
            marks = ", ".join(f":{mark}" for mark in given)
            rows = self._database.query(
                f"{_SELECT_IDENTITIES} WHERE document IN ({marks}) ORDER BY urn", given
            )
            found |= {
                documents[row.text("document")]: Urn(row.text("urn"))
                for row in rows
                if IDENTITIES.is_whole(row)
            }
        return found
