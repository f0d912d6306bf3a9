"""Statements of the adapter of Snowflake: quoting, how many there are, and what errors mean."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from snowflake.connector import errors
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from doubles.snowflake_account import SETTINGS, SnowflakeAccount, snowflake_over
from lumos.core.errors import (
    ConfigurationError,
    LumosError,
    PlatformAuthError,
    PlatformConflictError,
    PlatformError,
    PlatformForbiddenError,
    PlatformLimitError,
    PlatformNotFoundError,
    PlatformUnavailableError,
)
from lumos.core.models import LumosDataset, Tag, Urn, with_parts
from lumos.core.platform.batch import Batch
from lumos.core.platform.impl.snowflake.client import (
    SnowflakeSession,
    connect_arguments,
    translated,
)
from lumos.core.platform.impl.snowflake.handler import SnowflakeHandler
from lumos.core.platform.impl.snowflake.mapping.sql import identifier, literal, qualified
from lumos.core.platform.impl.snowflake.settings import SnowflakeSettings
from lumos.testing.platform_samples import dataset, edge, rich_dataset

SECRET = "planted-password"
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NOT_PARSED = {"ALTER TABLE", "ALTER TAG", "GRANT OWNERSHIP", "SHOW TAGS"}
"""What sqlglot can only tokenize; its grammar of Snowflake does not have it."""


class TestQuoting:
    @given(TEXT)
    def test_any_text_is_one_string_constant(self, text: str) -> None:
        tokens = sqlglot.tokenize(f"SELECT {literal(text)} -- '", read="snowflake")

        assert [token.token_type for token in tokens] == [TokenType.SELECT, TokenType.STRING]
        assert tokens[1].text == text

    @given(TEXT.filter(bool), TEXT.filter(bool))
    def test_any_name_is_one_identifier(self, schema: str, table: str) -> None:
        tokens = sqlglot.tokenize(qualified(schema, table), read="snowflake")

        assert [token.token_type for token in tokens] == [
            TokenType.IDENTIFIER,
            TokenType.DOT,
            TokenType.IDENTIFIER,
        ]
        assert (tokens[0].text, tokens[2].text) == (schema, table)


def test_every_statement_is_one_of_snowflake() -> None:
    """All but a few can be parsed by the grammar of sqlglot."""
    account = SnowflakeAccount()
    account.run('CREATE TABLE "SHOP"."PUBLIC"."ORDERS" ("ID" NUMBER)')
    fields = [{"name": "ID", "type": "INT64", "description": "it's", "tags": ["key"]}]
    orders = Urn.of("snowflake", "SHOP", "PUBLIC", "ORDERS")
    one = with_parts(rich_dataset(), urn=orders, platform="snowflake", schema={"fields": fields})
    with snowflake_over(account, transfer_ownership=True) as platform:
        platform.emit_dataset(with_parts(one, ownership=[{"group": "SALES"}]))
        platform.emit_dataset(with_parts(one, tags=(), schema={}))
        platform.emit_dataset(dataset("a"))
        platform.apply(Batch(edges=[edge(dataset("a"), one)]))
        platform.apply(Batch(entities=[Tag(name="gold", description="checked")]))
        assert len([*platform.list()]) == 2
        assert len([*platform.list_entities("tag")]) == 1
        platform.delete(dataset("a").urn)
        platform.reached()

    unparsed = set()
    for statement in account.statements:
        (parsed,) = sqlglot.parse(statement, read="snowflake")
        if parsed is None or isinstance(parsed, exp.Command):
            unparsed.add(" ".join(statement.split()[:2]))
    assert unparsed == NOT_PARSED
    heads = {statement.split()[0] for statement in account.statements}
    assert heads == {"ALTER", "COMMENT", "CREATE", "DELETE", "GRANT", "MERGE", "SELECT", "SHOW"}


class ManyTables:
    """A connection to an account of many tables, which counts what it is asked."""

    def __init__(self, count: int) -> None:
        self.names = [f"T{number:05}" for number in range(count)]
        self.statements: list[str] = []
        self._rows: list[tuple[object, ...]] = []

    description = None

    def cursor(self) -> ManyTables:
        return self

    def execute(self, command: str, /) -> object:
        self.statements.append(command)
        self._rows = [*self._answer(command)]
        return self

    def fetchall(self) -> Sequence[Sequence[object]]:
        return self._rows

    def close(self) -> None:
        self._rows = []

    def _answer(self, statement: str) -> list[tuple[object, ...]]:
        if "COUNT(*)" in statement:
            return [(0,)]
        if "INFORMATION_SCHEMA.TABLES" in statement:
            rest = (*[None] * 5, "NO", "NO")
            return [("S", name, "BASE TABLE", "R", "", 1, 1, *rest) for name in self.names]
        if "INFORMATION_SCHEMA.COLUMNS" in statement:
            named = re.findall(r"\('S', '(\w+)'\)", statement)
            return [("S", name, "ID", "NUMBER", "NO", None, 38, 0, None, "") for name in named]
        return []


class TestCounts:
    def test_thousands_of_tables_are_read_by_few_statements(self) -> None:
        connection = ManyTables(3_000)
        settings = SnowflakeSettings.from_json(dict(SETTINGS))
        platform = SnowflakeHandler(SnowflakeSession(lambda: connection), settings)

        found = [*platform.list()]

        assert len(found) == 3_000
        assert all(len(one.schema.fields) == 1 for one in found)
        asked = [" ".join(each.split()[:2]) for each in connection.statements]
        assert asked.count("SELECT OBJECT_DATABASE,") == 30  # 100 tables each
        assert len(asked) < 60
        assert max(map(len, connection.statements)) < 1_000_000

    def test_a_batch_is_written_by_as_many_statements_as_one_dataset(self) -> None:
        account = SnowflakeAccount()
        with snowflake_over(account) as platform:
            platform.emit_dataset(dataset("first"))
            account.statements.clear()
            platform.apply(Batch(datasets=[dataset(f"d{number}") for number in range(50)]))

            assert len(account.statements) == 2
            assert len([*platform.list()]) == 51

    def test_what_is_larger_than_a_statement_goes_in_several_or_is_refused(self) -> None:
        account = SnowflakeAccount()
        with snowflake_over(account) as platform:
            account.statements.clear()
            platform.apply(
                Batch(datasets=[_with_noise(f"d{number}", 300_000) for number in range(4)])
            )
            merges = [each for each in account.statements if each.startswith("MERGE")]

            assert len(merges) == 2
            assert max(map(len, merges)) < 1_000_000
            with pytest.raises(PlatformError, match="larger than a statement"):
                platform.emit_dataset(_with_noise("huge", 1_200_000))


def _with_noise(name: str, size: int) -> LumosDataset:
    """Return a dataset that cannot be packed into less than about this many bytes."""
    import random

    digits = random.Random(size).randbytes(size // 2).hex()
    return dataset(name, properties={"noise": digits[: size * 4 // 3]})


ERRORS = [
    (errors.DatabaseError(msg=SECRET, errno=250001), PlatformAuthError),
    (errors.ProgrammingError(msg=SECRET, errno=390114), PlatformAuthError),
    (errors.ForbiddenError(msg=SECRET), PlatformAuthError),
    (errors.ProgrammingError(msg=SECRET, errno=3001), PlatformForbiddenError),
    (errors.ProgrammingError(msg=SECRET, errno=90030), PlatformLimitError),
    (errors.ProgrammingError(msg=SECRET, errno=2003), PlatformNotFoundError),
    (errors.HttpError(msg=SECRET, errno=290404), PlatformNotFoundError),
    (errors.ProgrammingError(msg=SECRET, errno=625), PlatformConflictError),
    (errors.OperationalError(msg=SECRET, errno=250001), PlatformUnavailableError),
    (errors.OperationalError(msg=SECRET, errno=250003), PlatformUnavailableError),
    (ConnectionResetError(SECRET), PlatformUnavailableError),
    (errors.ProgrammingError(msg=SECRET, errno=2), PlatformError),
    (errors.ProgrammingError(msg=SECRET, errno=606), PlatformError),
    (errors.ProgrammingError(msg=SECRET, errno=1003), PlatformError),
    (errors.InterfaceError(msg=SECRET), PlatformError),
]


class TestErrors:
    @pytest.mark.parametrize(("error", "kind"), ERRORS)
    def test_an_error_says_what_to_do_and_not_what_was_sent(
        self, error: Exception, kind: type[LumosError]
    ) -> None:
        told = translated(error, place="snowflake at acme-shop")

        assert type(told) is kind
        assert SECRET not in f"{told} {told.hint}"
        assert str(told).startswith("snowflake at acme-shop: ")
        assert told.hint or told.retryable

    def test_a_lost_connection_is_made_again(self) -> None:
        account = SnowflakeAccount()
        made = []

        def connect() -> object:
            made.append(account.connect())
            return made[-1]

        settings = SnowflakeSettings.from_json(dict(SETTINGS))
        with SnowflakeHandler(SnowflakeSession(connect), settings) as platform:  # type: ignore[arg-type]
            platform.emit_dataset(dataset())
            made[0].close()
            with pytest.raises(PlatformUnavailableError) as caught:
                platform.get_dataset(dataset().urn)

            assert caught.value.retryable
            assert platform.get_dataset(dataset().urn) == dataset()
        assert len(made) == 2

    def test_after_closing_nothing_is_sent(self) -> None:
        account = SnowflakeAccount()
        platform = snowflake_over(account)
        platform.close()
        with pytest.raises(PlatformUnavailableError, match="was closed"):
            platform.get_dataset(dataset().urn)

        assert account.statements == []


class TestSettings:
    @pytest.mark.parametrize(
        ("change", "told"),
        [
            ({"password": None}, "a login is missing"),
            ({"databases": []}, "databases"),
            ({"schema": "X"}, "schema"),
            ({"protocol": "ftp"}, "protocol"),
            ({"tag_batch": 0}, "tag_batch"),
        ],
    )
    def test_wrong_settings_are_told_by_name(self, change: dict[str, JsonValue], told: str) -> None:
        with pytest.raises(ConfigurationError, match=r"platform_config\.snowflake") as caught:
            SnowflakeHandler.from_config({**SETTINGS, **change})

        assert told in str(caught.value)
        assert SECRET not in str(caught.value)

    def test_the_login_goes_to_the_connector_and_is_not_shown(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        account, given_ = SnowflakeAccount(), []

        def connect(**arguments: object) -> object:
            given_.append(arguments)
            return account.connect()

        monkeypatch.setattr("snowflake.connector.connect", connect)
        config = {**SETTINGS, "role": "CATALOG", "warehouse": "SMALL", "timeout": 5}
        with SnowflakeHandler.from_config(config) as platform:
            assert [*platform.list()] == []

        assert given_ == [
            {
                "account": "acme-shop",
                "user": "LUMOS",
                "password": SECRET,
                "role": "CATALOG",
                "warehouse": "SMALL",
                "login_timeout": 5,
                "network_timeout": 5,
                "application": "Lumos",
                "session_parameters": {"QUERY_TAG": "lumos"},
            }
        ]
        assert SECRET not in repr(SnowflakeSettings.from_json(config))

    @pytest.mark.parametrize(
        ("change", "used"),
        [
            ({"token": SECRET}, "PROGRAMMATIC_ACCESS_TOKEN"),
            ({"token": SECRET, "authenticator": "oauth"}, "oauth"),
            ({"private_key_file": "key.p8", "private_key_passphrase": SECRET}, None),
        ],
    )
    def test_there_are_ways_in_without_a_password(
        self, change: dict[str, JsonValue], used: str | None
    ) -> None:
        config = {name: value for name, value in SETTINGS.items() if name != "password"}
        arguments = connect_arguments(SnowflakeSettings.from_json({**config, **change}))

        assert arguments.get("authenticator") == used
        assert "password" not in arguments
        assert SECRET in arguments.values()

    def test_a_key_that_cannot_be_used_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def connect(**arguments: object) -> object:
            raise ValueError(SECRET)

        monkeypatch.setattr("snowflake.connector.connect", connect)
        with (
            SnowflakeHandler.from_config({**SETTINGS, "private_key_file": "x"}) as platform,
            pytest.raises(PlatformAuthError, match="private key") as caught,
        ):
            platform.get_dataset(dataset().urn)

        assert SECRET not in str(caught.value)

    def test_a_name_of_a_database_is_only_a_name(self) -> None:
        assert identifier('a".INFORMATION_SCHEMA; --') == '"a"".INFORMATION_SCHEMA; --"'
