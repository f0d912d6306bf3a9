"""How the doubles search: every text of a document, cut into words of letters, digits and `_`.

The query is of the syntax that Lucene, and so every one of these servers, reads; what Lumos never
sends is refused, so that a name in a query can do no more than be looked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TERM = re.compile(r"\*([^\s_*?:()\[\]{}\"'\\/&|!^~+<>=,;.-]+)\*\Z")
_WORD = re.compile(r"\w+|[^\s\w]+")


class QuerySyntaxError(ValueError):
    """A query that holds more than words between stars, joined by AND."""


def terms_of(query: str) -> list[str]:
    """Return the parts of words that a query looks for; none for `*`, which finds everything."""
    if query == "*":
        return []
    found = [_TERM.match(part) for part in query.split(" AND ")]
    if not all(found):
        raise QuerySyntaxError(query)
    return [match[1] for match in found if match]


def holds(document: object, terms: list[str]) -> bool:
    """Tell whether each term is within a word of some text anywhere in a document."""
    words = {word.casefold() for text in _texts(document) for word in _WORD.findall(text)}
    return all(any(term in word for word in words) for term in terms)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)
