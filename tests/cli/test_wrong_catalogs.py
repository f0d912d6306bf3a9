"""A catalog that is down, elsewhere, locked or too old: one clear line, and doctor finds it."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import pytest
import stamina
from _pytest.mark import ParameterSet
from pydantic import JsonValue

from command_line import JANUARY, Lumos
from doubles.wrong_servers import (
    ACCESS_DENIED,
    NO_SUCH_COLUMN,
    NO_SUCH_TABLE,
    Answers,
    mysql_refusing,
    web_server,
)
from lumos.core.platform.factory import EMBEDDED, PlatformFactory

SECRET = "hunter2-hunter2"
Config = dict[str, JsonValue]
Case = Callable[[], AbstractContextManager[Config]]
WEB: Mapping[str, Callable[[str], Config]] = {
    "atlas": lambda url: {"url": url, "username": "lumos", "password": SECRET},
    "datahub": lambda url: {"gms_server": url, "token": SECRET},
    "openmetadata": lambda url: {"server": url, "auth_token": SECRET},
}
OLD: Mapping[str, Answers] = {
    "atlas": Answers(known={"/api/atlas/admin/version": {"Version": "0.8.4"}}),
    "datahub": Answers(
        known={"/config": {"versions": {"acryldata/datahub": {"version": "v0.10.4"}}}}
    ),
    "openmetadata": Answers(400, known={"/api/v1/system/version": {"version": "1.3.1"}}),
}
DOWN, LOCKED = "does not answer|cannot be reached", "not accepted|refuses"
OTHER_WEB, OLDER = "web page", "version|no such thing|refused it"


@contextmanager
def nobody(make: Callable[[str], Config]) -> Iterator[Config]:
    """Give the settings of a port at which nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # taken, and not listened at
        yield make(f"http://127.0.0.1:{held.getsockname()[1]}")


@contextmanager
def web(make: Callable[[str], Config], answers: Answers) -> Iterator[Config]:
    with web_server(answers) as url:
        yield make(url)


@contextmanager
def mysql(error: tuple[int, str]) -> Iterator[Config]:
    with mysql_refusing(error) as port:
        yield {**amundsen(f"http://127.0.0.1:{port}"), "timeout": 20}  # also on a busy machine


def amundsen(url: str, *, timeout: float = 300) -> Config:
    place = url.removeprefix("http://")
    return {"database_url": f"mysql://lumos:{SECRET}@{place}/amundsen", "timeout": timeout}


def impatient(url: str) -> Config:
    """Give the settings for a server that waits to be spoken to, as MySQL's client does."""
    return amundsen(url, timeout=0.1)


def neo4j(url: str) -> Config:
    return {"neo4j_url": url, "neo4j_username": "lumos", "neo4j_password": SECRET}


def cases() -> Iterator[ParameterSet]:
    """Yield name of the catalog, a way to its settings, and what is said."""
    for name, make in WEB.items():
        yield _case(name, "down", partial(nobody, make), DOWN)
        yield _case(name, "page", partial(web, make, Answers(200, page=True)), OTHER_WEB)
        yield _case(name, "path", partial(web, make, Answers()), "check the URL")
        yield _case(
            name, "other", partial(web, make, Answers(200)), "check that the URL is that of"
        )
        yield _case(name, "token", partial(web, make, Answers(401)), LOCKED)
        yield _case(name, "version", partial(web, make, OLD[name]), OLDER)
    graph = Answers(known={"/": {"neo4j_version": "3.2.1"}})
    yield _case("amundsen", "neo4j-down", partial(nobody, neo4j), DOWN)
    yield _case("amundsen", "neo4j-page", partial(web, neo4j, Answers(200, page=True)), OTHER_WEB)
    yield _case("amundsen", "neo4j-path", partial(web, neo4j, Answers()), "check the URL")
    yield _case("amundsen", "neo4j-other", partial(web, neo4j, Answers(200)), "check")
    yield _case("amundsen", "neo4j-token", partial(web, neo4j, Answers(401)), LOCKED)
    yield _case("amundsen", "neo4j-version", partial(web, neo4j, graph), OLDER)
    yield _case("amundsen", "down", partial(nobody, amundsen), DOWN)
    yield _case("amundsen", "page", partial(web, impatient, Answers()), DOWN)
    yield _case("amundsen", "path", partial(mysql, NO_SUCH_TABLE), "no tables of Amundsen")
    yield _case("amundsen", "token", partial(mysql, ACCESS_DENIED), LOCKED)
    yield _case("amundsen", "version", partial(mysql, NO_SUCH_COLUMN), "another version")


def _case(name: str, fault: str, opened: Case, said: str) -> ParameterSet:
    return pytest.param(name, opened, said, id=f"{name}-{fault}")


