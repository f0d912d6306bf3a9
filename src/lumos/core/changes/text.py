"""Paths and safe wording: how a change says where it is and what it names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import JsonValue

_LONGEST_NAME = 120
_LONGEST_VALUE = 200
_PATH_MARKS = frozenset(".[]{}<>`")


def member_path(parent: str, name: str) -> str:
    """Return the path of a named member; a name that could be read as a path is put in `` ` ``."""
    if name.strip() != name or not _PATH_MARKS.isdisjoint(name):
        name = "`" + name.replace("`", "``") + "`"
    return f"{parent}.{name}" if parent else name


def printable(text: str, *, longest: int = _LONGEST_VALUE) -> str:
    """Return text on one line without control characters or marks that turn its direction."""
    shown = text if len(text) <= longest else text[: longest - 1] + "…"
    if shown.isprintable():
        return shown
    return "".join(char if char.isprintable() else _escaped(char) for char in shown)


def quoted(name: str) -> str:
    """Return a name in quotes, safe to print wherever it came from."""
    shown = printable(name, longest=_LONGEST_NAME).replace("'", "\\'")
    return f"'{shown}'"


def listed(names: Sequence[str], *, most: int = 5) -> str:
    """Name the first few, and count the others."""
    shown = ", ".join(quoted(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def shown_value(value: JsonValue) -> str:
    """Return a value as a message shows it."""
    if value is None:
        return "none"
    if isinstance(value, list):
        return "(" + ", ".join(printable(str(item)) for item in value) + ")"
    return printable(str(value))


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004
