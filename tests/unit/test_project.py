"""What the project's own files promise each other."""

from __future__ import annotations

import ast
import configparser
import importlib.metadata
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import lumos
from lumos.core.storage.port import StorageSource
from lumos.core.storage.sealed import Sealed
from lumos.feature.ingestion.handlers.base_ingestion_handler import SourceHandler, SourceSettings
from lumos.feature.ingestion.handlers.factory import BUILT_IN

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LOCK = (ROOT / "requirements.lock").read_text("utf-8")
PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;\\]+)(?: ; (?P<marker>[^\\]+))?")
# Folders above a layer, data, contracts with a rule of their own, and `python -m lumos`.
OUTSIDE_THE_LAYERS = {"lumos.__main__", "lumos.core", "lumos.schemas", "lumos.testing"}


def declared_requirements() -> Iterator[Requirement]:
    groups = PYPROJECT["dependency-groups"].values()
    extras = PYPROJECT["project"]["optional-dependencies"].values()
    for listed in [PYPROJECT["project"]["dependencies"], *extras, *groups]:
        yield from (Requirement(entry) for entry in listed if isinstance(entry, str))


def pins() -> dict[str, list[tuple[Version, Marker | None]]]:
    found: dict[str, list[tuple[Version, Marker | None]]] = {}
    for line in LOCK.splitlines():
        if match := PIN.match(line):
            marker = Marker(match["marker"]) if match["marker"] else None
            entry = (Version(match["version"]), marker)
            found.setdefault(canonicalize_name(match["name"]), []).append(entry)
    return found


@pytest.mark.parametrize("requirement", sorted(map(str, declared_requirements())))
def test_every_declared_dependency_is_pinned_within_its_bounds(requirement: str) -> None:
    declared = Requirement(requirement)

    pinned = pins().get(canonicalize_name(declared.name), [])

    assert pinned, f"{declared.name} is not in requirements.lock; write it with: make lock"
    assert all(declared.specifier.contains(version) for version, _ in pinned)


@pytest.mark.parametrize("python", ["3.11.2", "3.11.14", "3.12.9", "3.13.1", "3.14.0"])
def test_the_lock_pins_at_most_one_version_for_each_python(python: str) -> None:
    environment = {
        "python_version": python.rpartition(".")[0],
        "python_full_version": python,
    }

    for name, candidates in pins().items():
        chosen = [version for version, marker in candidates if _holds(marker, environment)]
        assert len(chosen) <= 1, name


def _holds(marker: Marker | None, environment: dict[str, str]) -> bool:
    return marker is None or marker.evaluate(environment)


def test_every_pin_has_hashes() -> None:
    requirements = re.split(r"^(?=[A-Za-z0-9])", LOCK, flags=re.MULTILINE)[1:]

    assert len(requirements) > len(PYPROJECT["project"]["dependencies"])
    for requirement in requirements:
        assert "--hash=sha256:" in requirement, requirement.splitlines()[0]


@pytest.mark.parametrize("lock", ["requirements.lock", "tools/bootstrap.lock"])
def test_the_lock_names_no_index_and_no_folder(lock: str) -> None:
    text = (ROOT / lock).read_text("utf-8")

    assert (
        re.findall(r"https?:|--index|--extra-index|--find-links|file:| @ |/home|/tmp", text) == []
    )


def test_the_installer_is_the_one_of_the_lock() -> None:
    (requirement,) = re.findall(r"^uv==.*?(?=^\S|^    #)", LOCK, flags=re.MULTILINE | re.DOTALL)
    bootstrap = (ROOT / "tools" / "bootstrap.lock").read_text("utf-8")

    assert bootstrap.partition("\n")[2] == requirement


def test_the_installed_version_is_that_of_the_package() -> None:
    assert importlib.metadata.version("lumos") == lumos.__version__


def test_every_package_is_in_a_layer_of_the_import_contract() -> None:
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter", encoding="utf-8")
    layers = re.findall(r"lumos[.\w]*", contracts["importlinter:contract:layers"]["layers"])
    package = Path(lumos.__file__).parent

    modules = {
        ".".join(["lumos", *path.relative_to(package).with_suffix("").parts])
        for folder in (package, package / "core")
        for path in folder.iterdir()
        if (path.is_dir() and any(path.glob("**/*.py"))) or path.suffix == ".py"
        if path.name not in {"__init__.py", "__pycache__"}
    }

    assert modules - OUTSIDE_THE_LAYERS - set(layers) == set()


def test_every_decision_record_is_in_the_index_and_has_the_four_parts() -> None:
    index = (ROOT / "docs" / "DECISIONS.md").read_text("utf-8")
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))

    assert re.findall(r"\]\(decisions/([^)]+)\)", index) == [record.name for record in records]
    numbers = [re.match(r"\d{3}(?=-)", record.name) for record in records]
    assert all(numbers)
    assert len({number[0] for number in numbers if number}) == len(records)
    for record in records:
        headings = re.findall(r"^## (.+)$", record.read_text("utf-8"), flags=re.MULTILINE)
        assert headings == ["Context", "Options", "Decision", "Consequences"], record.name


