"""What `lumos ingest` of a PostgreSQL database costs against its catalog queries alone.

Run: python benchmarks/scan_database.py [--sizes N ...] [--rounds N] [--profile]

A database of N tables and views: nine tables with ten columns, a key, a check and comments, then
a view. The floor sends the queries of the source with psycopg and fetches every row, undecoded.
After a round that warms the session up, each round does in turn: the floor, a first run of Lumos
with an empty state, a second run with nothing changed. `ratio` is Lumos / floor. CPU is that of
all processes, the server, the JVM and its Python workers included. Queries are counted by a proxy,
in a run that is not timed.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import psycopg

from lumos.core.controllers.ingestion_controller import IngestionController
from lumos.core.runtime.project import Project as LumosProject
from lumos.core.runtime.unit_of_work import UnitOfWork
from lumos.feature.ingestion.handlers.factory import HandlerFactory
from lumos.feature.ingestion.handlers.postgres import queries
from lumos.feature.ingestion.handlers.postgres.connection import read_only_transaction
from lumos.feature.ingestion.records import PreviousScan
from process_times import ProcessTimes
from scan_lake import Spent, Stages, middle, warm_session, whole

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from postgres_server import running_postgres
from postgres_wire import wire_to

if TYPE_CHECKING:
    from lumos.core.controllers.results import IngestResult
    from lumos.spark.warm_session import WarmSession

SIZES = (1_000, 10_000)
VIEW_EACH = 10
AT_ONCE = 500
TABLE = """
CREATE TABLE t{number} (
  id bigint PRIMARY KEY, customer_id integer NOT NULL, status text DEFAULT 'new',
  amount numeric(12,2) CHECK (amount >= 0), tax numeric(12,2), placed_at timestamptz NOT NULL,
  changed_at timestamptz, tags text[], details jsonb, is_paid boolean);
