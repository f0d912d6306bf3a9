"""What tells one catalog from another: where it is, and nothing else of its settings."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from pydantic import AliasChoices, BaseModel, JsonValue

from lumos.core.platform import place
from lumos.core.platform.place import place_of

DATAHUB: dict[str, JsonValue] = {"gms_server": "http://datahub:8080", "token": "one"}
SNOWFLAKE: dict[str, JsonValue] = {"account": "A-B", "user": "me", "databases": ["SHOP", "HR"]}
MARIADB: dict[str, JsonValue] = {"database_url": "mysql://lumos:one@db:3306/amundsen"}


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("datahub", DATAHUB, {**DATAHUB, "workers": 4, "timeout_seconds": 5, "token": "two"}),
        ("datahub", DATAHUB, {"gms_server": "http://DataHub:8080/", "verify": False}),
        ("datahub", DATAHUB, {"server": "http://datahub:8080", "env": "PROD"}),
        ("datahub", DATAHUB, {**DATAHUB, "hard_delete": True, "batch_size": 10}),
        (
            "openmetadata",
            {"server": "https://om.example.com/api", "auth_token": "one"},
            {"server": "https://om.example.com:443", "page_size": 10},
        ),
        ("atlas", {}, {"url": "http://localhost:21000", "username": "me", "purge": True}),
        ("amundsen", MARIADB, {"database_url": "mysql+pymysql://root:two@db:3306/amundsen"}),
        ("snowflake", SNOWFLAKE, {**SNOWFLAKE, "role": "R", "user": "you", "databases": ["SHOP"]}),
        ("theirs", {"server": "http://x"}, {"server": "http://x/", "token": "t", "timeout": 9}),
        ("postgresql://a:one@db/state", {}, None),
    ],
)
def test_how_and_by_whom_a_catalog_is_asked_makes_no_difference(
    name: str, before: dict[str, JsonValue], after: dict[str, JsonValue] | None
) -> None:
    if after is None:
        assert place_of(name, {}) == place_of("postgresql://b:two@db/state", {})
    else:
        assert place_of(name, before) == place_of(name, after)


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("datahub", DATAHUB, {"gms_server": "http://datahub:8081"}),
        ("datahub", DATAHUB, {"gms_server": "https://datahub:8080"}),
        ("datahub", DATAHUB, {**DATAHUB, "environment": "DEV"}),
        ("openmetadata", {"server": "http://om/a"}, {"server": "http://om/b"}),
        ("amundsen", MARIADB, {"database_url": "mysql://lumos:one@db:3306/other"}),
        ("amundsen", MARIADB, {"neo4j_url": "http://db:7474"}),
        ("snowflake", SNOWFLAKE, {**SNOWFLAKE, "account": "A-C"}),
        ("snowflake", SNOWFLAKE, {**SNOWFLAKE, "databases": ["HR", "SHOP"]}),
        ("theirs", {"path": "./a"}, {"path": "./b"}),
    ],
)
def test_two_servers_are_told_apart(
    name: str, one: dict[str, JsonValue], other: dict[str, JsonValue]
) -> None:
    assert place_of(name, one) != place_of(name, other)


def test_catalogs_of_different_kinds_and_files_are_told_apart() -> None:
    assert place_of("embedded", {}) != place_of("atlas", {})
    assert place_of("sqlite:///a.db", {}) != place_of("sqlite:///b.db", {})
    assert place_of("atlas", {"url": "http://[broken"}) != place_of("atlas", {})


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("amundsen", "AmundsenSettings"),
        ("atlas", "AtlasSettings"),
        ("datahub", "DataHubSettings"),
        ("openmetadata", "OpenMetadataSettings"),
        ("snowflake", "SnowflakeSettings"),
    ],
)
def test_what_tells_where_a_catalog_is_are_settings_of_it(name: str, settings: str) -> None:
    module: Any = import_module(f"lumos.core.platform.impl.{name}.settings")
    model: type[BaseModel] = getattr(module, settings)
    for key in place._WHERE[name]:
        field = model.model_fields[key.names[0]]
        alias = field.validation_alias
        names = alias.choices if isinstance(alias, AliasChoices) else [key.names[0]]
        assert [*key.names] == names
        if key.default is not None:
            assert field.default == key.default
