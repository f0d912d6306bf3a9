"""An account of Snowflake: the emulator fakesnow, and in front of it what that does not have.

fakesnow runs all that reads and writes tables, schemas and comments of columns. What it takes
without keeping it, or refuses, is kept here: tags and where they are set, the comments of views,
comments of tables that hold a quote, views in INFORMATION_SCHEMA.TABLES, owners.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

import duckdb
import sqlglot
from fakesnow.instance import FakeSnow
from pydantic import JsonValue
from snowflake.connector.errors import ProgrammingError
from sqlglot.tokenizer_core import Token, TokenType

from lumos.core.platform.impl.snowflake.client import SnowflakeSession
from lumos.core.platform.impl.snowflake.handler import SnowflakeHandler
from lumos.core.platform.impl.snowflake.mapping.sql import identifier, qualified
from lumos.core.platform.impl.snowflake.settings import SnowflakeSettings

DATABASE = "SHOP"
SETTINGS: Mapping[str, JsonValue] = {
    "account": "acme-shop",
    "user": "LUMOS",
    "password": "planted-password",
    "databases": [DATABASE],
}
NOT_THERE = 2003
NO_PRIVILEGE = 3001
TOO_MUCH = 90_030
EXPIRED = 390_114
OTHER_KIND = 2203
MOST_SHOWN = 10_000
_VIEWS = (
    "(SELECT TABLE_SCHEMA, TABLE_NAME, 'VIEW' AS TABLE_TYPE, TABLE_OWNER, COMMENT, "
    "NULL AS ROW_COUNT, NULL AS BYTES, LAST_ALTERED, CREATED, NULL AS CLUSTERING_KEY, "
    "'NO' AS IS_TRANSIENT, NULL AS RETENTION_TIME, 'NO' AS IS_ICEBERG, 'NO' AS IS_DYNAMIC "
    "FROM {database}.INFORMATION_SCHEMA.VIEWS)"
)
_TABLES = re.compile(r'("(?:[^"]|"")+")\.INFORMATION_SCHEMA\.TABLES')
Key = tuple[str, ...]


class Result(NamedTuple):
    """What a statement gives."""

    rows: list[tuple[object, ...]]
    names: list[str]


_NAME = r'"(?:[^"]|"")*"'
_COLUMN_OF_VIEW = re.compile(
    rf"ALTER VIEW ({_NAME}(?:\.{_NAME})*) ALTER COLUMN ({_NAME}) COMMENT (.*)\Z", re.DOTALL
)
"""What the emulator does not know; in its database it is said otherwise."""


class Role:
    """What the role of Lumos may not do; others may do everything."""

    def __init__(self) -> None:
        self.may_not_change: set[Key] = set()
        """Tables or schemas that it does not own."""
        self.may_not_see_tags_of: set[Key] = set()
        self.may_not_see: set[Key] = set()
        """Tables, or schemas with all that is in them."""

    def check(self, statement: str) -> None:
        """Refuse a statement as Snowflake does."""
        parts = Parts(statement)
        changed = next(
            (key for key in self.may_not_change if parts.identifiers()[: len(key)] == key), None
        )
        if changed and parts.starts_with_one_of("COMMENT", "ALTER", "GRANT", "CREATE", "MERGE"):
            raise ProgrammingError(msg="Insufficient privileges to operate", errno=NO_PRIVILEGE)
        for _, text in parts.calls():
            if Parts(text).identifiers() in self.may_not_see_tags_of:
                raise ProgrammingError(msg="does not exist or not authorized", errno=NOT_THERE)

    def sees(self, key: Key) -> bool:
        return key not in self.may_not_see and key[:2] not in self.may_not_see


class SnowflakeAccount:
    """One account with one database; `statements` has all that was run in it."""

    def __init__(self) -> None:
        self._emulator = FakeSnow()
        self._connection = self._connected()
        self._used = self._has_views = False
        self.statements: list[str] = []
        self.tags: dict[Key, str] = {}
        self.uses: dict[tuple[Key, str | None], dict[Key, str]] = {}
        self.comments: dict[Key, str] = {}
        self.owners: dict[Key, str] = {}
        self.created: dict[Key, datetime] = {}
        self.role = Role()
        self.kinds: dict[Key, str] = {}
        """What tables are that are neither plain tables nor views."""
        self.propagated: set[Key] = set()
        """Tags that Snowflake carried over from other tables."""
        self.most_rows: int | None = None
        """How many rows INFORMATION_SCHEMA gives at once, if that is limited."""
        self.logins = 0
        self.expired_logins = 0
        """The sessions of how many logins have ended, after hours without a statement."""

    def _connected(self) -> Any:
        connection = self._emulator.connect(database=DATABASE, schema="PUBLIC")
        # It takes `$name` for a variable within string constants, too; Snowflake does not.
        connection.variables.inline_variables = lambda sql: sql  # type: ignore[method-assign]
        return connection

    def connect(self) -> AccountConnection:
        """Return a connection as the connector would."""
        self.logins += 1
        return AccountConnection(self, self._connected())

    def run(self, *statements: str) -> list[tuple[object, ...]]:
        """Run statements as somebody else in the account, and return what the last one gives."""
        found = Result([], [])
        for statement in statements:
            found = self.answer(statement, self._connection)
        return found.rows

    def make_table(self, name: str, *, column: str) -> None:
        """Make a table of any name; the emulator's own statement fails at a quote in it."""
        table = qualified(DATABASE, "PUBLIC", name)
        self._used = True
        self._emulator.duck_conn.execute(f"CREATE TABLE {table} ({identifier(column)} BIGINT)")

    def replace_table(self, name: str, columns: str) -> None:
        """Replace a table, by which it loses comments and tags."""
        key = (DATABASE, "PUBLIC", name)
        self.run(f"CREATE OR REPLACE TABLE {qualified(*key)} ({columns})")
        self.created[key] = datetime(2026, 1, 1, tzinfo=UTC)
        self.run(f"COMMENT ON TABLE {qualified(*key)} IS ''")
        for place in [place for place in self.uses if place[0] == key]:
            del self.uses[place]

    def reset(self) -> None:
        """Make the account as empty as a new one."""
        connection = self._connection
        if not self._used:
            return
        with quiet():
            cursor = connection.cursor()
            cursor.execute(f'SELECT SCHEMA_NAME FROM "{DATABASE}".INFORMATION_SCHEMA.SCHEMATA')  # noqa: S608
            names = {str(row[0]) for row in cursor.fetchall()} - {"INFORMATION_SCHEMA"}
            for name in names:
                quoted = name.replace('"', '""')
                cursor.execute(f'DROP SCHEMA "{DATABASE}"."{quoted}" CASCADE')
            cursor.execute(f'CREATE SCHEMA "{DATABASE}"."PUBLIC"')
        self._used = self._has_views = False
        self.statements.clear()
        for kept in (self.tags, self.uses, self.comments, self.owners, self.created):
            kept.clear()
        self.role = Role()
        self.kinds.clear()
        self.propagated.clear()
        self.most_rows = None

    def answer(self, statement: str, connection: Any) -> Result:
        """Run a statement, here or in the emulator."""
        self._used = True
        self._has_views |= statement.startswith("CREATE VIEW")
        words = " ".join(statement.split()[:3]).upper()
        if words.startswith(("COMMENT ON", "ALTER ")) and self._is_of_special_table(statement):
            return self._changed_special(Parts(statement))
        if words.startswith(("CREATE TAG", "ALTER TAG", "SHOW TAGS", "GRANT OWNERSHIP")):
            return self._of_account(Parts(statement))
        if words.startswith("ALTER") and re.search(r" (UN)?SET TAG ", statement):
            return self._tagged(Parts(statement))
        if "INFORMATION_SCHEMA.TAG_REFERENCES" in statement:
            return self._references(Parts(statement))
        if words.startswith("ALTER VIEW") and (column := _COLUMN_OF_VIEW.match(statement)):
            return executed(connection, "COMMENT ON COLUMN {}.{} IS {}".format(*column.groups()))
        if words.startswith(("COMMENT ON TABLE", "COMMENT ON VIEW")):
            return self._commented(statement, connection)
        if _TABLES.search(statement) and "COUNT(*)" not in statement:
            return self._tables(statement, connection)
        return executed(connection, statement)

    def _is_of_special_table(self, statement: str) -> bool:
        return bool(self.kinds) and Parts(statement).identifiers()[:3] in self.kinds

    def _changed_special(self, parts: Parts) -> Result:
        """Take a comment or tags for a table that is called what it is."""
        key = parts.identifiers()[:3]
        kind = self.kinds[key]
        if not parts.has("COLUMN") and not all(parts.has(word) for word in kind.split()):
            raise ProgrammingError(msg=f"Object found is of type '{kind}'", errno=OTHER_KIND)
        if parts.has("COMMENT") and not parts.has("COLUMN"):
            if parts.starts("COMMENT") is (kind == "ICEBERG TABLE"):
                raise ProgrammingError(msg="unsupported feature", errno=OTHER_KIND)
            self.comments[key] = parts.strings()[0]
            return Result([("Statement executed successfully.",)], ["status"])
        return self._tagged(parts)

    def _of_account(self, parts: Parts) -> Result:
        names = parts.identifiers()
        if parts.starts("CREATE", "TAG"):
            self.tags.setdefault(names[:3], "")
        elif parts.starts("ALTER", "TAG"):
            self._require(names[:3])
            self.tags[names[:3]] = parts.strings()[0]
        elif parts.starts("GRANT"):
            self.owners[names[:3]] = names[3]
        else:
            columns = ["created_on", "name", "database_name", "schema_name", "comment"]
            found = [(None, tag[2], tag[0], tag[1], text) for tag, text in self.tags.items()]
            shown: list[tuple[object, ...]] = [
                row for row in found if (row[2], row[3])[: len(names)] == names
            ]
            return Result(shown[:MOST_SHOWN], columns)
        return Result([("Statement executed successfully.",)], ["status"])

    def _tagged(self, parts: Parts) -> Result:
        names, values = parts.identifiers(), parts.strings()
        table, rest = names[:3], names[3:]
        column = rest[0] if parts.has("COLUMN") else None
        tags = rest[1:] if parts.has("COLUMN") else rest
        keys = [tags[start : start + 3] for start in range(0, len(tags), 3)]
        uses = self.uses.setdefault((table, column), {})
        for place, key in enumerate(keys):
            self._require(key)
            if parts.has("UNSET"):
                uses.pop(key, None)
            else:
                uses[key] = values[place]
        return Result([("Statement executed successfully.",)], ["status"])

    def _references(self, parts: Parts) -> Result:
        rows: list[tuple[object, ...]] = []
        for function, text in parts.calls():
            table = Parts(text).identifiers()
            of_columns = function == "TAG_REFERENCES_ALL_COLUMNS"
            for (key, column), uses in self.uses.items():
                if key == table and (column is not None) is of_columns:
                    level = "COLUMN" if of_columns else "TABLE"
                    rows += [
                        (*table, column, level, *tag, value, self._method(tag))
                        for tag, value in uses.items()
                    ]
        if self.tags_of_schema and rows:  # those of a schema show on all that lies in it
            rows.append(
                (
                    *rows[0][:3],
                    None,
                    "SCHEMA",
                    DATABASE,
                    "GOVERNANCE",
                    "INHERITED",
                    "x",
                    "INHERITED",
                )
            )
        return Result(rows, [])

    def _method(self, tag: Key) -> str:
        return "PROPAGATED" if tag in self.propagated else "MANUAL"

    tags_of_schema = False

    def _commented(self, statement: str, connection: Any) -> Result:
        parts = Parts(statement)
        key, text = parts.identifiers()[:3], parts.strings()[0]
        self.comments.pop(key, None)
        if parts.has("VIEW") or "'" in text:
            self.comments[key] = text
            return Result([("Statement executed successfully.",)], ["status"])
        return executed(connection, statement)

    def _tables(self, statement: str, connection: Any) -> Result:
        match = _TABLES.search(statement)
        assert match is not None
        tables = executed(connection, statement)
        of_views = statement.replace(match[0], _VIEWS.format(database=match[1]))
        views = executed(connection, of_views).rows if self._has_views else []
        rows = [*tables.rows, *views]
        names = statement.partition(" FROM ")[0].removeprefix("SELECT ").split(", ")
        shown = []
        for row in rows:
            found = dict(zip(names, row, strict=True))
            key = (DATABASE, str(found["TABLE_SCHEMA"]), str(found["TABLE_NAME"]))
            found["COMMENT"] = self.comments.get(key, found["COMMENT"])
            found["TABLE_OWNER"] = self.owners.get(key, found["TABLE_OWNER"])
            found["CREATED"] = self.created.get(key, found["CREATED"])
            self._show_kind(found, self.kinds.get(key))
            shown.append(tuple(found.values()))
        return Result(shown, names)

    def _show_kind(self, row: dict[str, object], kind: str | None) -> None:
        if kind in ("ICEBERG TABLE", "DYNAMIC TABLE"):
            row[f"IS_{kind.split()[0]}"] = "YES"
        elif kind is not None:
            row["TABLE_TYPE"] = kind

    def seen_by_role(self, statement: str, result: Result) -> Result:
        """Return what the role sees of an answer of INFORMATION_SCHEMA."""
        if not re.search(r"INFORMATION_SCHEMA\.(TABLES|COLUMNS) ", statement):
            return result
        if "COUNT(*)" in statement:
            return result
        rows = [row for row in result.rows if self.role.sees((DATABASE, *map(str, row[:2])))]
        if self.most_rows is not None and len(rows) > self.most_rows:
            raise ProgrammingError(msg="returned too much data", errno=TOO_MUCH)
        return result._replace(rows=rows)

    def _require(self, tag: Key) -> None:
        if tag not in self.tags:
            raise ProgrammingError(msg="Tag does not exist or not authorized.", errno=NOT_THERE)


