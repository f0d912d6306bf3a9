from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyspark
import pytest

from command_line import ROOT
from lumos.core.errors import EXIT_UNREADABLE, ConfigurationError, MissingExtraError
from lumos.core.settings import RawSettings
from lumos.spark import connect
from lumos.spark import session as session_module
from lumos.spark.class_archive import (
    ClassArchive,
    class_archive,
    make_in_background,
    may_make,
    may_use,
)
from lumos.spark.java import JavaRuntime, JavaUnavailableError, find_java
from lumos.spark.options import (
    driver_options,
    is_authenticated,
    is_local,
    is_on_this_machine,
    standalone_addresses,
    user_options,
)
from lumos.spark.session import spark_session
from lumos.spark.settings import SparkSettings
from lumos.spark.start_failures import SparkUnavailableError
from ports import closed_port
from spark_jobs import normal_priority

SECRET = "s3cr3t-value"


def options_of(
    tmp_path: Path,
    *,
    java_options: tuple[str, ...] = (),
    environment: dict[str, str] | None = None,
    master: str = "local[*]",
    conf: dict[str, str | int | bool] | None = None,
) -> dict[str, str]:
    settings = SparkSettings(master=master, conf=RawSettings(dict(conf or {})))
    return driver_options(
        settings, folder=tmp_path, java_options=java_options, environment=environment or {}
    )


def test_a_local_session_is_quiet_has_no_ui_and_no_hive_and_stays_on_this_machine(
    tmp_path: Path,
) -> None:
    options = options_of(tmp_path)

    assert options["spark.master"] == "local[*]"
    assert options["spark.ui.enabled"] == "false"
    assert options["spark.ui.showConsoleProgress"] == "false"
    assert options["spark.sql.catalogImplementation"] == "in-memory"
    assert options["spark.driver.bindAddress"] == "127.0.0.1"
    assert options["spark.sql.session.timeZone"] == "UTC"
    assert options["spark.sql.warehouse.dir"].startswith("file:///")


@pytest.mark.parametrize(
    ("master", "tasks"),
    [
        ("local", "4"),
        ("local[3]", "12"),
        ("local[3,2]", "12"),
        ("local[*]", str(4 * len(os.sched_getaffinity(0)))),
        ("spark://host:7077", None),
        ("yarn", None),
    ],
)
def test_a_local_master_gets_four_tasks_for_each_core(
    tmp_path: Path, master: str, tasks: str | None
) -> None:
    options = options_of(tmp_path, master=master)

    assert options.get("spark.sql.leafNodeDefaultParallelism") == tasks


def test_what_the_user_says_wins_over_what_lumos_prefers(tmp_path: Path) -> None:
    conf: dict[str, str | int | bool] = {
        "spark.ui.enabled": True,
        "spark.sql.shuffle.partitions": 7,
        "spark.driver.host": "driver.example",
    }

    options = options_of(tmp_path, conf=conf)

    assert options["spark.ui.enabled"] == "true"
    assert options["spark.sql.shuffle.partitions"] == "7"
    assert options["spark.driver.host"] == "driver.example"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("spark.master", "set spark.master instead"),
        ("spark.driver.memory", "set spark.driver_memory instead"),
        ("spark.sql.session.timeZone", "remove spark.sql.session.timeZone from spark.conf"),
        ("spark.submit.deployMode", "remove spark.submit.deployMode from spark.conf"),
        ("fs.s3a.secret.key", "their names begin with spark."),
    ],
)
def test_a_property_that_would_break_lumos_is_named_without_its_value(name: str, hint: str) -> None:
    with pytest.raises(ConfigurationError, match=name) as raised:
        user_options(SparkSettings(conf=RawSettings({name: SECRET})))

    assert raised.value.hint == hint
    assert SECRET not in str(raised.value.as_json())


def test_a_property_that_is_no_single_value_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"spark\.jars must be text"):
        user_options(SparkSettings(conf=RawSettings({"spark.jars": ["a.jar", "b.jar"]})))


def test_the_fixed_value_may_be_written_out() -> None:
    settings = SparkSettings(conf=RawSettings({"spark.sql.session.timeZone": "UTC"}))

    assert user_options(settings) == {"spark.sql.session.timeZone": "UTC"}


def test_the_users_java_options_come_after_ours(tmp_path: Path) -> None:
    options = options_of(
        tmp_path,
        java_options=("-XX:+UseSerialGC", "-Done=1"),
        conf={"spark.driver.defaultJavaOptions": "-Dtwo=2", "spark.driver.extraJavaOptions": "-D3"},
    )

    assert options["spark.driver.defaultJavaOptions"] == "-XX:+UseSerialGC -Done=1 -Dtwo=2"
    assert options["spark.driver.extraJavaOptions"] == "-D3"


