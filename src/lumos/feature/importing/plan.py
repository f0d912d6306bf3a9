"""What an import does to what a catalog has, before anything is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from lumos.core.json_reading import as_object, list_or_empty
from lumos.core.models import DatasetLineage, LumosDataset, with_parts
from lumos.core.models.facets import COLUMN_FACETS, DATASET_FACETS, FACETS

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lumos.core.json_reading import Json
    from lumos.core.models.base import CanonicalModel

    ModelT = TypeVar("ModelT", bound=CanonicalModel)


class ImportMode(StrEnum):
    """What happens to something that the catalog already has."""

    UPDATE = "update"
    """It gets the snapshot's technical state; what people added to it stays."""
    OVERWRITE = "overwrite"
    """It becomes what the snapshot says, and nothing else."""
    MERGE = "merge"
    """It keeps all it has, columns too, and gets what is new."""
    SKIP_EXISTING = "skip-existing"
    """It stays as it is."""


class PlannedDataset(NamedTuple):
    """A dataset as the import wants it, and what that means to the catalog."""

    dataset: LumosDataset
    action: PlannedAction


class PlannedAction(StrEnum):
    """What an import does with one dataset."""

    CREATE = "create"
    UPDATE = "update"
    KEEP = "keep"
    SKIP = "skip"


_PEOPLES_PARTS = frozenset(facet.part for facet in DATASET_FACETS if facet.edited_by_people)
_PEOPLES_FIELD_PARTS = tuple(
    name for name, facet in COLUMN_FACETS.items() if facet.edited_by_people
)
_JOINED_FIELD_PARTS = tuple(
    name for name in _PEOPLES_FIELD_PARTS if COLUMN_FACETS[name].has_members
)
_INNER_TYPES = ("items", "key", "value")
_NAMED_LISTS = frozenset(facet.name for facet in FACETS if facet.identity == ("name",))


def plan_dataset(
    present: LumosDataset | None,
    incoming: LumosDataset,
    *,
    mode: ImportMode,
    exact: bool = False,
    own_versions: bool = True,
) -> PlannedDataset:
    """Say what an import makes of a dataset that the catalog has, or does not have yet.

    With `exact` it loses the upstream lineage that the snapshot does not have. Without
    `own_versions`, where no versions are counted here, it gets that of the snapshot.
    """
    if present is None:
        return PlannedDataset(incoming, PlannedAction.CREATE)
    if mode is ImportMode.SKIP_EXISTING:
        return PlannedDataset(present, PlannedAction.SKIP)
    wanted = incoming if mode is ImportMode.OVERWRITE else combined(present, incoming, mode=mode)
    wanted = _kept_here(present, wanted, exact=exact)
    if not own_versions and incoming.version is not None:
        wanted = with_parts(wanted, version=incoming.version)
    return PlannedDataset(wanted, PlannedAction.KEEP if wanted == present else PlannedAction.UPDATE)


def combined(present: LumosDataset, incoming: LumosDataset, *, mode: ImportMode) -> LumosDataset:
    """Bring two states of a dataset together; where both say something, the incoming one wins."""
    base, extra = present.to_json(), incoming.to_json()
    result = {**base, **extra}
    if mode is ImportMode.MERGE:
        result = as_object(_merged(base, extra), "dataset")
    else:
        for name in _PEOPLES_PARTS & base.keys() & extra.keys():
            result[name] = _merged(base[name], extra[name])
        result["schema"] = _with_peoples_words(base.get("schema"), extra.get("schema")) or {}
    return LumosDataset.from_json(result)


def combined_entity(present: ModelT, incoming: ModelT) -> ModelT:
    """Bring two states of a user, group, tag, term, domain or job together."""
    return type(present).from_json(_merged(present.to_json(), incoming.to_json()))


