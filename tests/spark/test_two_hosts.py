"""Two hosts that ingest one lake into one PostgreSQL, each with a state folder of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from command_line import Result, capturing
from lumos.core.store.database import StateDatabase

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = "sources: [{{type: local, name: lake, path: {lake}}}]\n"


def test_a_host_goes_by_the_state_and_not_by_what_it_saw_last(
    spark: SparkSession,
    tmp_path: Path,
    postgres_database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    lumos = capturing(capfd)
    monkeypatch.setenv("LUMOS_DATABASE_URL", postgres_database_url)
    lake = tmp_path / "lake"
    lake.mkdir()
    hosts = [tmp_path / name for name in ("one", "two")]
    for host in hosts:
        host.mkdir()
        (host / "lumos.yaml").write_text(SETTINGS.format(lake=lake))

    def ingest(host: Path, columns: str) -> list[str]:
        (lake / "orders.csv").write_text(f"{columns}\n" + "1,2\n" * len(columns))
        done = run("ingest", host=host)
        assert done.exit_code == 0, done.stderr
        shown = run("show", "orders", "--json", host=host).json()
        return [field["name"] for field in shown["schema"]["fields"]]

    def run(*arguments: str, host: Path) -> Result:
        monkeypatch.chdir(host)
        return lumos(*arguments)

    one, two = hosts
    assert ingest(one, "id,amount") == ["id", "amount"]
    assert ingest(two, "id,total") == ["id", "total"]
    assert ingest(one, "id,amount") == ["id", "amount"]  # as this host saw it last

    with StateDatabase.open(postgres_database_url, read_only=True) as database:
        (row,) = database.query("SELECT count(*) AS n FROM versions")
        assert row.integer("n") == 3