@pytest.fixture(autouse=True)
def without_waiting() -> Iterator[None]:
    with stamina.set_testing(True, attempts=1):
        yield


@pytest.mark.parametrize(("name", "opened", "said"), [*cases()])
def test_a_catalog_that_is_wrong_is_told_in_one_line_and_found_by_doctor(
    lumos: Lumos, project: Path, name: str, opened: Case, said: str
) -> None:
    with opened() as config:
        settings = {"platform": name, "platform_config": {name: config}}
        (project / "lumos.yaml").write_text(json.dumps(settings), "utf-8")
        outcomes = [
            lumos("export", "--output", "out.json"),
            lumos("import", JANUARY, "--platform", name),
        ]
        found = lumos("doctor")

    place = address_in(config)
    for outcome in outcomes:
        assert outcome.exit_code == 3, outcome
        assert outcome.error_line.startswith("lumos: ")
        assert place in outcome.error_line
        assert SECRET not in outcome.stderr + outcome.stdout
    assert not (project / "out.json").exists()
    assert found.exit_code == 1
    assert re.search(said, finding(found.stdout, "catalog"))
    assert place in finding(found.stdout, "catalog")
    assert SECRET not in found.stdout


@pytest.mark.parametrize(("name", "opened", "said"), [*cases()])
def test_every_command_tells_it_in_one_line_and_no_secret_is_left_anywhere(
    lumos: Lumos, project: Path, name: str, opened: Case, said: str
) -> None:
    lumos("import", JANUARY)
    with opened() as config:
        (project / "lumos.yaml").write_text(json.dumps({"platform_config": {name: config}}))
        outcomes = [
            lumos("sync", "--all", "--output", name),
            lumos("export", "--platform", name, "--output", "out.json"),
            lumos("migrate", "--from", name, "--to", "embedded"),
            lumos("search", "orders", "--platform", name),
        ]
        moved = lumos("migrate", "--from", "embedded", "--to", name)
        traced = lumos("--debug", "diff", "--source", name, "--target", "embedded")

    for outcome in outcomes:
        assert outcome.exit_code == 3, outcome
        assert address_in(config) in outcome.error_line
    assert (moved.exit_code, traced.exit_code) == (3, 3)
    assert not (project / "out.json").exists()
    assert "lumos: " in moved.stderr.splitlines()[-1]
    assert re.search(said, outcomes[0].error_line)
    printed = "".join(one.stdout + one.stderr for one in (*outcomes, moved, traced))
    assert SECRET not in printed
    files = [path for path in project.rglob("*") if path.is_file() and path.suffix != ".yaml"]
    assert files
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


@pytest.mark.parametrize(
    ("name", "make"), [*WEB.items(), ("amundsen", neo4j)], ids=[*WEB, "amundsen-neo4j"]
)
def test_a_catalog_that_refuses_is_named_with_its_server_and_what_is_set(
    lumos: Lumos, project: Path, name: str, make: Callable[[str], Config]
) -> None:
    with web_server(Answers(401)) as url:
        settings = {"platform": name, "platform_config": {name: make(url)}}
        (project / "lumos.yaml").write_text(json.dumps(settings), "utf-8")
        outcome = lumos("export", "--output", "out.json")
        found = lumos("doctor")

    given = "the token is" if name in {"datahub", "openmetadata"} else "the password are"
    for line in (outcome.error_line, finding(found.stdout, "catalog")):
        assert f" at {url.rstrip('/')}: " in line
        assert f"{given} not accepted (401)" in line


@pytest.mark.parametrize("name", WEB)
def test_a_catalog_to_sync_with_is_looked_at_too(lumos: Lumos, project: Path, name: str) -> None:
    lumos("import", JANUARY)
    with web(WEB[name], Answers()) as config:
        settings = {"platform_config": {name: config}}
        (project / "lumos.yaml").write_text(json.dumps(settings), "utf-8")
        outcome = lumos("sync", "--all", "--output", name)
        found = lumos("doctor")

    assert outcome.exit_code == 3
    assert "check the URL" in outcome.error_line
    assert "check the URL" in finding(found.stdout, f"catalog {name}")
    assert "[ok] catalog: embedded answers" in found.stdout


def test_no_catalog_is_left_out() -> None:
    tried = {str(case.values[0]) for case in cases()}
    elsewhere = {EMBEDDED, "snowflake"}  # the emulator has tests of its own

    assert {*PlatformFactory.names()} - elsewhere <= tried


def address_in(config: Config) -> str:
    """Return host and port of the server that settings name."""
    (place,) = {*re.findall(r"127\.0\.0\.1:\d+", json.dumps(config))}
    return str(place)


def finding(shown: str, check: str) -> str:
    """Return the one line that says what is wrong with something."""
    (line,) = (line for line in shown.splitlines() if line.startswith(f"[fail] {check}: "))
    return line
