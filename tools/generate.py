"""Write what is generated from the code: JSON Schemas and reference pages.

`python tools/generate.py` writes them, `--check` fails when a committed one is out of date.
"""

from __future__ import annotations

import argparse
import json
import pkgutil
import sys
from importlib import import_module
from pathlib import Path

import lumos
from lumos.core import errors
from lumos.core.controllers.results import JSON_OUTPUTS
from lumos.core.models import Snapshot
from lumos.core.settings import settings_json_schema

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS = ROOT / "src" / "lumos" / "schemas"
REFERENCE = ROOT / "docs" / "reference"
NOT_IMPORTED = ("lumos.__main__", "lumos.testing", "lumos.core.store.migrations")
EXIT_CODES = {
    0: "done; items that could not be read are named in the report",
    1: "a gate failed, or `--strict`, `--fail-on` or a check asked for failure",
    2: "usage or configuration",
    3: "input, state or catalog cannot be read or written",
    4: "internal error",
}


def generated() -> dict[Path, str]:
    """Return every generated file with its content."""
    schemas: dict[str, object] = {
        "snapshot": Snapshot.model_json_schema(mode="serialization"),
        "settings": settings_json_schema(),
    }
    schemas |= {
        name: model.model_json_schema(mode="serialization") for name, model in JSON_OUTPUTS.items()
    }
    files = {
        SCHEMAS / f"{name}.schema.json": json.dumps(schema, indent=2, sort_keys=True) + "\n"
        for name, schema in schemas.items()
    }
    return {**files, REFERENCE / "errors.md": errors_page()}


def errors_page() -> str:
    """Return the page that lists exit codes and error codes."""
    lines = ["# Exit codes and errors", "", "| exit code | meaning |", "|---|---|"]
    lines += [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    lines += [
        "",
        "Every error is one line that says what failed, where, and what to do.",
        '`--json` prints it as `{"error": {"code", "message", "hint", "retryable"}}` as well.',
        "",
        "| code | exit | retry may help | meaning |",
        "|---|---|---|---|",
    ]
    for module in pkgutil.walk_packages(lumos.__path__, "lumos."):
        if not module.name.startswith(NOT_IMPORTED):
            import_module(module.name)  # errors may be defined in any module
    for kind in sorted(_family(errors.LumosError), key=lambda kind: kind.code):
        meaning = (kind.__doc__ or "").strip().splitlines()[0]
        retry = "yes" if kind.retryable else "no"
        lines.append(f"| {kind.code} | {kind.exit_code} | {retry} | {meaning} |")
    return "\n".join(lines) + "\n"


def _family(kind: type[errors.LumosError]) -> set[type[errors.LumosError]]:
    return {kind}.union(*(_family(child) for child in kind.__subclasses__()))


def main() -> int:
    """Write the generated files, or say which are out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    check = parser.parse_args().check
    stale = [
        path
        for path, content in generated().items()
        if not path.exists() or path.read_text("utf-8") != content
    ]
    for path in stale:
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(generated()[path], "utf-8")
        print(f"{'out of date' if check else 'written'}: {path.relative_to(ROOT)}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
