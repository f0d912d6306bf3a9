"""Asks the models that OpenMetadata generates from its JSON Schemas whether they take a payload.

It runs with an interpreter that has `openmetadata-ingestion`, which Lumos itself never needs. It
reads one JSON object `{"model": ..., "value": ..., "fields": [...]}` from each line, and writes one
line of JSON for each: null, or what is wrong. `fields` are names that the model has to have.
"""

from __future__ import annotations

import json
import sys
import types
from functools import cache
from importlib import import_module
from pathlib import Path
from sysconfig import get_path
from typing import Any

_SCHEMA = "metadata.generated.schema"


def main() -> None:
    """Judge every line of standard input."""
    without_the_client()
    for line in sys.stdin:
        asked = json.loads(line)
        verdict = None
        try:
            model = model_of(asked["model"])
            unknown = set(asked.get("fields") or ()) - known_fields(model)
            if unknown:
                verdict = f"has no field {sorted(unknown)}"
            elif "value" in asked:
                model.model_validate_json(json.dumps(asked["value"]))
        except Exception as error:  # noqa: BLE001 - whatever the models raise is their verdict
            verdict = f"{type(error).__name__}: {error}"
        sys.stdout.write(json.dumps(verdict) + "\n")


def without_the_client() -> None:
    """Make the models importable without the client's own packages, which need 140 others."""
    root = Path(get_path("purelib")) / "metadata"
    for name in ("", "ingestion", "ingestion.models"):
        module = types.ModuleType(f"metadata.{name}".rstrip("."))
        module.__path__ = [str(root.joinpath(*filter(None, name.split("."))))]
        sys.modules[module.__name__] = module
    # The client rewrites some names before it sends them; what counts here is what the schemas say.
    rewriting = types.ModuleType("metadata.ingestion.models.custom_basemodel_validation")
    rewriting.transform_entity_names = _as_it_is  # type: ignore[attr-defined]
    sys.modules[rewriting.__name__] = rewriting


def _as_it_is(entity: Any, model: Any) -> Any:
    return entity


@cache
def model_of(name: str) -> Any:
    """Return the model of a name such as `entity.data.table.Table`."""
    module, _, kind = name.rpartition(".")
    return getattr(import_module(f"{_SCHEMA}.{module}"), kind)


def known_fields(model: Any) -> set[str]:
    """Return the names that a model has on the wire."""
    return {field.alias or name for name, field in model.model_fields.items()}


if __name__ == "__main__":
    main()
