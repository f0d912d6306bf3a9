"""The list of delimited files as common tools write them, against what was expected of each."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from lumos.core.formats.reader import read_file

CASES: dict[str, dict[str, Any]] = YAML(typ="safe").load(
    (Path(__file__).parents[1] / "golden" / "text" / "csv.yaml").read_text(encoding="utf-8")
)


_SOMETIMES: tuple[str, ...] = ("decimal", "thousands", "trailing_delimiter")


@pytest.mark.parametrize("title", CASES)
def test_a_written_down_file_is_read_as_expected(title: str) -> None:
    case = CASES[title]
    data = case["text"].encode(case.get("encoding", "utf-8"))
    facts = read_file(io.BytesIO(data), size=len(data), name=case.get("name", "a.csv"))
    assert facts.format == "csv"
    assert facts.properties == {
        "delimiter": case.get("delimiter", ","),
        "quote": case.get("quote", '"'),
        "encoding": case.get("stored", "utf-8"),
        "header": "true" if case.get("header", True) else "false",
        **{key: case[key] for key in _SOMETIMES if key in case},
    }
    found = [(field.name, field.type.value) for field in facts.schema.fields]
    assert found == list(case["columns"].items())
    assert len(facts.warnings) == case.get("warnings", 0), facts.warnings
    assert facts.schema.positional is not case.get("header", True)


def test_the_list_is_long_enough_to_mean_something() -> None:
    assert len(CASES) >= 70
