"""Asks the schema classes of DataHub's own SDK whether they take an aspect.

It runs with an interpreter that has `acryl-datahub`, which Lumos itself never needs. It reads one
JSON object `{"aspect": ..., "value": ...}` from each line, and writes one line of JSON for each:
null, or what is wrong.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module


def main() -> None:
    """Judge every line of standard input."""
    post_json_transform = import_module("datahub.emitter.serialization_helper").post_json_transform
    known = import_module("datahub.metadata.schema_classes").ASPECT_NAME_MAP

    for line in sys.stdin:
        asked = json.loads(line)
        verdict = None
        try:
            kind = known[asked["aspect"]]
            read = kind.from_obj(post_json_transform(asked["value"]))
            if not read.validate():
                verdict = "not valid"
            elif _unknown(asked["value"], read.to_obj()):
                verdict = "has keys that the SDK does not know"
        except Exception as error:  # noqa: BLE001 - whatever the SDK raises is its verdict
            verdict = f"{type(error).__name__}: {error}"
        sys.stdout.write(json.dumps(verdict) + "\n")


def _unknown(given: object, kept: object) -> bool:
    """Tell whether the SDK dropped something that was given."""
    if isinstance(given, dict) and isinstance(kept, dict):
        names = {name.rsplit(".", 1)[-1] for name in kept}
        return any(
            name.rsplit(".", 1)[-1] not in names
            or _unknown(value, kept.get(name, kept.get(name.rsplit(".", 1)[-1])))
            for name, value in given.items()
        )
    if isinstance(given, list) and isinstance(kept, list):
        return len(given) != len(kept) or any(map(_unknown, given, kept))
    return False


if __name__ == "__main__":
    main()
