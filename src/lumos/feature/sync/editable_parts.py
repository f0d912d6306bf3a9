"""The parts of a dataset that people may change in a catalog, each by a unique name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue

from lumos.core.json_reading import as_objects, find_object, find_value, required_text_at
from lumos.core.models.base import sha256_of
from lumos.core.models.facets import COLUMN_FACETS, DATASET_FACETS, Facet, MergeRule

if TYPE_CHECKING:
    from lumos.core.json_reading import Json
    from lumos.core.models import Field, FieldType, LumosDataset
    from lumos.feature.sync.settings import Truth, TruthSettings

EditableParts = dict[str, JsonValue]
EMPTY: Final[tuple[JsonValue, ...]] = (None, [], "", {})
_COLUMN_FACETS: Final = {
    facet.sync_name: facet for facet in COLUMN_FACETS.values() if facet.sync_name is not None
}
_OF_FIELDS: Final = {name: facet.name for name, facet in _COLUMN_FACETS.items()}
_SAID: Final = {key: part for part, key in _OF_FIELDS.items()}
_INSIDE: Final = frozenset({"fields", "items", "value"})
_ABSENT: Final[Mapping[str, JsonValue]] = {
    "tags": [],
    "pii": False,
    "glossary_terms": [],
    "properties": {},
}
"""What says nothing, where that is not null."""
_SILENT: Final = frozenset({"name", "type", "nullable", "native_type"})
"""What says nothing that people may change, and has nothing inside."""
_GROUPED: Final = ("documentation", "governance")
"""Parts of a dataset whose facets are leaves by name."""
_FACETS: Final = {
    **{facet.path.replace(".", ":"): facet for facet in DATASET_FACETS if facet.part in _GROUPED},
    **{
        facet.name: facet
        for facet in DATASET_FACETS
        if facet.edited_by_people and facet.part not in _GROUPED
    },
    **_COLUMN_FACETS,
}
"""Facets by the name of the leaf, or by the beginning of the names of their members."""


def editable_parts_of(document: Json, *, catalog: str) -> EditableParts:
    """Return what people may change of a dataset, given as `to_json` writes it.

    What it says nothing about is left out.

    What Lumos does not model of the catalog itself counts as one part, of which only a mark is
    given.
    """
    leaves: EditableParts = {}
    for part in _GROUPED:
        leaves |= {f"{part}:{name}": value for name, value in find_object(document, part).items()}
    # In a list, so that a value which is empty differs from none.
    given = find_object(document, "properties")
    leaves |= {f"properties:{name}": [value] for name, value in given.items()}
    leaves["tags"] = document.get("tags")
    leaves["owners"] = find_value(document, "ownership", "owners")
    extensions = find_object(document, "extensions")
    if catalog in extensions:
        leaves[f"extensions:{catalog}"] = sha256_of(extensions[catalog])
    _add_columns(leaves, find_value(document, "schema", "fields"))
    return {name: value for name, value in leaves.items() if value not in EMPTY}


def _add_columns(leaves: EditableParts, columns: JsonValue, *, within: str = "") -> None:
    """Add what columns, given as `to_json` writes them, and what is nested in them say."""
    for column in as_objects(columns, "fields"):
        if column.keys() <= _SILENT:
            continue
        path = _path(within, required_text_at(column, "name"))
        for key, value in column.items():
            if key in _SAID and value is not None:
                leaves[f"{_SAID[key]}:{path}"] = value
        if not _INSIDE.isdisjoint(column):
            _add_inner(leaves, column, path)


def _add_inner(leaves: EditableParts, node: Json, path: str) -> None:
    _add_columns(leaves, node.get("fields"), within=f"{path}/")
    for name in ("items", "value"):
        if inner := find_object(node, name):
            _add_inner(leaves, inner, f"{path}/~{name}")


def members(fields: tuple[Field, ...], *, within: str = "") -> Iterator[tuple[str, Field]]:
    """Yield columns and what is nested in them, by paths that no two of them share."""
    for field in fields:
        path = path_of(within, field)
        yield path, field
        yield from _inner(field, path)


def path_of(within: str, field: Field) -> str:
    """Return the path of a column, or of a member of another."""
    return _path(within, field.name)


def _path(within: str, name: str) -> str:
    return within + name.replace("~", "~0").replace("/", "~1")


def _inner(node: FieldType, path: str) -> Iterator[tuple[str, Field]]:
    if node.fields:
        yield from members(node.fields, within=f"{path}/")
    for name in ("items", "value"):
        inner = getattr(node, name)
        if inner is not None:
            yield from _inner(inner, f"{path}/~{name}")


def with_editable_parts(
    local: LumosDataset, remote: LumosDataset, *, chosen: EditableParts
) -> LumosDataset:
    """Return a dataset that says what was chosen of the parts that people may change."""
    parts: dict[str, object] = {
        "documentation": _starting_with("documentation:", chosen),
        "governance": _starting_with("governance:", chosen),
        "properties": {
            name: value[0]
            for name, value in _starting_with("properties:", chosen).items()
            if isinstance(value, list)
        },
        "tags": chosen.get("tags") or (),
        "ownership": {"owners": chosen.get("owners") or ()},
    }
    fields = tuple(_with_own(field, path_of("", field), chosen) for field in local.schema.fields)
    if fields != local.schema.fields:
        parts["schema"] = local.schema.model_copy(update={"fields": fields})
    for leaf, mark in chosen.items():
        part, _, name = leaf.partition(":")
        if part == "extensions" and mark is None:
            others = {each: value for each, value in local.extensions.items() if each != name}
            parts["extensions"] = others
        elif part == "extensions" and sha256_of(remote.extensions.get(name)) == mark:
            parts["extensions"] = {**local.extensions, name: remote.extensions[name]}
    return local.model_copy(update=parts)


def is_set(name: str) -> bool:
    """Return whether a part is a set, to which both sides may add."""
    facet = _facet_of(name)
    return facet is not None and facet.merge is MergeRule.SET


def edit_policy_of(name: str, truth: TruthSettings) -> Truth:
    """Decide which side's state of a part holds."""
    facet = _facet_of(name)
    policy: Truth = getattr(truth, (facet and facet.truth) or "documentation")
    return policy


