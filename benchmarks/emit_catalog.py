"""A sync of many datasets to a catalog that answers after 20 ms, against what its limits allow.

Run: python benchmarks/emit_catalog.py [--datasets N] [--workers N] [--batches 1,10] [--latency MS]

A server in a process of its own answers every request after the latency, however many are under
way. If it takes at most so many datasets in a request, and so many requests at a time, then
`batch * workers / latency` datasets a second is the most that anybody can send; what a whole
`lumos sync` sends is divided by that: reading the catalog of Lumos, asking the other one what it
has, comparing, converting, sending and remembering what was acknowledged. Where CPU is what is
missing, the second figure says so: the share of one core that a sync of that speed would need, and
how much of it is spent in the one thread that reads, compares and remembers.

Two figures come first: what bare sockets reach that send bytes made before, which is what server
and threads cost by themselves, and what the client of Lumos reaches with nothing to prepare.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self, cast

from typing_extensions import override

from lumos.core.controllers.sync_controller import SyncController
from lumos.core.models import Contributor, LumosDataset
from lumos.core.platform.batch import Batch, Seen
from lumos.core.platform.http import CatalogHttp
from lumos.core.platform.impl.datahub.handler import DataHubHandler
from lumos.core.platform.impl.embedded_handler import EmbeddedHandler
from lumos.core.platform.interface import Capability, MetadataPlatformInterface
from lumos.core.platform.threads import mapped
from lumos.core.runtime.project import Project
from lumos.core.runtime.settings import LumosSettings
from lumos.core.runtime.unit_of_work import UnitOfWork
from lumos.core.store.database import StateDatabase
from lumos.feature.sync.settings import SyncSettings

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.run_report import RunReport
    from lumos.core.runtime.runs import Run

COLUMNS = 30
BARE = 1_500
AIM = 0.8
SERVE = "--serve"
V3 = "/openapi/v3/entity/"
NOTHING = b"[]"
ANSWER = b'{"writes": %d, "versions": {"acryldata/datahub": {"version": "v1.3.0"}}}'
AT = datetime(2026, 1, 1, tzinfo=UTC)


class SlowCatalog(MetadataPlatformInterface):
    """A catalog that takes datasets as they are, in batches, over HTTP."""

    name = "slow"
    capabilities: ClassVar[frozenset[Capability]] = frozenset()
    LOOK_UP = 100

    def __init__(self, url: str, *, workers: int) -> None:
        self._http = CatalogHttp(url, name=self.name, connections=workers)

    @classmethod
    @override
    def from_config(cls, config: Mapping[str, JsonValue]) -> Self:
        return cls(str(config["url"]), workers=8)

    @override
    def apply(self, batch: Batch, seen: Mapping[str, Seen] | None = None) -> None:
        self._http.json("PUT", "datasets", body=batch.documents())

    @override
    def get_dataset(self, urn: str) -> LumosDataset:
        raise NotImplementedError

    @override
    def find_datasets(self, urns: Sequence[str]) -> dict[str, Seen]:
        self._http.json("POST", "datasets/find", body=[*urns], idempotent=True)
        return {urn: Seen() for urn in urns}

    @override
    def list(self, *, platform: str | None = None, page_size: int = 1) -> Iterator[LumosDataset]:
        return iter(())

    @override
    def close(self) -> None:
        self._http.close()


class Measured(NamedTuple):
    """What a sync took."""

    wall: float
    cpu: float
    writes: int
    reading: float
    """CPU of the thread that reads, compares and remembers."""


def main() -> int:
    """Print the ratios."""
    if SERVE in sys.argv:
        asyncio.run(_serve(float(sys.argv[-1]) / 1000))
        return 0
    options = _options()
    with tempfile.TemporaryDirectory() as folder, _server(options.latency) as url:
        state = Path(folder) / "lumos.db"
        _fill(state, options.datasets)
        allowed = options.workers / options.latency * 1000
        for what, reached in (
            ("bare sockets", _sockets(url, workers=options.workers)),
            ("the same client with nothing to prepare", _bare(url, workers=options.workers)),
        ):
            print(f"{what}: {reached:,.0f} requests a second of {allowed:,.0f}: "
                  f"{reached / allowed:.2f}")  # fmt: skip
        for batch in (int(each) for each in options.batches.split(",")):
            kind = type("Slow", (SlowCatalog,), {"BATCH": batch, "CONCURRENCY": options.workers})
            with kind(url, workers=options.workers) as slow:
                _tell(options, slow, _measure(state, slow, url=url, workers=options.workers))
        with DataHubHandler.from_config({"gms_server": url, "workers": options.workers}) as datahub:
            _tell(options, datahub, _measure(state, datahub, url=url, workers=options.workers))
    return 0


def _sockets(url: str, *, workers: int) -> float:
    """Return how many requests a second sockets send whose bytes were made before."""
    host, _, port = url.removeprefix("http://").partition(":")
    body = b'["%s"]' % (b"x" * 2_000)
    sent = b"PUT /datasets HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    idle: list[socket.socket] = []

    def act(_: int) -> None:
        with suppress(IndexError):
            connection = idle.pop()
            connection.sendall(sent)
            connection.recv(65_536)
            idle.append(connection)

    with ExitStack() as stack:
        for _ in range(workers):
            connection = stack.enter_context(socket.create_connection((host, int(port))))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            idle.append(connection)
        began = time.perf_counter()
        count = sum(1 for _ in mapped(act, range(BARE), workers=workers))
        return count / (time.perf_counter() - began)


def _bare(url: str, *, workers: int) -> float:
    """Return how many requests a second the client sends that have nothing but a body."""
    body = ["x" * 2_000]
    with CatalogHttp(url, name="bare", connections=workers) as http:
        began = time.perf_counter()
        sent = mapped(
            lambda _: http.json("PUT", "datasets", body=body), range(BARE), workers=workers
        )
        count = sum(1 for _ in sent)
        return count / (time.perf_counter() - began)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--datasets", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--batches", default="1,10")
    parser.add_argument("--latency", type=float, default=20.0, help="of an answer, in ms")
    return parser.parse_args()


def _tell(
    options: argparse.Namespace,
    target: MetadataPlatformInterface,
    measured: tuple[Measured, Measured],
) -> None:
    first, second = measured
    allowed = target.BATCH * options.workers / options.latency * 1000
    reached = options.datasets / first.wall
    each = first.cpu / options.datasets
    print(f"{target.name}: {options.datasets:,} datasets of {COLUMNS} columns, {target.BATCH} in a "
          f"request, {options.workers} requests at a time")  # fmt: skip
    print(f"  {reached:,.0f}/s of {allowed:,.0f}/s (load average {os.getloadavg()[0]:.0f})")
    print(f"  reached / allowed: {reached / allowed:.2f} (aim {AIM})")
    reading = first.reading / options.datasets
    print(f"  CPU: {each * 1e6:,.0f} us a dataset, {reading * 1e6:,.0f} of them in the thread that "
          f"reads: {each * allowed:.1f} cores at the speed allowed")  # fmt: skip
    print(f"  writes: {first.writes:,} first, {second.writes:,} second ({second.wall:.1f} s)")


class _Unstored:
    """A run of which nothing is stored."""

    def keep(self, report: RunReport) -> None:
        pass


class _Work(UnitOfWork):
    """A state and a catalog that are open already."""

    def __init__(
        self, database: StateDatabase, target: MetadataPlatformInterface, *, workers: int
    ) -> None:
        super().__init__(Project(environment={}, clock=lambda: AT))
        self.__dict__ |= {"reader": database, "writer": database}
        self._target = target
        self._settings = LumosSettings(sync=SyncSettings(workers=workers))

    @property
    @override
    def settings(self) -> LumosSettings:
        return self._settings

    @override
    def platform(
        self, name: str | None = None, *, writing: bool = False, by: Contributor | None = None
    ) -> MetadataPlatformInterface:
        return self._target

    @override
    def place(self, name: str | None) -> str:
        return str(self._target.BATCH)

    @contextmanager
    @override
    def begin_run(self, operation: str) -> Iterator[Run]:
        yield _Unstored()


def _measure(
    state: Path, target: MetadataPlatformInterface, *, url: str, workers: int
) -> tuple[Measured, Measured]:
    with StateDatabase.open(state) as database, CatalogHttp(url, name="count") as counter:
        controller = SyncController(_Work(database, target, workers=workers))
        return _timed(controller, counter), _timed(controller, counter)


def _timed(controller: SyncController, counter: CatalogHttp) -> Measured:
    before = _writes(counter)
    wall, cpu, thread = time.perf_counter(), time.process_time(), time.thread_time()
    result = controller.sync("there")
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    thread = time.thread_time() - thread
    if result.report.failed:
        raise SystemExit(f"not all arrived: {result.report.failed[0].reason}")
    return Measured(wall, cpu, _writes(counter) - before, thread)


def _writes(counter: CatalogHttp) -> int:
    answer = cast("dict[str, int]", counter.json("GET", "count"))
    return answer["writes"]


def _fill(state: Path, count: int) -> None:
    types = ("INT64", "STRING", "DOUBLE", "TIMESTAMP")
    with StateDatabase.open(state) as database, database.transaction():
        catalog = EmbeddedHandler(database)
        for number in range(count):
            columns = [
                {"name": f"column_{place}", "type": types[place % 4], "description": f"the {place}"}
                for place in range(COLUMNS)
            ]
            catalog.emit_dataset(
                LumosDataset.from_json(
                    {
                        "urn": f"lumos://postgres/shop/public/table_{number:06d}",
                        "name": f"table_{number:06d}",
                        "platform": "postgres",
                        "schema": {"fields": columns, "primary_key": ["column_0"]},
                        "ownership": [{"user": "ada"}, {"group": "shop"}],
                        "tags": ["gold", "daily"],
                        "documentation": {"description": "what people say of it " * 5},
                    }
                )
            )


@contextmanager
def _server(latency: float) -> Iterator[str]:
    command = [sys.executable, str(Path(__file__).resolve()), SERVE, str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            port = process.stdout.readline().strip() if process.stdout else ""
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


async def _serve(latency: float) -> None:
    """Answer everything after a while; what is waited for costs no CPU."""
    writes = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal writes
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = head.partition("content-length:")[2].partition("\r")[0].strip()
                await reader.readexactly(int(length or 0))
                asks = "/batchget" in head or head.startswith("get ")
                writes += head.startswith("put ") or (V3 in head and not asks)
                if not head.startswith("get /count"):
                    await asyncio.sleep(latency)
                body = NOTHING if V3 in head else ANSWER % writes
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body
                )
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
