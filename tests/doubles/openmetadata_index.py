"""The search index of the stand-in for an OpenMetadata server.

As in the server's index mappings (`table_index_mapping.json`, `container_index_mapping.json`):
names are keywords in lower case, descriptions are stemmed words, owners of tables are nested,
custom properties cannot be searched, and an entity with a custom property of more than 32,766
bytes is not indexed at all. A query of more than 1,024 clauses fails with 500; `*` stands for all
of some three hundred fields. What was written is found once the index was refreshed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from doubles.openmetadata_tests import RefusedError
from doubles.text_index import QuerySyntaxError, terms_of

if TYPE_CHECKING:
    from doubles.openmetadata_store import OpenMetadataStore

Json = dict[str, Any]
_FIELDS = 300
_MOST_CLAUSES = 1_024
_LONGEST_KEYWORD = 32_766
_WORD = re.compile(r"[^\W_]+")
_REFERENCES = ("owners", "domains", "service", "database", "databaseSchema")
_COLUMNS = ("columns", "dataModel.columns")
_NAMED = ("name", "displayName", "fullyQualifiedName")
_STEMMED = {"name", "displayName", "description"}
_STEMMED |= {f"{each}.{part}" for each in _COLUMNS for part in ("name", "description")}
_IN_ANY_CASE = {f"{each}.{part}" for each in _REFERENCES[1:] for part in _NAMED}


def found(store: OpenMetadataStore, query: dict[str, str]) -> Json:
    """Return a page of what the index holds of a type, by a query."""
    given = json.loads(query.get("query_filter") or '{"query": {"match_all": {}}}')["query"]
    try:
        if _clauses(given) > _MOST_CLAUSES:
            raise RefusedError(500, "too_many_nested_clauses: Query contains too many clauses")
        index = store.index[query["index"].removesuffix("_search_index") + "s"]
        names = [name for name, document in sorted(index.items()) if _meets(document, given)]
    except QuerySyntaxError as error:
        raise RefusedError(400, "query_string") from error
    start = int(query.get("from", 0))
    page = names[start : start + int(query.get("size", 10))]
    hits = [{"_source": {"fullyQualifiedName": name}} for name in page]
    return {"hits": {"total": {"value": len(names), "relation": "eq"}, "hits": hits}}


def refreshed(store: OpenMetadataStore) -> dict[str, dict[str, Json]]:
    """Return the index of what a store holds now."""
    return {
        collection: {
            name: _document(entity)
            for name, entity in store.entities[collection].items()
            if not entity.get("deleted") and _fits(entity)
        }
        for collection in ("tables", "containers")
    }


def _fits(entity: Json) -> bool:
    values = (entity.get("extension") or {}).values()
    return all(len(str(value).encode()) <= _LONGEST_KEYWORD for value in values)


def _document(entity: Json) -> Json:
    """Return the texts of an entity by their fields; members of columns are columns there."""
    texts: dict[str, list[str]] = {}
    for field, text in _texts(entity, ""):
        texts.setdefault(field, []).append(text)
    for field in _REFERENCES:
        texts.setdefault(f"{field}.displayName", [*texts.get(f"{field}.name", [])])
    return texts


def _texts(value: Any, field: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, each in value.items():
            below = field if key == "children" else f"{field}.{key}" if field else key
            if key != "extension":
                yield from _texts(each, below)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each, field)
    elif isinstance(value, str):
        yield field, value


def _meets(document: Json, query: Json) -> bool:
    ((kind, given),) = query.items()
    if kind == "match_all":
        return True
    if kind == "bool":
        must = all(_meets(document, each) for each in given.get("must", []))
        should = given.get("should")
        return must and (not should or any(_meets(document, each) for each in should))
    if kind == "nested":
        assert given["ignore_unmapped"], "containers have no nested owners"
        return "owners.name" in document and _meets(document, given["query"])
    if kind == "query_string":
        return all(_holds(document, given["fields"], term) for term in terms_of(given["query"]))
    assert (kind, given["type"]) == ("multi_match", "phrase_prefix"), query
    start = _stem(given["query"].casefold())
    return any(
        _stem(word.casefold()).startswith(start)
        for field in given["fields"]
        for text in document.get(field, [])
        for word in _WORD.findall(text)
    )


def _holds(document: Json, fields: list[str], term: str) -> bool:
    """Tell whether a term, which the server puts into lower case, is in a token of a field."""
    return any(
        term in token
        for field in (document if "*" in fields else fields)
        for text in document.get(field.removesuffix(".keyword"), [])
        for token in _tokens(field, text)
    )


def _tokens(field: str, text: str) -> list[str]:
    if field in _STEMMED:
        return [_stem(each.casefold()) for each in _WORD.findall(text)]
    return [text if field in _IN_ANY_CASE else text.casefold()]


def _clauses(query: Json) -> int:
    ((kind, given),) = query.items()
    if kind == "bool":
        parts = [*given.get("must", []), *given.get("should", [])]
        return sum(map(_clauses, parts))
    if kind == "nested":
        return _clauses(given["query"])
    return sum(_FIELDS if each == "*" else 1 for each in given.get("fields", []))


def _stem(word: str) -> str:
    """Return a word without the ending of a plural."""
    if word.endswith("ies") and len(word) > len("ties"):
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word