def _facet_of(name: str) -> Facet | None:
    """Return the facet of a dataset's or column's part; a part of an entity has none."""
    return _FACETS.get(name) or _FACETS.get(name.partition(":")[0])


def of_field(name: str) -> str | None:
    """Return the path of the column that a part belongs to; None if it is the dataset's own."""
    part, _, path = name.partition(":")
    return path if path and part in _OF_FIELDS else None


def _says_something(field: Field) -> bool:
    return any(getattr(field, key) for key in _OF_FIELDS.values())


def _starting_with(start: str, chosen: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {
        name.removeprefix(start): value
        for name, value in chosen.items()
        if name.startswith(start) and value not in EMPTY
    }


def _with_own(field: Field, path: str, chosen: EditableParts) -> Field:
    document = field.to_json() if _says_something(field) else {}
    wanted = {key: chosen.get(f"{part}:{path}") for part, key in _OF_FIELDS.items()}
    changed: dict[str, object] = {
        key: _ABSENT.get(key) if value is None else value
        for key, value in wanted.items()
        if value != document.get(key)
    }
    changed |= _inner_changes(field, path, chosen)
    return field.model_copy(update=changed) if changed else field


def _inner_changes(node: FieldType, path: str, chosen: EditableParts) -> dict[str, object]:
    changed: dict[str, object] = {}
    if node.fields:
        inside = tuple(_with_own(each, path_of(f"{path}/", each), chosen) for each in node.fields)
        if inside != node.fields:
            changed["fields"] = inside
    for name in ("items", "value"):
        inner: FieldType | None = getattr(node, name)
        if inner is not None and (update := _inner_changes(inner, f"{path}/~{name}", chosen)):
            changed[name] = inner.model_copy(update=update)
    return changed