def _kept_here(present: LumosDataset, wanted: LumosDataset, *, exact: bool) -> LumosDataset:
    """Keep what is counted or known here: the version and the edges."""
    known = DatasetLineage() if exact else present.lineage
    stated = {
        *(each for each in known.upstream if each not in known.inferred),
        *(each for each in wanted.lineage.upstream if each not in wanted.lineage.inferred),
    }
    upstream = {*known.upstream, *wanted.lineage.upstream}
    lineage = DatasetLineage(
        upstream=tuple(upstream),
        downstream=(*present.lineage.downstream, *wanted.lineage.downstream),
        inferred=tuple(upstream - stated),
    )
    return with_parts(wanted, version=present.version, lineage=lineage)


def _merged(base: JsonValue, extra: JsonValue, *, name: str = "", typed: bool = False) -> JsonValue:
    """Merge two values; `typed` where they are, or lie in, the types of columns."""
    typed = typed or name == "schema"
    if isinstance(base, dict) and isinstance(extra, dict):
        if typed and base.get("type") != extra.get("type"):
            return {**_words(base), **extra}  # parameters of the old type mean nothing to the new
        both = base.keys() & extra.keys()
        inside = {
            key: _merged(base[key], extra[key], name=key, typed=typed and not _is_word(key))
            for key in both
        }
        return {**base, **extra, **inside}
    if isinstance(base, list) and isinstance(extra, list):
        first, second = _named(base), _named(extra)
        if name in _NAMED_LISTS and len(first) == len(base) and len(second) == len(extra):
            both = first.keys() & second.keys()
            inside = {key: _merged(first[key], second[key], typed=typed) for key in both}
            return [*{**first, **second, **inside}.values()]
        if typed and name == "branches":
            return _branches(base, extra, merge=partial(_merged, typed=True))
        if typed:
            return extra
        return [*base, *(item for item in extra if item not in base)]
    return extra


def _is_word(name: str) -> bool:
    return name in _PEOPLES_FIELD_PARTS


def _words(field: Json) -> Json:
    return {name: field[name] for name in _PEOPLES_FIELD_PARTS if name in field}


def _named(items: Iterable[JsonValue]) -> dict[str, Json]:
    return {str(item["name"]): item for item in items if isinstance(item, dict) and "name" in item}


def _with_peoples_words(base: JsonValue, extra: JsonValue) -> JsonValue:
    """Return the incoming schema, its columns still described as people described them here."""
    if not isinstance(extra, dict) or not extra.get("fields"):
        return base
    known = _named(list_or_empty(base.get("fields"))) if isinstance(base, dict) else {}
    return {**extra, "fields": [_field(known, field) for field in list_or_empty(extra["fields"])]}


def _field(known: Mapping[str, Json], field: JsonValue) -> JsonValue:
    if not isinstance(field, dict) or str(field["name"]) not in known:
        return field
    return _described(known[str(field["name"])], field)


def _described(before: JsonValue, now: JsonValue) -> JsonValue:
    """Return an incoming column, or a type inside one, with people's words on it and within it."""
    if not isinstance(before, dict) or not isinstance(now, dict):
        return now
    result: Json = {**_words(before), **now}
    for name in (name for name in _JOINED_FIELD_PARTS if name in before and name in now):
        result[name] = _merged(before[name], now[name])
    if "fields" in now:
        inner = _named(list_or_empty(before.get("fields")))
        result["fields"] = [_field(inner, member) for member in list_or_empty(now["fields"])]
    for name in (name for name in _INNER_TYPES if name in now):
        result[name] = _described(before.get(name), now[name])
    if "branches" in now:
        known, given = list_or_empty(before.get("branches")), list_or_empty(now["branches"])
        result["branches"] = _branches(known, given, merge=_described)
    return result


def _branches(
    before: Sequence[JsonValue],
    now: Sequence[JsonValue],
    *,
    merge: Callable[[JsonValue, JsonValue], JsonValue],
) -> list[JsonValue]:
    """Return the branches of a union merged with those before that are alone of their type."""
    types = Counter(_type(branch) for branch in before)
    known = {_type(branch): branch for branch in before if types[_type(branch)] == 1}
    return [merge(known.get(_type(branch)), branch) for branch in now]


def _type(branch: JsonValue) -> str:
    return str(branch.get("type")) if isinstance(branch, dict) else ""
