"""Parses the properties files of Java, in which Hudi keeps what a table is."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ODD_BACKSLASHES = re.compile(r"(?<!\\)(?:\\\\)*\\$")
_KEY = re.compile(r"((?:\\.|[^\\=:\s])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)


def parse_properties(content: bytes) -> dict[str, str]:
    """Return the pairs of a properties file; of a name that occurs twice the last holds."""
    pairs = {}
    for line in _logical_lines(content.decode("latin-1")):
        if match := _KEY.fullmatch(line):
            pairs[_unescaped(match[1])] = _unescaped(match[2])
    pairs.pop("", None)
    return pairs


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines without comments, those joined that end with a backslash."""
    pending = ""
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        if _ODD_BACKSLASHES.search(line):
            pending += line[:-1]
            continue
        yield pending + line
        pending = ""
    if pending:
        yield pending


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_character, text)
    # Two escapes may be the halves of one character; a lone half is no text.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) > 1:
        return chr(int(code[1:], 16))
    return _CONTROL.get(code, code)
