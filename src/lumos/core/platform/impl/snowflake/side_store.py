"""The backend of the side store: one table of Lumos, in a separate schema."""
# ruff: noqa: S608 - names and text go into statements through `sql` alone

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from lumos.core.errors import (
    InvalidModelError,
    PlatformAnswerError,
    PlatformAuthError,
    PlatformError,
    PlatformForbiddenError,
)
from lumos.core.json_reading import as_object
from lumos.core.platform import stash
from lumos.core.platform.impl.snowflake.mapping.sql import (
    holds_one,
    identifier,
    literal,
    literals,
    qualified,
)
from lumos.core.platform.side_store import StoredDocument

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.platform.impl.snowflake.client import SnowflakeSession

_TABLE: Final = "STASH"
_COMMENT: Final = "What Lumos knows and Snowflake has no place for. Written by Lumos; do not edit."
_LARGEST_STATEMENT: Final = 900_000
"""Characters; Snowflake takes statements of up to one mebibyte."""
_MOST_NAMES: Final = 1_000
_DIGEST: Final = 24


def digest(text: str) -> str:
    """Return a short name of any text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]


class StashTable:
    """Documents as the rows of a table."""

    def __init__(self, session: SnowflakeSession, place: tuple[str, str]) -> None:
        self._session = session
        self._database, self._schema = place
        self._table = qualified(*place, _TABLE)
        self._is_there = False

    def make(self) -> None:
        """Make the schema and the table, where they are not there."""
        if not self._found():
            schema = qualified(self._database, self._schema)
            self._run(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            self._run(
                f"CREATE TABLE IF NOT EXISTS {self._table} (SECTION VARCHAR NOT NULL, "
                f"NAME VARCHAR NOT NULL, DOCUMENT VARCHAR NOT NULL) COMMENT = {literal(_COMMENT)}"
            )
            self._is_there = True

    def names(self, section: str) -> set[str]:
        """Return the names within a section."""
        if not self._found():
            return set()
        statement = f"SELECT NAME FROM {self._table} WHERE SECTION = {literal(section)}"
        return {str(row[0]) for row in self._session.rows(statement)}

    def texts(
        self, section: str, names: Iterable[str] | None = None, *, patterns: Iterable[str] = ()
    ) -> dict[str, str]:
        """Return documents as they are kept: all of a section, or those of names or patterns."""
        if not self._found():
            return {}
        found: dict[str, str] = {}
        for condition in _conditions(names, [*patterns]):
            statement = (
                f"SELECT NAME, DOCUMENT FROM {self._table} "
                f"WHERE SECTION = {literal(section)}{condition}"
            )
            found |= {str(name): str(text) for name, text in self._session.rows(statement)}
        return found

    def texts_with(self, section: str, words: Iterable[str]) -> dict[str, str]:
        """Return documents that hold one of the words, and all that are packed."""
        if not self._found():
            return {}
        statement = (
            f"SELECT NAME, DOCUMENT FROM {self._table} WHERE SECTION = {literal(section)} "
            f"AND ({holds_one(('NAME', 'DOCUMENT'), words)} OR DOCUMENT NOT LIKE '{{%')"
        )
        return {str(name): str(text) for name, text in self._session.rows(statement)}

    def stored(
        self, section: str, names: Collection[str] | None = None, *, like: Collection[str] = ()
    ) -> Iterator[StoredDocument]:
        """Yield the documents of a section, or those of names or patterns."""
        for name, text in self.texts(section, names, patterns=like).items():
            yield StoredDocument(name, partial(unpacked, text))

    def write(
        self,
        section: str,
        documents: Mapping[str, JsonValue],
        *,
        held: Mapping[str, str] | None = None,
    ) -> None:
        """Keep documents in place of those of the same names; equal ones are not written.

        Raises:
            PlatformError: a document is larger than a statement may be.
        """
        texts = {name: stash.packed(document) for name, document in documents.items()}
        known = self.texts(section, texts) if held is None else held
        changed = {name: text for name, text in texts.items() if known.get(name) != text}
        if changed:
            self.make()
        for values in _batches(changed):
            self._run(
                f"MERGE INTO {self._table} AS kept USING (SELECT COLUMN1 AS NAME, "
                f"COLUMN2 AS DOCUMENT FROM VALUES {values}) AS given "
                f"ON kept.SECTION = {literal(section)} AND kept.NAME = given.NAME "
                "WHEN MATCHED THEN UPDATE SET DOCUMENT = given.DOCUMENT "
                "WHEN NOT MATCHED THEN INSERT (SECTION, NAME, DOCUMENT) "
                f"VALUES ({literal(section)}, given.NAME, given.DOCUMENT)"
            )

    def delete(
        self, section: str, names: Collection[str] = (), *, like: Collection[str] = ()
    ) -> None:
        """Remove documents, if they are there."""
        if self._found():
            for condition in _conditions(names, [*like]):
                self._run(
                    f"DELETE FROM {self._table} WHERE SECTION = {literal(section)}{condition}"
                )

    def _run(self, statement: str) -> None:
        """Change the stash; without the right to do so nothing at all can be written."""
        try:
            self._session.run(statement)
        except PlatformForbiddenError as error:
            raise PlatformAuthError(
                f"{error.message}: it may not write to the schema "
                f"{self._database}.{self._schema}, where Lumos keeps its own",
                hint=error.hint,
            ) from None

    def _found(self) -> bool:
        if not self._is_there:
            statement = (
                f"SELECT COUNT(*) FROM {identifier(self._database)}.INFORMATION_SCHEMA.TABLES "
                f"WHERE TABLE_SCHEMA = {literal(self._schema)} AND TABLE_NAME = {literal(_TABLE)}"
            )
            ((count,),) = self._session.rows(statement)
            self._is_there = bool(count)
        return self._is_there


def unpacked(text: str) -> JsonValue:
    """Return the document of a text.

    Raises:
        PlatformAnswerError: it was changed by others.
    """
    try:
        return stash.unpacked(text)
    except InvalidModelError:
        raise PlatformAnswerError(
            "what Lumos keeps in Snowflake was changed or is incomplete",
            hint=f"restore the table {_TABLE} in the schema of the stash, by Time Travel",
        ) from None


def parts_of(document: JsonValue) -> dict[str, JsonValue]:
    """Return the parts of a document that Lumos wrote as an object.

    Raises:
        UnexpectedJsonError: others changed it into something else.
    """
    return as_object(document, "document")


def _conditions(names: Iterable[str] | None, patterns: list[str]) -> Iterator[str]:
    """Yield what narrows a statement to names or patterns, in as many statements as it takes."""
    if patterns:
        joined = " OR ".join(f"NAME LIKE {literal(pattern)}" for pattern in patterns)
        yield f" AND ({joined})"
    elif names is None:
        yield ""
    else:
        listed = [*names]
        for start in range(0, len(listed), _MOST_NAMES):
            yield f" AND NAME IN ({literals(listed[start : start + _MOST_NAMES])})"


def _batches(texts: Mapping[str, str]) -> Iterator[str]:
    """Yield rows of constants, together no larger than a statement may be."""
    batch: list[str] = []
    size = 0
    for name, text in texts.items():
        row = f"({literal(name)}, {literal(text)})"
        if len(row.encode()) > _LARGEST_STATEMENT:
            raise PlatformError(
                "the metadata of one dataset is larger than a statement of Snowflake may be",
                hint="leave out its profile, or keep it in another catalog",
            )
        if batch and size + len(row.encode()) > _LARGEST_STATEMENT:
            yield ", ".join(batch)
            batch, size = [], 0
        batch.append(row)
        size += len(row.encode())
    if batch:
        yield ", ".join(batch)
