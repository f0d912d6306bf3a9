"""The source of JSON Schemas keeps the contract of Lumos."""
# ruff: noqa: INP001 - a test beside the package

from __future__ import annotations

from pathlib import Path

import pytest
from typing_extensions import override

from lumos.testing.handler_contract import HandlerContract, SourceCase

SCHEMA = '{"properties": {"id": {"type": "integer"}, "note": {}}, "required": ["id"]}'
ORDERS, CUSTOMERS = "lumos://json-schema/schemas/orders", "lumos://json-schema/schemas/customers"


class TestJsonSchemaSource(HandlerContract):
    @pytest.fixture
    @override
    def source(self, tmp_path: Path) -> SourceCase:
        folder = tmp_path / "schemas"
        folder.mkdir()
        for name in ("orders", "customers"):
            (folder / f"{name}.schema.json").write_text(SCHEMA)
        (folder / "broken.schema.json").write_text('{"properties": ')

        def remove() -> str:
            (folder / "customers.schema.json").unlink()
            return CUSTOMERS

        return SourceCase(
            config={"type": "json-schema", "name": "shop", "path": str(folder)},
            datasets=frozenset({ORDERS, CUSTOMERS}),
            broken_item="broken.schema.json",
            folder=folder,
            missing={"path": str(tmp_path / "nowhere")},
            remove=remove,
        )
