"""A letter of the state database that something else changed: every command names the row."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from command_line import FEBRUARY, JANUARY, ORDERS, Lumos
from lumos.core.errors import EXIT_GATE_FAILED, EXIT_UNREADABLE

CUSTOMERS = "lumos://postgres/shop/public/customers"
NO_MATCH = "does not match its checksum"


@contextmanager
def state(project: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(project / ".lumos" / "lumos.db")) as database, database:
        yield database


def flip(project: Path, table: str, column: str = "document", *, where: str = "1 = 1") -> None:
    """Change one letter in the middle of a column of one row."""
    with state(project) as database:
        row, value = database.execute(
            f"SELECT rowid, {column} FROM {table} WHERE {where} ORDER BY rowid LIMIT 1"  # noqa: S608
        ).fetchone()
        content = bytearray(value if isinstance(value, bytes) else value.encode())
        place = len(content) // 2
        content[place] = ord("x") if content[place] != ord("x") else ord("y")
        new = bytes(content) if isinstance(value, bytes) else bytes(content).decode()
        statement = f"UPDATE {table} SET {column} = ? WHERE rowid = ?"  # noqa: S608
        database.execute(statement, (new, row))


@pytest.fixture
def shop(lumos: Lumos, project: Path) -> Path:
    assert lumos("import", JANUARY).exit_code == 0
    return project


def damage_description(project: Path) -> None:
    """Change one letter of a description: the document stays a valid dataset."""
    with state(project) as database:
        changed = database.execute(
            'UPDATE datasets SET document = replace(document, \'"name":"orders"\', '
            '\'"name":"ordexs"\') WHERE urn = ?',
            (ORDERS,),
        )
        assert changed.rowcount == 1


def test_a_changed_letter_is_not_exported_but_named(lumos: Lumos, shop: Path) -> None:
    damage_description(shop)
    result = lumos("export", "--output", "all.json", "--json")
    assert result.exit_code == 0
    (failed,) = result.json()["report"]["items"]
    assert failed["item"] == f"dataset {ORDERS}"
    assert NO_MATCH in failed["reason"]
    document = json.loads((shop / "all.json").read_bytes())
    assert document["complete"] is False
    assert len(document["datasets"]) == 4
    assert "ordexs" not in (shop / "all.json").read_text("utf-8")
    assert lumos("export", "--output", "all.json", "--strict").exit_code == EXIT_GATE_FAILED


@pytest.mark.parametrize(
    ("table", "item"),
    [
        ("datasets", "dataset "),
        ("lineage_edges", "lineage edge "),
        ("identity_map", "identity "),
        ("entities", ""),
    ],
)
def test_every_kind_of_row_is_named_and_the_others_are_exported(
    lumos: Lumos, shop: Path, table: str, item: str
) -> None:
    seed_all_kinds(lumos, shop)
    flip(shop, table)
    result = lumos("export", "--output", "all.json", "--json")
    assert result.exit_code == 0, result.stderr
    (failed,) = result.json()["report"]["items"]
    assert failed["item"].startswith(item)
    assert NO_MATCH in failed["reason"]
    assert json.loads((shop / "all.json").read_bytes())["complete"] is False


def seed_all_kinds(lumos: Lumos, project: Path) -> None:
    snapshot = json.loads(Path(JANUARY).read_bytes())
    snapshot.pop("checksum", None)
    snapshot["users"] = [{"username": "ann"}]
    snapshot["identity_map"] = {ORDERS: {"datahub": "urn:li:dataset:1"}}
    snapshot["extensions"] = {"tool": {"key": "value"}}
    (project / "kinds.json").write_text(json.dumps(snapshot))
    done = lumos("import", "kinds.json")
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize("column", ["upstream_urn", "downstream_urn", "edge_key"])
def test_an_edge_with_a_changed_end_is_named_and_leads_nowhere(
    lumos: Lumos, shop: Path, column: str
) -> None:
    flip(shop, "lineage_edges", column)
    result = lumos("export", "--output", "all.json", "--json")
    assert [each["item"][:12] for each in result.json()["report"]["items"]] == ["lineage edge"]
    document = json.loads((shop / "all.json").read_bytes())
    assert (document["complete"], len(document["lineage_edges"])) == (False, 2)


@pytest.mark.parametrize("column", ["urn", "contract_hash"])
def test_a_dataset_with_a_changed_key_is_named(lumos: Lumos, shop: Path, column: str) -> None:
    flip(shop, "datasets", column)
    result = lumos("export", "--output", "all.json", "--json")
    assert len(result.json()["report"]["items"]) == 1
    assert len(json.loads((shop / "all.json").read_bytes())["datasets"]) == 4


@pytest.mark.parametrize("column", ["document", "urn"])
def test_bytes_that_are_no_text_cost_no_other_row(lumos: Lumos, shop: Path, column: str) -> None:
    with state(shop) as database:
        database.execute(
            f"UPDATE datasets SET {column} = CAST(CAST({column} AS BLOB) || X'FF' AS TEXT) "  # noqa: S608
            "WHERE urn = ?",
            (ORDERS,),
        )
    result = lumos("export", "--output", "all.json", "--json")
    assert result.exit_code == 0, result.stderr
    assert len(result.json()["report"]["items"]) == 1
    assert len(json.loads((shop / "all.json").read_bytes())["datasets"]) == 4
    assert lumos("doctor").exit_code == EXIT_GATE_FAILED


def test_a_snapshot_of_a_damaged_state_is_not_complete_each_time(lumos: Lumos, shop: Path) -> None:
    damage_description(shop)
    for _ in range(2):
        result = lumos("snapshot", "create")
        assert result.exit_code == 0
        assert f"dataset {ORDERS}" in result.stderr
        assert NO_MATCH in result.stderr
    newest = max((shop / ".lumos" / "snapshots").glob("*/manifest.json"))
    assert json.loads(newest.read_bytes())["complete"] is False


def test_a_sync_sends_the_others_and_removes_nothing(lumos: Lumos, shop: Path) -> None:
    sync = ("sync", "--all", "--output", "sqlite:///other.db")
    assert lumos(*sync).exit_code == 0
    damage_description(shop)
    result = lumos(*sync, "--json")
    assert result.exit_code == 0, result.stderr
    failed = [each for each in result.json()["report"]["items"] if each["status"] == "failed"]
    assert [each["item"] for each in failed] == [f"dataset {ORDERS}"]
    assert lumos(*sync, "--strict").exit_code == EXIT_GATE_FAILED
    exported = lumos("export", "--platform", "sqlite:///other.db", "--output", "-")
    assert {each["name"] for each in exported.json()["datasets"]} >= {"orders", "customers"}
    assert len(exported.json()["datasets"]) == 5


def test_a_migration_names_what_it_could_not_read(lumos: Lumos, shop: Path) -> None:
    damage_description(shop)
    result = lumos("migrate", "--from", "embedded", "--to", "sqlite:///moved.db", "--json")
    assert [each["item"] for each in result.json()["unreadable"]] == [f"dataset {ORDERS}"]
    assert result.json()["verified"] is False
    assert lumos("search", "*", "--platform", "sqlite:///moved.db").exit_code == 0


@pytest.mark.parametrize("verb", ["compute", "apply"])
def test_versions_are_made_of_the_others_alone(lumos: Lumos, shop: Path, verb: str) -> None:
    with state(shop) as database:  # as if another tool had changed the catalog, not the history
        database.execute("DELETE FROM changes")
        database.execute("DELETE FROM versions")
    damage_description(shop)
    result = lumos("version", verb, "--json")
    assert result.exit_code == 0, result.stderr
    answer = result.json()
    assert [each["item"] for each in answer["failed"]] == [f"dataset {ORDERS}"]
    assert NO_MATCH in answer["failed"][0]["reason"]
    assert answer["counts"]["first"] == 4
    assert ORDERS not in [each["dataset"] for each in answer["versions"]]


def test_a_strict_computation_of_versions_fails(lumos: Lumos, shop: Path) -> None:
    flip(shop, "datasets", "contract_hash", where=f"urn = '{ORDERS}'")
    shown = lumos("version", "compute")
    assert f"[fail] dataset {ORDERS}" in shown.stdout
    assert lumos("version", "compute", "--strict").exit_code == EXIT_GATE_FAILED


def test_a_dataset_whose_name_is_damaged_is_not_retired(lumos: Lumos, shop: Path) -> None:
    flip(shop, "datasets", "urn", where=f"urn = '{ORDERS}'")
    result = lumos("version", "apply", "--retire", "--json")
    assert result.exit_code == 0, result.stderr
    assert len(result.json()["failed"]) == 1
    with state(shop) as database:
        (count,) = database.execute(
            "SELECT count(*) FROM versions WHERE urn = ?", (ORDERS,)
        ).fetchone()
    assert count == 1


@pytest.mark.parametrize(
    ("column", "what"), [("document", "version"), ("state", "state of version")]
)
def test_a_damaged_version_is_named_and_costs_no_other(
    lumos: Lumos, shop: Path, column: str, what: str
) -> None:
    flip(shop, "versions", column, where=f"urn = '{ORDERS}'")
    (shop / "february.json").write_bytes(Path(FEBRUARY).read_bytes())
    result = lumos("version", "compute", "--to", "february.json", "--json")
    assert result.exit_code == 0, result.stderr
    (failed,) = result.json()["failed"]
    assert failed["item"] == f"{what} {ORDERS} 1"
    imported = lumos("import", "february.json", "--json")
    assert imported.exit_code == 0, imported.stderr
    assert [each["item"] for each in imported.json()["report"]["items"]] == [ORDERS]


@pytest.mark.parametrize(
    "command",
    [("show", ORDERS), ("search", "orders")],
)
def test_one_damaged_dataset_is_told_in_one_line(
    lumos: Lumos, shop: Path, command: tuple[str, ...]
) -> None:
    damage_description(shop)
    result = lumos(*command)
    assert result.exit_code == EXIT_UNREADABLE, result.stdout
    assert NO_MATCH in result.error_line
    assert ORDERS in result.error_line


@pytest.mark.parametrize("column", ["document", "state"])
def test_a_damaged_history_is_told_in_one_line(lumos: Lumos, shop: Path, column: str) -> None:
    assert lumos("import", FEBRUARY).exit_code == 0
    flip(shop, "versions", column, where=f"urn = '{ORDERS}'")
    command = ("history", ORDERS) if column == "document" else ("compare", ORDERS, "1.0.0", "2.0.0")
    result = lumos(*command)
    assert result.exit_code == EXIT_UNREADABLE, result.stdout
    assert NO_MATCH in result.error_line


def test_the_doctor_names_what_is_damaged(lumos: Lumos, shop: Path) -> None:
    assert "[ok] stored documents: " in lumos("doctor").stdout
    damage_description(shop)
    flip(shop, "lineage_edges")
    result = lumos("doctor")
    assert result.exit_code == EXIT_GATE_FAILED
    (line,) = [each for each in result.stdout.splitlines() if "stored documents" in each]
    assert line.startswith("[fail] stored documents: 2 of ")
    assert f"dataset {ORDERS}" in line
    assert "lineage_edge " in line


def test_the_doctor_finds_a_damaged_file(lumos: Lumos, shop: Path) -> None:
    with state(shop) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = database.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'lineage_edges_downstream'"
        ).fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    with (shop / ".lumos" / "lumos.db").open("r+b") as file:
        file.seek(page * size - 30)
        file.write(b"\x00" * 20)
    result = lumos("doctor")
    assert result.exit_code == EXIT_GATE_FAILED
    assert "[fail] state database: " in result.stdout
    assert "stored documents" not in result.stdout


def test_an_import_repairs_a_damaged_dataset(lumos: Lumos, shop: Path) -> None:
    damage_description(shop)
    flip(shop, "lineage_edges")
    assert lumos("import", JANUARY).exit_code == 0
    assert "[ok] stored documents" in lumos("doctor").stdout
    assert lumos("show", CUSTOMERS).exit_code == 0
    result = lumos("export", "--output", "all.json", "--json")
    assert result.json()["report"]["items"] == []


def test_a_report_names_what_it_leaves_out(lumos: Lumos, shop: Path) -> None:
    damage_description(shop)
    result = lumos("report", "--json")
    assert result.exit_code == 0, result.stderr
    report = result.json()
    assert report["inventory"]["datasets"] == 4
    assert [each["item"] for each in report["unreadable"]["items"]] == [f"dataset {ORDERS}"]