COMMENT ON TABLE t{number} IS 'table {number}';
COMMENT ON COLUMN t{number}.status IS 'how far the order is';
"""
VIEW = "CREATE VIEW v{number} AS SELECT id, status, amount FROM t{table} WHERE is_paid;"


class Round(NamedTuple):
    """One round of all contenders."""

    floor: Spent
    first: dict[str, Spent]
    second: dict[str, Spent]


def made(server: str, size: int) -> str:
    """Make a database of so many tables and views and return its URL."""
    name = f"shop{size}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    url = urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
    statements = [
        VIEW.format(number=number, table=number - 1)
        if number % VIEW_EACH == VIEW_EACH - 1
        else TABLE.format(number=number)
        for number in range(size)
    ]
    with psycopg.connect(url, autocommit=True) as connection:
        for start in range(0, size, AT_ONCE):
            connection.execute("\n".join(statements[start : start + AT_ONCE]).encode())
        connection.execute("ANALYZE")
    return url


def floor(url: str) -> int:
    """Fetch every row of the queries of the source, and return how many tables and views."""
    settings: Any = HandlerFactory.get_handler({"type": "postgres", "name": "db", "url": url})
    with read_only_transaction(settings.settings) as connection:
        schemas = [
            number
            for number, name in connection.execute(queries.SCHEMAS).fetchall()
            if name == "public"
        ]
        connection.execute(queries.TYPES).fetchall()
        place = {"schemas": schemas, "locked": [], "after": 0}
        tables = {**place, "kinds": list(queries.TABLE_KINDS), "most": None}
        found = len(connection.execute(queries.TABLES, tables).fetchall())
        views = {**place, "kinds": list(queries.VIEW_KINDS), "most": queries.VIEWS_AT_ONCE}
        while rows := connection.execute(queries.VIEWS, views).fetchall():
            views["after"] = rows[-1][0]
            found += len(rows)
    return found


class Project:
    """A project whose only source is a database, with an empty state."""

    def __init__(self, folder: Path, url: str, *, session: WarmSession) -> None:
        folder.mkdir()
        self._config = folder / "lumos.yaml"
        self._config.write_text(
            f"sources: [{{type: postgres, name: db, url: '{url}'}}]\n", encoding="utf-8"
        )
        self._state = folder / "state"
        self._session = session

    def ingest(self, stages: Stages) -> IngestResult:
        """Run the ingestion of the command line on the session that is there."""
        project = LumosProject(
            config=self._config, given_state_dir=self._state, environment=os.environ
        )
        with UnitOfWork(project, open_session=self._session) as work:
            return IngestionController(work).ingest(progress=stages)


def spent_by(times: ProcessTimes, act: Callable[[], object]) -> Spent:
    wall, cpu = time.perf_counter(), times.seconds()
    act()
    return Spent(time.perf_counter() - wall, times.seconds() - cpu)


def one_round(
    folder: Path, url: str, *, size: int, session: WarmSession, times: ProcessTimes
) -> Round:
    """Run floor, first and second run, and compare what they found."""
    assert floor(url) == size
    at_floor = spent_by(times, lambda: floor(url))
    project = Project(folder, url, session=session)
    first = Stages(times)
    result = project.ingest(first)
    first_spent = first.spent()
    assert result.datasets.created == size, result.datasets
    second = Stages(times)
    again = project.ingest(second)
    second_spent = second.spent()
    assert again.datasets.unchanged == size, again.datasets
    done = Round(at_floor, first_spent, second_spent)
    told = {"floor": at_floor, "first": whole(first_spent), "second": whole(second_spent)}
    each = [f"{name} {spent.wall:.2f} s {spent.cpu:.2f} s CPU" for name, spent in told.items()]
    print(f"    {folder.name}: {', '.join(each)}, load {os.getloadavg()[0]:.1f}", flush=True)
    return done


def report(size: int, rounds: list[Round]) -> float:
    """Print the medians of one size and return the CPU of a first run, a table, in ms."""
    at_floor = middle([each.floor for each in rounds])
    print(f"\n{size:,} tables and views, {len(rounds)} rounds, load {os.getloadavg()[0]:.1f}")
    _line("floor", at_floor, at_floor, size)
    first = middle([whole(each.first) for each in rounds])
    _line("first run", first, at_floor, size)
    for stage in rounds[0].first:
        _line(f"  of it: {stage}", middle([each.first[stage] for each in rounds]), at_floor, size)
    _line("second run", middle([whole(each.second) for each in rounds]), at_floor, size)
    return first.cpu / size * 1e3


def _line(name: str, spent: Spent, at_floor: Spent, size: int) -> None:
    print(
        f"  {name:<34}{spent.wall:8.2f} s {spent.cpu:8.2f} s CPU"
        f"   ratio {spent.wall / at_floor.wall:6.2f} {spent.cpu / at_floor.cpu:6.2f} CPU"
        f"   {spent.cpu / size * 1e3:6.2f} ms CPU each"
    )


def queries_of(url: str) -> int:
    """Return how many queries a plan and a scan send."""
    with wire_to(url) as wire:
        handler: Any = HandlerFactory.get_handler(
            {"type": "postgres", "name": "db", "url": wire.url}
        )
        for unit in handler.plan(PreviousScan()):
            for _ in handler.scan(unit):
                pass
        return len(wire.queries())


@contextmanager
def profiled(wanted: bool) -> Iterator[None]:
    """Print where this process spends its time."""
    if not wanted:
        yield
        return
    with cProfile.Profile() as profile:
        yield
    pstats.Stats(profile).sort_stats("cumulative").print_stats(60)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", action="store_true", help="of a first run, not measured")
    given = parser.parse_args()
    times = ProcessTimes()
    with tempfile.TemporaryDirectory() as name, running_postgres() as server:
        folder = Path(name)
        urls = {size: made(server, size) for size in given.sizes}
        costs = {}
        with warm_session(folder / "cache") as session:
            warm = given.sizes[0]
            one_round(folder / "warm-up", urls[warm], size=warm, session=session, times=times)
            for size, url in urls.items():
                rounds = [
                    one_round(folder / f"{size}-{n}", url, size=size, session=session, times=times)
                    for n in range(given.rounds)
                ]
                costs[size] = report(size, rounds)
                print(f"  {queries_of(url)} queries")
            if given.profile:
                project = Project(folder / "profile", urls[given.sizes[-1]], session=session)
                with profiled(wanted=True):
                    project.ingest(Stages(times))
        for size, cost in costs.items():
            grown = cost / costs[given.sizes[0]]
            print(f"{size:,}: {cost:.2f} ms CPU each, {grown:.2f} of that at {given.sizes[0]:,}")


if __name__ == "__main__":
    main()