@pytest.mark.parametrize("name", ["spark.driver.extraJavaOptions", "JAVA_TOOL_OPTIONS"])
def test_ours_names_no_collector_where_the_user_names_one(tmp_path: Path, name: str) -> None:
    chosen = {name: "-XX:+UseG1GC"}
    in_settings = name.startswith("spark.")

    options = options_of(
        tmp_path,
        java_options=("-XX:+UseSerialGC", "-Done=1"),
        conf=dict(chosen) if in_settings else {},
        environment={} if in_settings else chosen,
    )

    assert options["spark.driver.defaultJavaOptions"] == "-Done=1"


def test_masters_are_told_apart_by_where_they_run() -> None:
    assert is_local("local")
    assert is_local("local[4,2]")
    assert not is_local("local-cluster[2,1,512]")
    assert is_on_this_machine("local-cluster[2,1,512]")
    assert is_on_this_machine("spark://127.0.0.1:7077,localhost:7078")
    assert not is_on_this_machine("spark://127.0.0.1:7077,other:7077")
    assert not is_on_this_machine("k8s://https://127.0.0.1:6443")


@pytest.mark.parametrize("master", ["local", "local[*]", "local-cluster[2,1,512]"])
def test_a_spark_that_lumos_starts_asks_for_a_secret(tmp_path: Path, master: str) -> None:
    options = options_of(tmp_path, master=master)

    assert options["spark.authenticate"] == "true"
    assert is_authenticated(SparkSettings(master=master))
    with pytest.raises(ConfigurationError, match=r"spark\.authenticate must stay true"):
        options_of(tmp_path, master=master, conf={"spark.authenticate": False})


def test_each_local_cluster_gets_a_secret_of_its_own_and_local_masters_none(tmp_path: Path) -> None:
    name = "spark.authenticate.secret"
    made = {options_of(tmp_path, master="local-cluster[2,1,512]")[name] for _ in range(3)}

    assert len(made) == 3
    assert min(map(len, made)) >= 32
    assert name not in options_of(tmp_path, master="local[2]"), "Spark makes one in its memory"


def test_a_cluster_keeps_its_own_way_to_authenticate(tmp_path: Path) -> None:
    master = "spark://spark.example:7077"

    assert "spark.authenticate" not in options_of(tmp_path, master=master)
    assert not is_authenticated(SparkSettings(master=master))
    for value in (True, False):
        conf = RawSettings({"spark.authenticate": value})
        settings = SparkSettings(master=master, conf=conf)
        assert is_authenticated(settings) is value
        assert (
            options_of(tmp_path, master=master, conf={"spark.authenticate": value})[
                "spark.authenticate"
            ]
            == str(value).lower()
        )


def test_a_standalone_master_may_have_stand_bys() -> None:
    assert standalone_addresses("spark://a:1,b:2") == [("a", 1), ("b", 2)]
    for wrong in ("spark://a", "spark://:1", "spark://a:x", "spark://"):
        with pytest.raises(ConfigurationError, match="not the address of a standalone master"):
            standalone_addresses(wrong)


def start(tmp_path: Path, settings: SparkSettings, environment: dict[str, str]) -> None:
    with spark_session(settings, environment=environment, cache_dir=tmp_path / "cache"):
        raise AssertionError("it must not start")


