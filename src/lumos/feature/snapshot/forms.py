"""The forms of a snapshot."""

from __future__ import annotations

from enum import StrEnum


class SnapshotForm(StrEnum):
    """How a snapshot lies on disk; both forms have the same content."""

    DOCUMENT = "document"
    FOLDER = "folder"
