"""What Amundsen calls a table: `{database}://{cluster}.{schema}/{table}`, and the URN of it."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from lumos.core.models import Urn

OWN_CLUSTER = "lumos"
"""The cluster of tables whose URN names none."""
NAMED_BY_HASH = "named"
"""The schema, in that cluster, of tables whose URN no key of Amundsen can spell."""

_LONGEST_PART = 200
_PLAIN = re.compile(r"[A-Za-z0-9_$@+=~:,.-]+\Z")
_PLATFORM = re.compile(r"[a-z][a-z0-9_.-]*\Z")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]+")
_DIGEST = 24


class TableKey(NamedTuple):
    """The four names of a table in Amundsen."""

    database: str
    cluster: str
    schema: str
    table: str

    @property
    def database_key(self) -> str:
        return f"database://{self.database}"

    @property
    def cluster_key(self) -> str:
        return f"{self.database}://{self.cluster}"

    @property
    def schema_key(self) -> str:
        return f"{self.cluster_key}.{self.schema}"

    @property
    def text(self) -> str:
        return f"{self.schema_key}/{self.table}"

    def urn(self) -> Urn:
        """Return the URN of a table that Lumos did not write."""
        if _PLATFORM.match(self.database):
            return Urn.of(self.database, self.cluster, self.schema, self.table)
        platform = "amundsen"
        return Urn.of(platform, self.database, self.cluster, self.schema, self.table)


def key_of(urn: Urn) -> TableKey:
    """Return the key under which Lumos writes a dataset; no two URNs share one."""
    parts = urn.parts
    if all(_is_plain(part) for part in parts):
        match parts:
            case (table,):
                return TableKey(urn.platform, OWN_CLUSTER, OWN_CLUSTER, table)
            case (schema, table) if schema not in (OWN_CLUSTER, NAMED_BY_HASH):
                return TableKey(urn.platform, OWN_CLUSTER, schema, table)
            case (cluster, schema, table) if cluster != OWN_CLUSTER and "." not in cluster:
                return TableKey(urn.platform, cluster, schema, table)
            case _:
                pass
    return TableKey(urn.platform, OWN_CLUSTER, NAMED_BY_HASH, _with_digest(parts[-1], urn))


def native_key_of(urn: Urn) -> TableKey | None:
    """Return the key of a table that others wrote and whose URN this would be, if there can be."""
    parts = urn.parts
    if urn.platform == "amundsen" and len(parts) == 4:  # noqa: PLR2004 - database to table
        key = TableKey(*parts)
    elif len(parts) == 3:  # noqa: PLR2004 - cluster, schema, table
        key = TableKey(urn.platform, *parts)
    else:
        return None
    return key if key.urn() == urn and is_latin(key.text) else None


def column_key(table_key: str, column: str) -> str:
    """Return the key of a column; no two columns of a table share one."""
    return f"{table_key}/{column if _is_plain(column) else _with_digest(column, column)}"


def fits_key(text: str, *, longest: int) -> bool:
    """Return whether Amundsen can keep a name as the key of a user, a tag or a badge."""
    return len(text) <= longest and text.isascii() and text.isprintable() and text == text.strip()


def digest(text: str) -> str:
    """Return a short name of any text that a key may hold."""
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]


def _with_digest(name: str, whole: str) -> str:
    return f"{_NOT_PLAIN.sub('-', name)[:40].strip('-') or 'x'}.{digest(whole)}"


def _is_plain(part: str) -> bool:
    return len(part) <= _LONGEST_PART and _PLAIN.match(part) is not None


def is_latin(text: str) -> bool:
    """Return whether a key of Amundsen can hold a text."""
    try:
        text.encode("cp1252")  # what MySQL calls latin1, the character set of keys
    except UnicodeEncodeError:
        return False
    return True
