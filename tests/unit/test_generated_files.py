from __future__ import annotations

import importlib.util
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("generate", ROOT / "tools" / "generate.py")
assert SPEC is not None
assert SPEC.loader is not None
GENERATE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(GENERATE)
FILES: dict[Path, str] = GENERATE.generated()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_generated_file_matches_the_code(path: Path) -> None:
    assert path.read_text("utf-8") == FILES[path], "run: make generate"


def test_no_schema_is_left_from_a_command_that_is_gone() -> None:
    assert {path for path in FILES if path.suffix == ".json"} == set(
        (ROOT / "src" / "lumos" / "schemas").glob("*.json")
    )


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix == ".json"], ids=str)
def test_a_schema_is_a_valid_schema(path: Path) -> None:
    import json

    jsonschema.Draft202012Validator.check_schema(json.loads(FILES[path]))
