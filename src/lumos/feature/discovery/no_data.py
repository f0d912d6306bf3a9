"""Recognizes by its path alone a file that holds no data.

Such are hidden and temporary files, what writers and table formats keep for themselves, and what
stands beside the data: checksums, manifests, marks that a delivery is complete.
"""

from __future__ import annotations

import re
from typing import Final

from lumos.feature.discovery.folders import NULL_FOLDER

_ENDINGS: Final = (
    ".crc", ".tmp", ".temp", ".inprogress", ".swp", "~", "._copying_", "_$folder$",
    ".filepart", ".crdownload", ".partial",
    ".md5", ".sha1", ".sha256", ".sha512", ".checksum", ".done", ".ok", ".ctl", ".metadata",
)  # fmt: skip
_NAMES: Final = frozenset(
    {
        "thumbs.db", "desktop.ini", "version-hint.text", "manifest", "manifest.json", "symlink.txt",
        "init",
    }
)  # fmt: skip
_LAST_OF_THOSE: Final = ("manifest.json", "-files.json", "-summary.json", ".bin", ".part")
_BESIDE_DATA: Final = re.compile(
    r".*-manifest\.json|manifest-(?:files|summary)\.json|deletion_vector_[0-9a-f-]{36}\.bin"
    r"|.*\.(?:csv|tsv|txt|json|jsonl|parquet|orc|avro|gz|zip)\.part"
)
_TABLE_FOLDERS: Final = ("metadata/", "snapshot/", "schema/", "manifest/")
_OF_TABLES: Final = re.compile(
    r"(?:^|/)(?:metadata/(?:[^/]*\.metadata\.json(?:\.gz)?|snap-[^/]*\.avro|[^/]*-m\d+\.avro"
    r"|[^/]*\.stats|[^/]*\.puffin)"
    r"|snapshot/(?:snapshot-\d+|latest|earliest)|schema/schema-\d+"
    r"|manifest/manifest(?:-list)?-[0-9a-f-]{36}-\d+)$"
)


def is_no_data(path: str) -> bool:
    """Return whether a file holds no data."""
    lowered = path.lower()
    name = lowered.rpartition("/")[2]
    if not name or name.endswith(_ENDINGS) or name in _NAMES or name.startswith("~$"):
        return True
    if name.endswith(_LAST_OF_THOSE) and _BESIDE_DATA.fullmatch(name):
        return True
    if path[0] in "._" or "/." in path or "/_" in path:
        for part in path.split("/"):
            if part[:1] == "." or (part[:1] == "_" and "=" not in part and part != NULL_FOLDER):
                return True
    for folder in _TABLE_FOLDERS:
        if folder in lowered:
            return _OF_TABLES.search(lowered) is not None
    return False
