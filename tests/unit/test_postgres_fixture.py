from __future__ import annotations

import psycopg
import pytest


@pytest.mark.parametrize("attempt", [1, 2])
def test_each_test_gets_an_empty_database_of_its_own(
    postgres_database_url: str, attempt: int
) -> None:
    with psycopg.connect(postgres_database_url) as connection:
        connection.execute("CREATE TABLE mark (attempt integer)")
        connection.execute("INSERT INTO mark VALUES (%s)", [attempt])
        assert connection.execute("SELECT attempt FROM mark").fetchall() == [(attempt,)]


def test_the_server_checks_the_password(postgres_url: str) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(postgres_url, password="wrong")
