"""The migration of the product documents: its commands and what they print, as they stand there."""

from __future__ import annotations

import shlex

EXPORT = "lumos export --platform datahub --output backup.json"
VALIDATE = "lumos validate --input backup.json"
VALIDATED = """\
[ok] 5,247 datasets
[ok] 12,834 lineage edges
[ok] All references resolved
"""
IMPORT = "lumos import --input backup.json --platform openmetadata"
DIFF = "lumos diff --source datahub --target openmetadata"
COMPARED = """\
[ok] 5,247/5,247 datasets migrated
[ok] 12,834/12,834 lineage edges migrated
[warn] 3 tags require manual mapping
"""


def given(command: str) -> list[str]:
    """Return the arguments of a command of `lumos`."""
    program, *arguments = shlex.split(command)
    assert program == "lumos"
    return arguments
