"""Fields that may have been renamed or moved: pairs of a removed and an added one.

A pair is an annotation and never lowers a level by itself. Only where both sides carry the same
stable field id, as in tables that find columns by id, or where an Avro field names the old one as
its alias, is it a rename to the format too.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from math import prod
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from lumos.core.changes.avro_resolution import aliases_of
from lumos.core.changes.detectors.structure import fields_findings, passes
from lumos.core.changes.detectors.types import type_text
from lumos.core.changes.text import member_path
from lumos.core.models import Field, FieldType, LumosDataset, TypeName

if TYPE_CHECKING:
    from lumos.core.changes.finding import Finding

LEAST_CONFIDENCE = 0.5
"""What is less likely than this is not reported."""

MOST_COMPARISONS = 2_500
"""How many pairs of names are compared letter by letter; beyond, only equal marks make a pair."""

SAME_DESCRIPTION, SAME_POSITION, ONLY_PAIR, SAME_NULLABILITY = 0.6, 0.5, 0.25, 0.1
SAME_NAME_ELSEWHERE, SAME_WORDS, MOST_BY_SIGNS = 0.6, 0.9, 0.99
"""The weight of each sign alone; signs add up as independent evidence does."""

_ID_FORMATS = ("delta", "iceberg", "iceberg_v3")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_REMOVED, _ADDED = "field.removed", "field.added."


@dataclass(frozen=True)
class _Candidate:
    """A field that only one side has, and where; inner ones came or went with a struct."""

    field: Field
    parent: str
    inner: bool
    index: int | None  # only where columns are found by position: elsewhere order is no sign

    @cached_property
    def path(self) -> str:
        return member_path(self.parent, self.field.name)

    @cached_property
    def words(self) -> tuple[str, ...]:
        return tuple(word.lower() for word in _WORDS.findall(self.field.name)) or (self.field.name,)

    @cached_property
    def type_text(self) -> str:
        return type_text(self.field)

    @property
    def field_id(self) -> int | None:
        number = self.field.properties.get("field_id")
        return number if isinstance(number, int) and not isinstance(number, bool) else None


class _Mark(NamedTuple):
    path: str
    confidence: float
    passes_in: tuple[str, ...]


_Scored = tuple[float, _Candidate, _Candidate]


def with_renames(
    findings: Sequence[Finding], old: LumosDataset, new: LumosDataset
) -> Sequence[Finding]:
    """Return the findings, with removed and added fields that may be one and the same marked."""
    removed = {finding.path for finding in findings if finding.rule.startswith(_REMOVED)}
    added = {finding.path for finding in findings if finding.rule.startswith(_ADDED)}
    if not removed or not added:
        return findings
    marks: dict[tuple[str, str], _Mark] = {}
    for confidence, one, other in _best_pairs(_candidates(old, removed), _candidates(new, added)):
        formats = _accepting_formats(one, other, avro=old.format == new.format == "avro")
        marks[_REMOVED, one.path] = _Mark(other.path, confidence, formats)
        marks[_ADDED, other.path] = _Mark(one.path, confidence, formats)
    return [_marked(finding, marks) for finding in findings]


def _marked(finding: Finding, marks: Mapping[tuple[str, str], _Mark]) -> Finding:
    side = _REMOVED if finding.rule.startswith(_REMOVED) else _ADDED
    mark = marks.get((side, finding.path)) if finding.rule.startswith(side) else None
    if mark is None:
        return finding
    return finding._replace(
        possible_rename_of=mark.path,
        rename_confidence=mark.confidence,
        passes_in=tuple(sorted({*finding.passes_in, *mark.passes_in})),
        breaks_in=tuple(name for name in finding.breaks_in if name not in mark.passes_in),
    )


def _candidates(dataset: LumosDataset, paths: Set[str]) -> list[_Candidate]:
    """Return the fields at these paths and all that lies in them, however they are listed."""
    positional = dataset.schema.positional
    found = (
        candidate
        for index, field in enumerate(dataset.schema.fields)
        for candidate in _within(
            field, parent="", paths=paths, inner=False, index=index if positional else None
        )
    )
    return sorted(found, key=attrgetter("path"))


def _within(
    field: Field, *, parent: str, paths: Set[str], inner: bool, index: int | None = None
) -> Iterator[_Candidate]:
    candidate = _Candidate(field, parent, inner=inner, index=index)
    chosen = inner or candidate.path in paths
    if chosen:
        yield candidate
    yield from _below(field, candidate.path, paths=paths, inner=chosen)


def _below(node: FieldType, path: str, *, paths: Set[str], inner: bool) -> Iterator[_Candidate]:
    """Yield candidates below a node; a branch of a union has no name to look for."""
    match node.type:
        case TypeName.STRUCT:
            for field in node.fields:
                yield from _within(field, parent=path, paths=paths, inner=inner)
        case TypeName.ARRAY if node.items:
            yield from _below(node.items, f"{path}[]", paths=paths, inner=inner)
        case TypeName.MAP if node.value:
            yield from _below(node.value, f"{path}{{value}}", paths=paths, inner=inner)


def _best_pairs(old: Sequence[_Candidate], new: Sequence[_Candidate]) -> Iterator[_Scored]:
    """Yield the likeliest pairs, no field in two of them."""
    likely = [pair for pair in _scored(old, new) if pair[0] >= LEAST_CONFIDENCE]
    likely.sort(key=lambda pair: (-pair[0], pair[1].path, pair[2].path))
    paired: set[tuple[bool, str]] = set()
    for confidence, one, other in likely:
        ends = {(False, one.path), (True, other.path)}
        if not ends & paired and not (one.inner and other.inner):
            paired |= ends
            yield confidence, one, other


def _scored(old: Sequence[_Candidate], new: Sequence[_Candidate]) -> Iterator[_Scored]:
    yield from _with_same_id(old, new)
    yield from _with_alias(old, new)
    yield from _moved(old, new)
    groups = _grouped(one for one in old if not one.inner)
    others = _grouped(other for other in new if not other.inner)
    budget = MOST_COMPARISONS
    for key in sorted(groups.keys() & others.keys()):
        before, after = groups[key], others[key]
        alone = len(before) == len(after) == 1
        budget -= len(before) * len(after)
        pairs = _all_pairs(before, after) if budget >= 0 else _alike(before, after)
        yield from ((_renamed(one, other, alone=alone), one, other) for one, other in pairs)


def _grouped(
    candidates: Iterable[_Candidate],
) -> defaultdict[tuple[str, str], list[_Candidate]]:
    """A rename stays within its struct and keeps its type."""
    groups: defaultdict[tuple[str, str], list[_Candidate]] = defaultdict(list)
    for candidate in candidates:
        groups[candidate.parent, candidate.type_text].append(candidate)
    return groups


_Pairs = Iterator[tuple[_Candidate, _Candidate]]


def _all_pairs(old: Sequence[_Candidate], new: Sequence[_Candidate]) -> _Pairs:
    return ((one, other) for one in old for other in new)


def _alike(old: Sequence[_Candidate], new: Sequence[_Candidate]) -> _Pairs:
    """Pair by equal words or position, in time that grows with the number of fields."""
    for sign in (attrgetter("words"), attrgetter("index")):
        after = {sign(other): other for other in new}
        for one in old:
            if sign(one) is not None and (other := after.get(sign(one))):
                yield one, other


def _with_same_id(old: Sequence[_Candidate], new: Sequence[_Candidate]) -> Iterator[_Scored]:
    after = {other.field_id: other for other in new}
    for one in old:
        if one.field_id is not None and (other := after.get(one.field_id)):
            yield 1.0, one, other


def _with_alias(old: Sequence[_Candidate], new: Sequence[_Candidate]) -> Iterator[_Scored]:
    before = {(one.parent, one.field.name): one for one in old if not one.inner}
    for other in new:
        for name in aliases_of(other.field):
            one = before.get((other.parent, name))
            if one is not None and not _told_apart(one, other):
                yield 1.0, one, other


def _moved(old: Sequence[_Candidate], new: Sequence[_Candidate]) -> Iterator[_Scored]:
    """Yield fields of one name and type in another struct; the more there are, the less sure."""
    after: defaultdict[tuple[str, str], list[_Candidate]] = defaultdict(list)
    for other in new:
        after[other.field.name, other.type_text].append(other)
    before = Counter((one.field.name, one.type_text) for one in old)
    for one in old:
        key = (one.field.name, one.type_text)
        rivals = max(before[key], len(after[key]))
        others = after[key] if rivals * rivals <= MOST_COMPARISONS else ()
        for other in others:
            if one.parent != other.parent and not _told_apart(one, other):
                sure = _together(SAME_NAME_ELSEWHERE, *_signs(one, other))
                yield round(sure / rivals, 2), one, other


def _renamed(old: _Candidate, new: _Candidate, *, alone: bool) -> float:
    if _told_apart(old, new):
        return 0.0
    name = SAME_WORDS * _similarity(old.words, new.words)
    signs = [name, *_signs(old, new)]
    if alone:
        signs.append(ONLY_PAIR)
    if old.index is not None and old.index == new.index:
        signs.append(SAME_POSITION)
    return _together(*signs)


def _similarity(old: Sequence[str], new: Sequence[str]) -> float:
    """Return 1 for the same words in another case, 0 for names that are alike by chance only."""
    if old == new:
        return 1.0
    if len(old) == len(new) and all(map(_abbreviates, old, new)):
        return 0.8
    ratio = SequenceMatcher(None, "".join(old), "".join(new)).ratio()
    common = len({*old} & {*new}) / len({*old} | {*new})
    return max(0.0, 2 * max(ratio, common) - 1)


def _abbreviates(old: str, new: str) -> bool:
    return old.startswith(new) or new.startswith(old)


def _signs(old: _Candidate, new: _Candidate) -> list[float]:
    signs = []
    if old.field.nullable == new.field.nullable:
        signs.append(SAME_NULLABILITY)
    text = (old.field.description or "").strip()
    if text and text == (new.field.description or "").strip():
        signs.append(SAME_DESCRIPTION)
    return signs


def _together(*signs: float) -> float:
    doubt = prod(1 - sign for sign in signs)
    return round(min(1 - doubt, MOST_BY_SIGNS), 2)


def _told_apart(old: _Candidate, new: _Candidate) -> bool:
    """Stable ids that differ say that these are two fields, whatever they are called."""
    return None not in (old.field_id, new.field_id) and old.field_id != new.field_id


def _accepting_formats(old: _Candidate, new: _Candidate, *, avro: bool) -> tuple[str, ...]:
    """Name the profiles that rename in place, and take whatever else changed of the field."""
    if old.parent != new.parent:
        return ()
    formats: tuple[str, ...] = ()
    if old.field_id is not None and old.field_id == new.field_id:
        formats = _ID_FORMATS
    if old.field.name in aliases_of(new.field):
        formats += ("avro", "writers") if avro else ("avro",)
    renamed = old.field.model_copy(update={"name": new.field.name})
    inner = [*fields_findings([renamed], [new.field], parent=new.parent)] if formats else []
    return tuple(name for name in formats if all(passes(each, name) for each in inner))
