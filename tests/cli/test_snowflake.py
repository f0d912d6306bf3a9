"""`lumos` with Snowflake as a catalog, on the emulator fakesnow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from snowflake.connector.errors import (
    DatabaseError,
    Error,
    HttpError,
    OperationalError,
    ProgrammingError,
)

from command_line import JANUARY, Lumos, Result, checked
from doubles.snowflake_account import DATABASE, SnowflakeAccount

SETTINGS = """
platform_config:
  snowflake:
    account: acme-shop
    user: LUMOS
    password: ${PLANTED_PASSWORD}
    databases: [SHOP]
"""
SECRET = "planted-password-of-snowflake"


@pytest.fixture
def account(project: Path, monkeypatch: pytest.MonkeyPatch) -> SnowflakeAccount:
    account = SnowflakeAccount()
    monkeypatch.setenv("PLANTED_PASSWORD", SECRET)
    monkeypatch.setattr("snowflake.connector.connect", lambda **_: account.connect())
    (project / "lumos.yaml").write_text(SETTINGS, "utf-8")
    return account


def told(result: Result) -> str:
    assert SECRET not in result.stdout + result.stderr
    return result.stdout


def test_a_second_sync_sends_nothing_and_edits_come_back(
    lumos: Lumos, account: SnowflakeAccount
) -> None:
    account.run('CREATE TABLE "SHOP"."PUBLIC"."ORDERS" ("ID" NUMBER)')
    assert "snowflake" in told(lumos("doctor"))
    lumos("import", JANUARY)
    orders = f"lumos://snowflake/{DATABASE}/PUBLIC/ORDERS"
    first = checked(lumos("sync", "--all", "--output", "snowflake", "--json"), "sync")
    assert first["writes"] == 17
    account.statements.clear()
    assert checked(lumos("sync", "--all", "--output", "snowflake", "--json"), "sync")["writes"] == 0
    assert [each for each in account.statements if not each.startswith("SELECT")] == []

    account.run('COMMENT ON TABLE "SHOP"."PUBLIC"."ORDERS" IS \'By people\'')
    exported = lumos("export", "--platform", "snowflake", "--output", "all.json")
    assert "wrote 6 datasets and 3 lineage edges" in told(exported)
    text = Path("all.json").read_text("utf-8")
    assert orders in text
    assert "By people" in text


def test_everything_moves_into_snowflake_and_out_again(
    lumos: Lumos, account: SnowflakeAccount
) -> None:
    lumos("import", JANUARY)

    moved = lumos("migrate", "--from", "embedded", "--to", "snowflake")

    assert moved.exit_code == 0, moved.stderr
    assert "5/5 datasets" in told(moved)
    lumos("export", "--output", "before.json")
    told(lumos("export", "--platform", "snowflake", "--output", "after.json"))
    compared = lumos("diff", "--source", "before.json", "--target", "after.json")
    assert compared.exit_code == 0
    assert compared.stdout.startswith("0 changes")


def test_what_a_replaced_table_lost_is_shown_again_by_a_full_sync(
    lumos: Lumos, account: SnowflakeAccount
) -> None:
    columns = '"ID" NUMBER'
    account.run(f'CREATE TABLE "SHOP"."PUBLIC"."ORDERS" ({columns})')
    document = json.loads(Path(JANUARY).read_text("utf-8"))
    for section in ("lineage_edges", "glossary", "tags", "users", "groups", "statistics"):
        document.pop(section, None)
    document["datasets"] = [
        {
            "urn": f"lumos://snowflake/{DATABASE}/PUBLIC/ORDERS",
            "name": "ORDERS",
            "platform": "snowflake",
            "documentation": {"description": "All orders"},
        }
    ]
    Path("one.json").write_text(json.dumps(document), "utf-8")
    assert lumos("import", "one.json").exit_code == 0
    shown = 'COMMENT ON TABLE "SHOP"."PUBLIC"."ORDERS" IS \'All orders\''
    lumos("sync", "--all", "--output", "snowflake")
    assert account.statements.count(shown) == 1
    account.replace_table("ORDERS", columns)

    assert lumos("sync", "--all", "--output", "snowflake", "--full").exit_code == 0

    assert account.statements.count(shown) == 2


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize(
    ("kind", "number", "said"),
    [
        pytest.param(DatabaseError, 250001, "refuses the login", id="password"),
        pytest.param(ProgrammingError, 390114, "refuses the login", id="expired"),
        pytest.param(HttpError, 290401, "refuses the login", id="unauthorized"),
        pytest.param(OperationalError, 250003, "does not answer", id="down"),
        pytest.param(HttpError, 290404, "no such account", id="account"),
        pytest.param(ProgrammingError, 2003, "no such object", id="database"),
    ],
)
def test_an_account_that_is_wrong_is_told_in_one_line_and_found_by_doctor(
    lumos: Lumos,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[Error],
    number: int,
    said: str,
) -> None:
    def refuse(**_: object) -> object:
        raise kind(msg=f"refused with {SECRET}", errno=number)

    monkeypatch.setattr("snowflake.connector.connect", refuse)

    exported = lumos("export", "--platform", "snowflake", "--output", "all.json")
    found = lumos("doctor")

    assert exported.exit_code == 3
    assert said in exported.error_line
    assert "snowflake at acme-shop: " in exported.error_line
    (line,) = (one for one in found.stdout.splitlines() if "[fail] catalog snowflake" in one)
    assert said in line
    assert SECRET not in exported.error_line + found.stdout
