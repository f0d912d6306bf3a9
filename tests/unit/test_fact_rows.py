"""What a file says of itself as one row."""

from __future__ import annotations

import io
from pathlib import Path

import orjson
import pytest

from lakes import write_table
from lumos.core.formats import fact_rows
from lumos.core.formats.fact_rows import FactsRow, read_row
from lumos.core.formats.reader import read_document


def row_of(file: Path) -> FactsRow:
    content = file.read_bytes()
    return FactsRow(*orjson.loads(read_row(io.BytesIO(content), size=len(content), name=file.name)))


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(fact_rows, "_sent", set())
    write_table(tmp_path / "orders.csv", {"id": [1, None], "name": ["a", "b"]})  # misnamed
    return tmp_path / "orders.csv"


def test_a_row_says_what_the_document_says(file: Path) -> None:
    content = file.read_bytes()
    document = orjson.loads(read_document(io.BytesIO(content), size=len(content), name=file.name))

    row = row_of(file)

    assert row.schema is not None
    assert orjson.loads(row.schema) == document["schema"]
    assert row.columns is not None
    assert orjson.loads(row.columns) == document["columns"]
    assert row.warnings is not None
    assert orjson.loads(row.warnings) == document["warnings"]
    for name in ("format", "fingerprint", "rows", "rows_estimate"):
        assert getattr(row, name) == document[name]


def test_a_schema_is_told_once(file: Path) -> None:
    first, second = row_of(file), row_of(file)

    assert first.schema is not None
    assert second.schema is None
    assert first.fingerprint == second.fingerprint
