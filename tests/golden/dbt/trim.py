"""Copies dbt's artifacts without what says more of a machine than of a project.

python tests/golden/dbt/trim.py PROJECT/target FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

DROPPED = ("macros", "docs", "selectors", "child_map", "group_map")
"""Sections of a manifest that nobody reads here; macros are most of it."""
OF_THE_MACHINE = ("root_path", "user_id", "project_dir", "log_path", "profiles_dir", "thread_id")


def trimmed(value: object) -> object:
    if isinstance(value, list):
        return [trimmed(item) for item in value]
    if isinstance(value, dict):
        return {key: trimmed(item) for key, item in value.items() if key not in OF_THE_MACHINE}
    return value


def main(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name in ("manifest.json", "catalog.json", "run_results.json"):
        document = json.loads((source / name).read_text())
        for section in DROPPED:
            document.pop(section, None)
        text = json.dumps(trimmed(document), indent=1)
        if str(source.absolute().parent) in text:
            raise SystemExit(f"{name} still holds the path of its project")
        (target / name).write_text(f"{text}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
