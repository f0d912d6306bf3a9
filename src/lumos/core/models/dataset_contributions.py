"""All statements on one dataset, and how it changes when a contributor adds or withdraws one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue

from lumos.core.json_reading import Json, as_object
from lumos.core.models.contribution import (
    Contribution,
    Facets,
    fold,
    has_members,
    members_of,
    statements_of,
)
from lumos.core.models.contributor import Contributor, ContributorKind
from lumos.core.models.dataset import LumosDataset
from lumos.core.models.facets import BY_PATH, Facet
from lumos.core.models.restating import restated

if TYPE_CHECKING:
    from lumos.core.models.urn import Urn

EARLIER: Final = Contributor(ContributorKind.DECLARED, "earlier")
"""What a state from before contributions says of a dataset; its contributor is unknown."""
IMPORT: Final = Contributor(ContributorKind.DECLARED, "import")
"""What a snapshot says."""
EXTENSIONS: Final = "extensions"
_OF_UNKNOWN_ORIGIN: Final = frozenset({EARLIER, IMPORT})


@dataclass(frozen=True)
class DatasetContributions:
    """What each contributor says of a dataset."""

    urn: Urn
    said: tuple[Contribution, ...] = ()
    found: Mapping[Contributor, str] = field(default_factory=dict)
    """By contributor, the hash of what it was last found to say; empty where that is overruled."""
    gone: frozenset[Contributor] = frozenset()
    """The sources that once found the dataset, and no longer do."""

    @classmethod
    def alone(
        cls, urn: Urn, contributor: Contributor, *, at: datetime, hash: str = ""
    ) -> DatasetContributions:
        """Return what is said of a dataset of which only one speaks: its document says what."""
        return cls(urn, (Contribution(contributor, {}, at),), {contributor: hash})

    @property
    def is_alive(self) -> bool:
        """Whether there is a dataset.

        One that a source once found is there as long as a source finds it. What was never found is
        there as long as any contributor states it.
        """
        found = any(
            each.contributor.kind is ContributorKind.SOURCE and not each.only_measures
            for each in self.said
        )
        return found or (bool(self.said) and not self.gone)

    @property
    def declared_by(self) -> tuple[Contributor, ...]:
        """Those who declare the dataset."""
        speakers = (each.contributor for each in self.said)
        return tuple(each for each in speakers if each.kind is ContributorKind.DECLARED)

    @property
    def sole(self) -> Contribution | None:
        """The contribution of the only one who ever spoke of it; None where there are others."""
        return self.said[0] if len(self.said) == 1 and not self.gone else None

    def by(self, contributor: Contributor) -> Contribution | None:
        """Return what one contributor says."""
        return next((each for each in self.said if each.contributor == contributor), None)

    def dataset(self) -> LumosDataset:
        """Return the dataset that follows, without neighbours.

        Raises:
            InvalidModelError: what is said makes no dataset.
        """
        return LumosDataset.from_json(fold(self.urn, self.said))

    def stating(
        self,
        contributor: Contributor,
        document: Mapping[str, JsonValue],
        *,
        at: datetime,
        hash: str = "",
        rank: int = 0,
    ) -> DatasetContributions:
        """Return all with what one contributor says now, which replaces what it said before.

        What it measured before holds until it measures anew.

        Args:
            contributor: who speaks.
            document: a dataset as `to_json` writes it; what it leaves out is not said.
            at: the time.
            hash: of what was found.
            rank: the place of the contributor among those of its kind.
        """
        before = self.by(contributor) or Contribution(contributor, {}, at)
        facets = {**before.measured, **statements_of(document)}
        now = before.saying(facets, at=at)._replace(rank=rank)
        others = [each for each in self.said if each.contributor != contributor]
        if contributor.kind is ContributorKind.SOURCE:
            others = [*filter(None, (_less(each, facets, at=at) for each in others))]
        return replace(
            self,
            said=(*others, now),
            found={**self.found, contributor: hash},
            gone=self.gone - {contributor},
        )

    def without(self, contributor: Contributor) -> DatasetContributions:
        """Return all without one contributor; a source that found it leaves word that it did."""
        others = tuple(each for each in self.said if each.contributor != contributor)
        is_source = contributor.kind is ContributorKind.SOURCE
        return replace(
            self,
            said=others,
            found={name: each for name, each in self.found.items() if name != contributor},
            gone=self.gone | {contributor} if is_source and others else self.gone,
        )

    def ranked(self, contributor: Contributor, rank: int) -> DatasetContributions:
        """Return all with one contributor in another place among those of its kind."""
        said = tuple(
            each._replace(rank=rank) if each.contributor == contributor else each
            for each in self.said
        )
        return replace(self, said=said)

    def forgetting(self, contributor: Contributor) -> DatasetContributions:
        """Return all as if one contributor had never spoken: it is no longer configured."""
        left = self.without(contributor)
        return replace(left, gone=left.gone - {contributor})

    def wanting(
        self, wanted: Mapping[str, JsonValue], *, by: Contributor, at: datetime
    ) -> DatasetContributions:
        """Return all with what one contributor has to say so that a given dataset follows."""
        before = self.by(by) or Contribution(by, {}, at)
        said = tuple(restated(self.said, by=before._replace(at=at), wanted=wanted))
        facets = {each.contributor: each.facets for each in self.said}
        overruled = {
            each.contributor
            for each in said
            if each.contributor != by and facets.get(each.contributor) != each.facets
        }
        found = {name: "" if name in overruled else each for name, each in self.found.items()}
        return replace(self, said=said, found=found)


def _less(contribution: Contribution, stated: Facets, *, at: datetime) -> Contribution | None:
    """Return a contribution of unknown origin without what a source says by itself.

    A backup, or a state of before contributions, holds what sources said and what people said. As
    soon as a source speaks, the rest is what others said.
    """
    if contribution.contributor not in _OF_UNKNOWN_ORIGIN:
        return contribution
    gives_way = contribution.contributor == EARLIER
    parts = {facet.part for facet in map(BY_PATH.__getitem__, stated) if _is_technical(facet)}
    facets: Facets = {}
    for path, value in contribution.facets.items():
        facet = BY_PATH[path]
        if _is_technical(facet) and facet.part in parts:
            continue
        left = _left(facet, value, stated.get(path), gives_way=gives_way)
        if left not in (None, {}):
            facets[path] = left
    return contribution.saying(facets, at=at) if facets else None


def _is_technical(facet: Facet) -> bool:
    return not facet.edited_by_people


def _left(facet: Facet, value: JsonValue, stated: JsonValue, *, gives_way: bool) -> JsonValue:
    """Return what is left of a statement beside that of a source."""
    if facet.of_column and isinstance(value, dict) and isinstance(stated, dict):
        return {
            column: left
            for column, said in value.items()
            if (left := _rest(facet, said, stated.get(column), gives_way=gives_way))
            not in (None, {})
        }
    return _rest(facet, value, stated, gives_way=gives_way)


def _rest(facet: Facet, value: JsonValue, stated: JsonValue, *, gives_way: bool) -> JsonValue:
    if stated is None:
        return value
    if not has_members(facet):
        return None if gives_way or value == stated else value
    given, known = as_object(value, facet.path), as_object(stated, facet.path)
    theirs = members_of(facet, known.get("add"))
    own = members_of(facet, given.get("add"))
    replaced = gives_way or facet.path == EXTENSIONS
    left = {
        key: each
        for key, each in own.items()
        if key not in theirs or not (replaced or theirs[key] == each)
    }
    statement: Json = {"remove": given["remove"]} if given.get("remove") else {}
    if left:
        statement["add"] = left if isinstance(given.get("add"), dict) else [*left.values()]
    return statement