@pytest.fixture
def no_spark_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of the run share a session, which would be used."""
    monkeypatch.setattr(session_module, "_running_session", lambda: None)


@pytest.mark.usefixtures("no_spark_runs")
def test_without_java_the_session_says_so_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumos.spark.java.find_spec", lambda _name: None)

    with pytest.raises(JavaUnavailableError, match="none was found"):
        start(tmp_path, SparkSettings(), {"PATH": str(tmp_path)})


@pytest.mark.usefixtures("no_spark_runs")
def test_a_master_that_is_not_there_is_named_before_java_is_started(tmp_path: Path) -> None:
    master = f"spark://127.0.0.1:{closed_port()}"

    with pytest.raises(SparkUnavailableError, match="does not answer") as raised:
        start(tmp_path, SparkSettings(master=master), {})

    assert master in str(raised.value)
    assert (raised.value.code, raised.value.exit_code) == ("LUM-130", EXIT_UNREADABLE)
    assert raised.value.retryable


def test_a_connect_server_that_is_not_there_is_named_without_its_token(tmp_path: Path) -> None:
    remote = f"sc://127.0.0.1:{closed_port()}/;token={SECRET}"

    with pytest.raises(SparkUnavailableError, match=r"Spark Connect at 127\.0\.0\.1") as raised:
        start(tmp_path, SparkSettings.model_validate({"remote": remote}), {})

    assert SECRET not in str(raised.value.as_json())


@pytest.mark.parametrize("remote", ["local[2]", "http://host", "sc://", "sc://host:port"])
def test_an_address_that_is_no_connect_address_is_refused(tmp_path: Path, remote: str) -> None:
    with pytest.raises(ConfigurationError, match="not the address of a Spark Connect server"):
        start(tmp_path, SparkSettings.model_validate({"remote": remote}), {})


def test_connect_without_its_packages_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "find_spec", lambda _name: None)

    with pytest.raises(MissingExtraError, match="grpc") as raised:
        start(tmp_path, SparkSettings.model_validate({"remote": "sc://host"}), {})

    assert raised.value.hint == "install them with: pip install 'lumos[connect]'"


@pytest.fixture
def spark_home(tmp_path: Path) -> Path:
    jars = tmp_path / "installed" / "jars"
    jars.mkdir(parents=True)
    (jars / "core.jar").write_bytes(b"one")
    return jars.parent


def runtime(version: str = "17.0.1", major: int = 17) -> JavaRuntime:
    return JavaRuntime(Path("/java"), version=version, major=major, origin="PATH")


def test_an_archive_belongs_to_one_java_and_one_spark(tmp_path: Path, spark_home: Path) -> None:
    def path(of: JavaRuntime) -> Path:
        return class_archive(of, spark_home=spark_home, cache_dir=tmp_path).path

    first = path(runtime())
    assert path(runtime()) == first
    assert path(runtime("17.0.2")) != first
    (spark_home / "jars" / "core.jar").write_bytes(b"another")
    assert path(runtime()) != first


@pytest.mark.parametrize(
    ("major", "making", "using"),
    [
        (17, "-XX:ArchiveClassesAtExit=", "-XX:SharedArchiveFile="),
        (24, "-XX:ArchiveClassesAtExit=", "-XX:SharedArchiveFile="),
        (25, "-XX:AOTCacheOutput=", "-XX:AOTCache="),
    ],
)
def test_each_java_is_given_the_flags_that_it_knows(major: int, making: str, using: str) -> None:
    archive = ClassArchive(Path("/a b/c.jsa"), java_major=major)

    assert archive.making_options(Path("/t"))[0] == f"{making}/t"
    assert archive.using_options()[0] == f"'{using}/a b/c.jsa'"


def test_an_archive_that_cannot_be_made_leaves_a_note_and_is_not_tried_again(
    tmp_path: Path,
) -> None:
    nowhere = JavaRuntime(tmp_path / "java", version="17.0.1", major=17, origin="PATH")
    spark_home = Path(pyspark.__file__).parent
    archive = class_archive(nowhere, spark_home=spark_home, cache_dir=tmp_path)

    with normal_priority(tmp_path):
        assert make_in_background(archive, runtime=nowhere, cache_dir=tmp_path)

    assert waited_for(archive.note.exists), "the process that makes it left no note"
    assert not make_in_background(archive, runtime=nowhere, cache_dir=tmp_path)
    assert "Spark did not start" in _text_of(archive.note)


def test_tests_do_not_wait_for_an_archive_that_could_not_be_made_before(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    spark_home = Path(pyspark.__file__).parent
    archive = class_archive(
        find_java(environment), spark_home=spark_home, cache_dir=tmp_path / "lumos"
    )
    archive.note.parent.mkdir(parents=True)
    archive.note.write_text("it failed before")

    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "spark_archive.py"],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.rglob("*.jsa")) == []


def waited_for(is_so: Callable[[], object]) -> bool:
    """Wait for another process to do something, for ten minutes at most."""
    deadline = time.monotonic() + 600
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.1)
    return bool(is_so())


def _text_of(path: Path) -> str:
    """Return what another process writes, once it is there."""
    assert waited_for(path.read_text), f"{path} stays empty"
    return path.read_text()


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path: Path, spark_home: Path) -> None:
    (tmp_path / "file").write_text("")
    archive = class_archive(runtime(), spark_home=spark_home, cache_dir=tmp_path / "file")

    assert not make_in_background(archive, runtime=runtime(), cache_dir=tmp_path / "file")


@pytest.mark.parametrize(
    ("value", "use", "make"),
    [("", True, True), ("existing", True, False), ("off", False, False), ("0", False, False)],
)
def test_the_archive_can_be_switched_off(value: str, use: bool, make: bool) -> None:
    environment = {"LUMOS_SPARK_ARCHIVE": value}

    assert (may_use(environment), may_make(environment)) == (use, make)