def test_every_changelog_fragment_has_a_known_type() -> None:
    types = {entry["directory"] for entry in PYPROJECT["tool"]["towncrier"]["type"]}

    for fragment in (ROOT / "changes").iterdir():
        if fragment.name != "README.md":
            assert fragment.suffix == ".md", fragment.name
            assert fragment.name.split(".")[1] in types, fragment.name


def test_every_make_target_has_help_text() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    (listed,) = re.findall(r"^\.PHONY: (.+)$", makefile, flags=re.MULTILINE)
    environment = {"PATH": os.environ["PATH"]}

    shown = subprocess.run(
        ["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True, env=environment
    ).stdout

    assert sorted(re.findall(r"^  make (\S+) +\S", shown, flags=re.MULTILINE)) == sorted(
        listed.split()
    )


def test_a_python_that_is_too_old_is_named_in_one_line(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\ncase "$2" in *print*) echo 3.9.2 ;; *) exit 1 ;; esac\n')
    old.chmod(0o755)

    process = _find_python(old)

    assert process.returncode == 1
    assert process.stderr.count("\n") == 1
    assert f"needs Python 3.11 or newer; found only {old} (3.9.2)" in process.stderr


def test_a_python_without_venv_is_named_in_one_line(tmp_path: Path) -> None:
    bare = tmp_path / "python3"
    bare.write_text(
        '#!/bin/sh\ncase "$2" in *print*) echo 3.11.2 ;; *ensurepip*) exit 1 ;; *) exit 0 ;; esac\n'
    )
    bare.chmod(0o755)

    process = _find_python(bare)

    assert process.returncode == 1
    assert f"{bare} (3.11.2) has no venv or ensurepip" in process.stderr


def test_a_python_that_fits_is_taken() -> None:
    assert _find_python(Path(sys.executable)).stdout.strip() == sys.executable


def test_what_is_configured_for_pip_reaches_uv_unless_uv_has_its_own() -> None:
    uv_settings = runpy.run_path(str(ROOT / "tools" / "setup.py"))["uv_settings"]
    pip = {
        "index-url": "mirror/a",
        "extra-index-url": "\nmirror/b\nmirror/c",
        "find-links": "wheels more-wheels",
        "cert": "/a folder/ca.pem",
        "no-color": "1",
    }

    assert uv_settings(pip, {"UV_DEFAULT_INDEX": "own"}) == {
        "UV_INDEX": "mirror/b mirror/c",
        "UV_FIND_LINKS": "wheels,more-wheels",
        "SSL_CERT_FILE": "/a folder/ca.pem",
    }


def test_no_controller_asks_a_source_for_its_class() -> None:
    """Controllers ask for abilities, such as `handler.storages()` or `handler.event_queues()`."""
    for target in BUILT_IN.values():
        import_module(target.partition(":")[0])
    roots = (SourceHandler, SourceSettings, StorageSource, Sealed)
    kinds = {kind.__name__ for root in roots for kind in (root, *_subclasses(root))}
    asked = [
        f"{path.name}: {name}"
        for path in sorted((ROOT / "src" / "lumos" / "core" / "controllers").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for name in _classes_asked_for(node)
        if name in kinds
    ]
    assert {"S3Source", "PostgresSettings", "DbtHandler", "SealedSource"} <= kinds
    assert asked == []


def test_questions_for_a_class_are_found_in_code() -> None:
    code = "isinstance(a, B | c.D)\nissubclass(E, (F, G))\nmatch a:\n    case H(x=1): pass\n"
    nodes = ast.walk(ast.parse(code))
    assert {name for node in nodes for name in _classes_asked_for(node)} == set("BDFGHc")


def _subclasses(kind: type[object]) -> Iterator[type[object]]:
    for each in type.__subclasses__(kind):
        yield each
        yield from _subclasses(each)


def _classes_asked_for(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, asked]):
            yield from _names_in(asked)
        case ast.MatchClass(cls=asked):
            yield from _names_in(asked)


def _names_in(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        match each:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name


@pytest.fixture
def services(tmp_path: Path) -> Path:
    """A copy of the service installer that needs one program which no system has."""
    script = tmp_path / "services.sh"
    shutil.copy(ROOT / "tools" / "services.sh", script)
    (tmp_path / "services.txt").write_text("# a note\nsh dash\nno-such-program some-package\n")
    return script


def test_a_missing_service_program_fails_the_check_by_name(services: Path) -> None:
    process = subprocess.run([services, "check"], check=False, capture_output=True, text=True)

    assert process.returncode == 1
    assert process.stderr == "services: missing: no-such-program (run: make services)\n"


def test_a_system_without_apt_is_told_what_to_install(services: Path, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("sh", "sed", "awk", "dirname"):
        (programs / name).symlink_to(str(shutil.which(name)))

    process = subprocess.run(
        [services, "install"],
        check=False,
        capture_output=True,
        text=True,
        env={"PATH": str(programs)},
    )

    assert process.returncode == 1
    assert process.stderr == (
        "services: install these programs with your package manager: no-such-program \n"
    )


def test_nothing_is_installed_where_every_program_is_there(services: Path) -> None:
    services.with_name("services.txt").write_text("sh dash\n")

    process = subprocess.run([services, "install"], check=False, capture_output=True, text=True)

    assert (process.returncode, process.stdout) == (0, "services: nothing to install\n")


def _find_python(python: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "tools" / "find_python.sh", python], check=False, capture_output=True, text=True
    )
