"""`validate` and `import` agree on documents with values that JSON does not have."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from command_line import Lumos
from lumos.testing.platform_samples import rich_dataset

PLACE = "@@ place of a value @@"
VALUES = [
    *("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "123456789012345678901234567890"),
    *('"\\ud800"', '"\\udfff x"', '"\\u0000"', '"\\x41"', '"\x01"', "01", ".5", "'x'", "[1,]"),
]


def document() -> dict[str, Any]:
    return {
        "lumos_version": "1.0.0",
        "export_timestamp": "2026-01-01T00:00:00Z",
        "source_platform": "test",
        "datasets": [rich_dataset().to_json()],
    }


def places_in(value: object, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if above:
        yield above
    if isinstance(value, dict | list):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        for name, part in parts:
            yield from places_in(part, (*above, name))


def text_with(value: str, place: tuple[str | int, ...], *, indent: int | None) -> str:
    """Return the document with a text in one place that need not be JSON."""
    changed: Any = document()
    parent = changed
    for name in place[:-1]:
        parent = parent[name]
    parent[place[-1]] = PLACE
    return json.dumps(changed, indent=indent).replace(f'"{PLACE}"', value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    value=st.sampled_from(VALUES),
    place=st.sampled_from(list(places_in(document()))),
    indent=st.sampled_from([None, 2]),
)
def test_what_validate_accepts_can_be_imported_and_what_it_refuses_cannot(
    lumos: Lumos, project: Path, value: str, place: tuple[str | int, ...], indent: int | None
) -> None:
    (project / "odd.json").write_text(text_with(value, place, indent=indent), "utf-8")

    validated = lumos("validate", "odd.json")
    imported = lumos("--state-dir", uuid.uuid4().hex, "import", "--input", "odd.json")

    assert (validated.exit_code == 0) is (imported.exit_code == 0), (validated, imported)
    assert "Traceback" not in validated.stderr + imported.stderr