class Parts:
    """A statement in tokens, by the tokenizer for Snowflake of sqlglot."""

    def __init__(self, statement: str) -> None:
        self._tokens: Sequence[Token] = sqlglot.tokenize(statement, read="snowflake")

    def starts_with_one_of(self, *words: str) -> bool:
        return any(self.starts(word) for word in words)

    def starts(self, *words: str) -> bool:
        return [token.text.upper() for token in self._tokens[: len(words)]] == [*words]

    def has(self, word: str) -> bool:
        return any(
            token.text.upper() == word
            and token.token_type not in (TokenType.IDENTIFIER, TokenType.STRING)
            for token in self._tokens
        )

    def identifiers(self) -> Key:
        return tuple(t.text for t in self._tokens if t.token_type is TokenType.IDENTIFIER)

    def strings(self) -> Key:
        return tuple(t.text for t in self._tokens if t.token_type is TokenType.STRING)

    def calls(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the first argument of each function for tags."""
        for place, token in enumerate(self._tokens):
            if token.text.upper().startswith("TAG_REFERENCES"):
                yield token.text.upper(), self._tokens[place + 2].text


class AccountConnection:
    """A connection of DB-API to the account."""

    def __init__(self, account: SnowflakeAccount, connection: Any) -> None:
        self._account = account
        self._emulated = connection
        self._login = account.logins

    def cursor(self) -> AccountCursor:
        if self._login <= self._account.expired_logins:
            raise ProgrammingError(msg="Authentication token has expired.", errno=EXPIRED)
        return AccountCursor(self._account, self._emulated)

    def close(self) -> None:
        self._emulated.close()


class AccountCursor:
    """A cursor of DB-API."""

    def __init__(self, account: SnowflakeAccount, connection: Any) -> None:
        self._account = account
        self._connection = connection
        self._result = Result([], [])

    @property
    def description(self) -> list[tuple[str]]:
        return [(name,) for name in self._result.names]

    def execute(self, command: str) -> AccountCursor:
        self._account.statements.append(command)
        self._account.role.check(command)
        result = self._account.answer(command, self._connection)
        self._result = self._account.seen_by_role(command, result)
        return self

    def fetchall(self) -> list[tuple[object, ...]]:
        return self._result.rows

    def close(self) -> None:
        self._result = Result([], [])


@contextmanager
def quiet() -> Iterator[None]:
    """Let the emulator use what DuckDB advises against."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Arrow output on a DB-API result")
        yield


def executed(connection: Any, statement: str) -> Result:
    """Run a statement in the emulator; errors of DuckDB become those of Snowflake."""
    with quiet():
        try:
            cursor = connection.cursor()
            cursor.execute(statement)
            rows = [tuple(row) for row in cursor.fetchall()]
            return Result(rows, [])
        except duckdb.Error as error:
            raise ProgrammingError(msg=str(error), errno=1003) from error


def snowflake_over(account: SnowflakeAccount, **settings: JsonValue) -> SnowflakeHandler:
    """Return the adapter over an account."""
    given = SnowflakeSettings.from_json({**SETTINGS, **settings})
    return SnowflakeHandler(SnowflakeSession(account.connect), given)
