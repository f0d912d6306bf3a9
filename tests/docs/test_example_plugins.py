"""The plugins that the how-to guides show keep the shipped contracts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typing_extensions import override

from command_line import ROOT
from lumos.core.models import Urn
from lumos.core.registry import Registry
from lumos.feature.ingestion.handlers.factory import HandlerFactory
from lumos.testing.handler_contract import HandlerContract, SourceCase

PLUGINS = ROOT / "examples" / "plugins"
ENTRY_POINTS = tomllib.loads((PLUGINS / "pyproject.toml").read_text("utf-8"))["project"][
    "entry-points"
]
SCHEMA = '{"properties": {"id": {"type": "integer"}, "note": {}}, "required": ["id"]}'


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the plugins as if their package were installed, for one test."""
    if str(PLUGINS) not in sys.path:
        sys.path.append(str(PLUGINS))  # stays: pickles find the modules by name
    group = "lumos.sources"
    registry: Registry[Any] = Registry(group, builtins=ENTRY_POINTS[group], noun="part")
    monkeypatch.setattr(HandlerFactory, "_registry", registry)


class TestJsonSchemaSource(HandlerContract):
    source_type: ClassVar = "json-schema"

    @pytest.fixture
    @override
    def source(self, tmp_path: Path) -> SourceCase:
        folder = tmp_path / "schemas"
        folder.mkdir()
        for name in ("orders", "customers"):
            (folder / f"{name}.schema.json").write_text(SCHEMA)
        (folder / "broken.schema.json").write_text('{"properties": ')
        parts = folder.parts[1:]
        return SourceCase(
            config={"type": "json-schema", "name": "schemas", "path": str(folder)},
            datasets=frozenset(
                str(Urn.of("json-schema", *parts, name)) for name in ("orders", "customers")
            ),
            broken_item="broken.schema.json",
            folder=folder,
            missing={"path": str(tmp_path / "nowhere")},
        )


def environment_with_plugins(folder: Path) -> dict[str, str]:
    """Install the package into a folder, as far as Python and its entry points can tell."""
    shutil.copytree(PLUGINS / "shop_plugins", folder / "shop_plugins")
    metadata = folder / "shop_plugins-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: shop-plugins\nVersion: 0.1.0\n"
    )
    sections = (
        "\n".join([f"[{group}]", *(f"{name} = {target}" for name, target in points.items())])
        for group, points in ENTRY_POINTS.items()
    )
    (metadata / "entry_points.txt").write_text("\n".join(sections))
    return {**os.environ, "PYTHONPATH": str(folder)}


def test_an_installed_source_is_found_and_scanned(tmp_path: Path) -> None:
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / "orders.schema.json").write_text(SCHEMA)
    (schemas / "broken.schema.json").write_text("[]")

    done = subprocess.run(
        [sys.executable, "-m", "shop_plugins", str(schemas)],
        env=environment_with_plugins(tmp_path / "site"),
        capture_output=True,
        text=True,
        check=True,
    )

    urn = Urn.of("json-schema", *schemas.parts[1:], "orders")
    assert done.stdout.startswith(f"{urn}: 2 columns\ningest: 1 done, 0 skipped, 1 failed in ")
    assert "broken.schema.json" in done.stdout


def test_every_entry_point_leads_to_a_class() -> None:
    for points in ENTRY_POINTS.values():
        for target in points.values():
            module, name = target.split(":")
            assert isinstance(getattr(import_module(module), name), type)
