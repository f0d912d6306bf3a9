"""Every adapter of a server has the same files, so that one who knows one knows them all."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import lumos.core.platform.impl as adapters

FOLDER = Path(adapters.__path__[0])
CATALOGS = ("amundsen", "atlas", "datahub", "openmetadata", "snowflake")
MODULES = {"client", "mapping", "reader", "writer"}
"""Each a file, or a folder where one file would be too long; a mapping is always a folder."""
FILES = {"__init__.py", "fidelity.py", "handler.py", "search.py", "settings.py", "side_store.py"}
MOST_LINES = 500
SPEAKING = ("client", "reader", "writer", "handler", "search")


def entries(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name != "__pycache__"}


@pytest.mark.parametrize("catalog", CATALOGS)
def test_every_adapter_folder_has_the_same_names(catalog: str) -> None:
    found = entries(FOLDER / catalog)
    assert {name.removesuffix(".py") for name in found - FILES} == MODULES
    assert found >= {*FILES, "mapping"}


def test_only_the_embedded_catalog_is_a_single_file() -> None:
    assert entries(FOLDER) == {"__init__.py", "embedded_handler.py", *CATALOGS}


@pytest.mark.parametrize("catalog", CATALOGS)
def test_no_file_of_an_adapter_is_too_long(catalog: str) -> None:
    sizes = {path: len(path.read_text("utf-8").splitlines()) for path in files_of(catalog)}
    assert [path.name for path, size in sizes.items() if size > MOST_LINES] == []


@pytest.mark.parametrize("catalog", CATALOGS)
def test_a_mapping_speaks_to_no_server(catalog: str) -> None:
    own = f"lumos.core.platform.impl.{catalog}"
    forbidden = (
        *(f"{own}.{each}" for each in SPEAKING),
        "lumos.core.platform.http",
        "sqlalchemy.engine",
    )
    for path in (FOLDER / catalog / "mapping").glob("*.py"):
        for module in imported(path):
            assert not module.startswith(forbidden), f"{path.name} imports {module}"


def files_of(catalog: str) -> Iterator[Path]:
    return (FOLDER / catalog).rglob("*.py")


def imported(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports when it is loaded."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{each.name}" for each in node.names)
