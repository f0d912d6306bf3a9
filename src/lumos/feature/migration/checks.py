"""What is said of a move from one catalog to another, and what it is worth."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Final

from lumos.core.platform.concept_parts import COUNTED_BY_EACH
from lumos.core.platform.fidelity import Fidelity, fidelity_of
from lumos.feature.migration.results import MigrationCheck
from lumos.feature.snapshot.canonical_diff import CanonicalDiff
from lumos.feature.snapshot.diff import SectionDiff

if TYPE_CHECKING:
    from lumos.core.platform.fidelity import AdapterRef
    from lumos.feature.snapshot.diff import DiffTotals

_MOVED: Final = {
    "datasets": ("datasets", "dataset"),
    "lineage_edges": ("lineage edges", "lineage_edge"),
}
_MAPPED: Final = {
    "job": ("job", "jobs"),
    "glossary_term": ("glossary term", "glossary terms"),
    "tag_definition": ("tag", "tags"),
    "domain_definition": ("domain", "domains"),
    "user": ("user", "users"),
    "group": ("group", "groups"),
    "identity": ("identity", "identities"),
    "catalog_extension": ("catalog extension", "catalog extensions"),
}
_DATASETS: Final = ("dataset", "datasets")
_EDGES: Final = ("lineage edge", "lineage edges")
_OF_EDGES: Final = ("lineage_edge", "column_lineage")


def migration_checks(
    totals: DiffTotals,
    canonical: CanonicalDiff | None = None,
    *,
    target: AdapterRef | None = None,
    own_versions: bool = False,
    unreadable: Collection[str] = (),
) -> Iterator[MigrationCheck]:
    """Say how much of the source the target has, and what a person has to see to.

    Args:
        totals: how both differ, in numbers.
        canonical: in which concepts they are not the same.
        target: the adapter, whose table says which concepts it drops.
        own_versions: whether the target may count versions itself.
        unreadable: the kinds of what the source holds besides and was not readable, one for each.
    """
    canonical = canonical or CanonicalDiff()
    yield from _moved(totals, canonical, target=target, unreadable=unreadable)
    yield from _concepts(canonical, target, own_versions=own_versions)
    yield from _mapped(canonical, target)


def everything_moved(totals: DiffTotals) -> bool:
    """Return whether the target has every dataset and lineage edge of the source."""
    found = (totals.sections.get(section) for section in _MOVED)
    return not any(each.removed or each.unobserved for each in found if each is not None)


def _moved(
    totals: DiffTotals,
    canonical: CanonicalDiff,
    *,
    target: AdapterRef | None,
    unreadable: Collection[str],
) -> Iterator[MigrationCheck]:
    for section, (title, concept) in _MOVED.items():
        found = totals.sections.get(section)
        unread = sum(kind == concept for kind in unreadable)
        if found is not None or unread:
            found = found or SectionDiff()
            missing = found.removed + found.unobserved + unread
            everything = found.old + unread
            yield MigrationCheck(
                status="warn" if missing else "ok",
                message=f"{everything - missing:,}/{everything:,} {title} migrated",
                concept=concept,
                count=missing,
                declared=missing > 0 and _is_dropped(concept, target),
                examples=canonical.of(concept).examples if missing else (),
            )


def _concepts(
    canonical: CanonicalDiff, target: AdapterRef | None, *, own_versions: bool
) -> Iterator[MigrationCheck]:
    """Say of which concepts something is lacking or different in what arrived."""
    for each in canonical.concepts:
        concept = each.concept
        if concept in _MAPPED:
            continue
        nouns = _EDGES if concept in _OF_EDGES else _DATASETS
        itself = concept in ("dataset", "lineage_edge")
        what = "" if itself else f": {_words(concept)}"
        own = own_versions and concept == COUNTED_BY_EACH
        lines = {
            "lacks lack": 0
            if itself
            else each.lacking,  # those that are missing are reported above
            "differs differ": 0 if own else each.differing,
        }
        for verbs, count in lines.items():
            if count:
                yield _warning(
                    f"{_counted(count, nouns, verbs)}{what}",
                    canonical,
                    concept=concept,
                    count=count,
                    target=target,
                )
        besides = each.differing if own else each.more
        if besides and not itself:
            form = ("its own" if besides == 1 else "their own") if own else "more"
            text = f"{_counted(besides, nouns, 'has have')} {form}{what}"
            yield MigrationCheck(status="ok", message=text, concept=concept, count=besides)


def _mapped(canonical: CanonicalDiff, target: AdapterRef | None) -> Iterator[MigrationCheck]:
    """Say what a person has to bring over; these lines are those of the product's documents."""
    for concept, nouns in _MAPPED.items():
        each = canonical.of(concept)
        if missing := each.lacking + each.differing:
            yield MigrationCheck(
                status="warn",
                message=f"{_counted(missing, nouns, 'requires require')} manual mapping",
                concept=concept,
                count=missing,
                declared=_is_dropped(concept, target),
                examples=each.examples,
            )


def _warning(
    text: str, canonical: CanonicalDiff, *, concept: str, count: int, target: AdapterRef | None
) -> MigrationCheck:
    declared = _is_dropped(concept, target)
    return MigrationCheck(
        status="warn",
        message=f"{text} (dropped by {target.name})" if declared and target else text,
        concept=concept,
        count=count,
        declared=declared,
        examples=canonical.of(concept).examples,
    )


def _is_dropped(concept: str, target: AdapterRef | None) -> bool:
    return target is not None and fidelity_of(target, concept) is Fidelity.DROPPED


def _counted(count: int, nouns: tuple[str, str], verbs: str) -> str:
    form = 0 if count == 1 else 1
    return f"{count:,} {nouns[form]} {verbs.split()[form]}"


def _words(concept: str) -> str:
    return concept.replace("_", " ")
