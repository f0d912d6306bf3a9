"""What people say of columns, taken out of a schema and put back into another one.

A column, or a type nested in one, is known by its path: names joined by `/`, with `~items`,
`~key`, `~value` and `~branches` for the types inside arrays, maps and unions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from pydantic import JsonValue

from lumos.core.json_reading import Json, as_objects, objects_at
from lumos.core.models.facets import COLUMN_FACETS

Words = dict[str, dict[str, JsonValue]]
"""Values of a column's facets, by path and name of the facet."""

_WORDS = frozenset(name for name, facet in COLUMN_FACETS.items() if facet.edited_by_people)
_INNER_TYPES = ("items", "key", "value")


def column_path(within: str, name: str) -> str:
    """Return the path of a column, or of a member of another."""
    return within + name.replace("~", "~0").replace("/", "~1")


def without_words(fields: list[JsonValue]) -> tuple[list[JsonValue], Words]:
    """Return columns, given as `to_json` writes them, without what people say of them, and that."""
    words: Words = {}

    def strip(path: str, node: Json) -> Json:
        said = {name: value for name, value in node.items() if name in _WORDS}
        if said:
            words[path] = said
        return {name: value for name, value in node.items() if name not in _WORDS}

    return _mapped_fields(fields, strip), words


def with_words(
    fields: list[JsonValue], words: Mapping[str, Mapping[str, JsonValue]]
) -> list[JsonValue]:
    """Return columns with what people say of them; what is said of other columns is left out."""
    if not words:
        return fields
    return _mapped_fields(fields, lambda path, node: {**node, **words.get(path, {})})


def paths_of(fields: list[JsonValue]) -> list[str]:
    """Return the paths of all columns and of the types nested in them."""
    paths: list[str] = []

    def note(path: str, node: Json) -> Json:
        paths.append(path)
        return node

    _mapped_fields(fields, note)
    return paths


def _mapped_fields(
    fields: JsonValue, change: Callable[[str, Json], Json], *, within: str = ""
) -> list[JsonValue]:
    members = as_objects(fields, "fields")
    paths = _distinct(column_path(within, str(member["name"])) for member in members)
    pairs = zip(paths, members, strict=True)
    return [_mapped(path, member, change) for path, member in pairs]


def _mapped(path: str, node: Json, change: Callable[[str, Json], Json]) -> Json:
    changed = change(path, node)
    inner: Json = {
        name: _mapped(f"{path}/~{name}", within, change)
        for name in _INNER_TYPES
        if isinstance(within := node.get(name), dict)
    }
    if node.get("fields"):
        inner["fields"] = _mapped_fields(node["fields"], change, within=f"{path}/")
    if branches := objects_at(node, "branches"):
        paths = _distinct(f"{path}/~branches/{branch.get('type')}" for branch in branches)
        pairs = zip(paths, branches, strict=True)
        inner["branches"] = [_mapped(at, branch, change) for at, branch in pairs]
    return {**changed, **inner}


def _distinct(paths: Iterator[str]) -> list[str]:
    """Number the paths that occur again."""
    seen: Counter[str] = Counter()
    distinct = []
    for path in paths:
        seen[path] += 1
        distinct.append(path if seen[path] == 1 else f"{path}~{seen[path] + 1}")
    return distinct
