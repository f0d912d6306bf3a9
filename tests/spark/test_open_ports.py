"""Whoever knows no secret gets nothing from any port that a command or the engine listens on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import grpc  # type: ignore[import-untyped]
import pytest

from command_line import run_in_child
from held_ingest import SECRETS, held_ingest, write_bucket_project
from lumos.spark.engine_record import FOLDER_VARIABLE, EngineFolder
from open_ports import descendants, greeted, listening
from s3_server import Bucket
from spark_wire import REFUSED, Answer, SparkWire, blocks

pytestmark = pytest.mark.spark
DRIVER_ENDPOINT = "endpoint-verifier"
FEWEST_PORTS = 4  # of the driver, its block manager, py4j and the Python workers
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
ANALYSIS = "/spark.connect.SparkConnectService/AnalyzePlan"


class Gathered:
    """What all ports gave to somebody who knows no secret."""

    def __init__(self, ports: set[int]) -> None:
        self.ports = ports
        self.spark_ports: list[int] = []
        self.granted: list[Answer] = []
        self.content: list[bytes] = []
        for port in ports:
            self._ask(port)

    def _ask(self, port: int) -> None:
        answers = list(blocks(port))
        if answers[0] != REFUSED:
            self.spark_ports.append(port)
            with SparkWire(port) as wire:
                answers.append(wire.call(DRIVER_ENDPOINT))
            with SparkWire(port) as wire:
                answers.append(wire.file("/files/x"))
        self.granted += [answer for answer in answers if answer.granted]
        self.content += [answer.content for answer in answers]
        self.content += greeted(port)

    def assert_nothing(self) -> None:
        assert not [secret for secret in SECRETS if any(secret in each for each in self.content)]
        assert len(self.ports) >= FEWEST_PORTS
        assert len(self.spark_ports) == 2, "both ports of Spark's own protocol were found"
        assert [answer.content[:80] for answer in self.granted] == []
        for content in self.content:
            assert not content.startswith(b"HTTP/1.1 200"), "no pages of Spark"
            assert b"pyspark" not in content
            assert not content.startswith(b"!y"), "py4j did not carry out a command"


def test_no_port_of_an_ingest_gives_anything_without_a_secret(
    s3_bucket: Bucket, tmp_path: Path
) -> None:
    write_bucket_project(tmp_path, s3_bucket)

    with held_ingest(tmp_path, s3_bucket) as process:
        gathered = Gathered(listening(descendants(process.pid)))

    gathered.assert_nothing()


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineFolder]:
    folder = EngineFolder(tmp_path / "engine")
    environment = {FOLDER_VARIABLE: str(folder.folder)}
    project = tmp_path / "project"
    project.mkdir()
    started = run_in_child("engine", "start", folder=project, environment=environment)
    assert started.exit_code == 0, started.stderr
    yield folder
    run_in_child("engine", "stop", folder=project, environment=environment)


def test_no_port_of_the_engine_gives_anything_without_a_secret(
    s3_bucket: Bucket, engine: EngineFolder, tmp_path: Path
) -> None:
    write_bucket_project(tmp_path / "project", s3_bucket)
    record = engine.read()
    assert record is not None
    environment = {FOLDER_VARIABLE: str(engine.folder)}

    with held_ingest(tmp_path / "project", s3_bucket, environment) as process:
        of_command = listening(descendants(process.pid))
        gathered = Gathered(listening(descendants(record.pid)))

    assert of_command == set(), "the command itself listens on nothing"
    assert record.port in gathered.ports
    gathered.assert_nothing()
    for method in (REFLECTION, ANALYSIS):
        assert called(record.port, method) in {
            grpc.StatusCode.UNAUTHENTICATED,
            grpc.StatusCode.UNIMPLEMENTED,
        }


def called(port: int, method: str) -> grpc.StatusCode:
    """Return how a call without a token ends."""
    with grpc.insecure_channel(f"ipv4:127.0.0.1:{port}") as channel:
        call = channel.stream_stream(method)
        try:
            list(call(iter([b""]), timeout=60))
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
    return grpc.StatusCode.OK
