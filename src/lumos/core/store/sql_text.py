"""The one way Lumos writes SQL parameters, `:name`, in the spelling that psycopg wants."""

from __future__ import annotations

import re
from functools import lru_cache

_TOKEN = re.compile(
    r"""
      (?P<verbatim> '(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/
                  | \$(?P<mark>\w*)\$.*?\$(?P=mark)\$ | :: )
    | :(?P<name>[A-Za-z_]\w*)
    | (?P<percent>%)
    """,
    re.VERBOSE | re.DOTALL,
)


_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


@lru_cache(maxsize=512)
def for_psycopg(sql: str) -> str:
    """Turn `:name` into `%(name)s`, except in literals, comments and `::` casts; double `%`."""
    return _TOKEN.sub(_spelled, sql)


def _spelled(match: re.Match[str]) -> str:
    if name := match["name"]:
        return f"%({name})s"
    return match[0].replace("%", "%%")


def storable(text: str) -> str:
    """Return the text without what PostgreSQL cannot hold: U+0000 and lone surrogates.

    Only for columns that copies of a document's parts are kept in, to search or to sort by; the
    document itself is JSON, in which both are escaped or refused.
    """
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def as_key(name: str) -> str:
    """Return a name as a key column holds it: unique for each name, also with U+0000 in it."""
    return name.replace("\\", "\\\\").replace("\0", "\\0")


def from_key(key: str) -> str:
    """Return the name that `as_key` made a key of."""
    return _ESCAPED.sub(lambda match: "\0" if match[1] == "0" else match[1], key)
