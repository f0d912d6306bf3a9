"""Many datasets looked for at once, by fewer requests than one for each."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from lumos.core.errors import PlatformNotFoundError
from lumos.core.platform.impl.openmetadata.mapping.names import (
    Place,
    fqn,
    nested_place,
    path_of,
    place_of,
)
from lumos.core.platform.impl.openmetadata.mapping.stashed import node_of
from lumos.core.platform.threads import mapped

if TYPE_CHECKING:
    from lumos.core.json_reading import Json
    from lumos.core.models import Urn
    from lumos.core.platform.impl.openmetadata.client import OpenMetadataApi
    from lumos.core.platform.impl.openmetadata.mapping.stashed import Node
    from lumos.core.platform.impl.openmetadata.writer.datasets import DatasetWires

_FEWEST: Final = 3
"""Of fewer datasets a list is not asked for: its first page may hold none of them."""
_LONGEST: Final = 10
"""Of a list that is as many times as long as what is looked for in it, most would be read in vain.
"""
_SCHEMA_LEVELS: Final = 3
_Path = tuple[str, ...]


class _List(NamedTuple):
    """A list of the server in which some datasets stand, if they are there."""

    type: str
    filter: str
    of: str


class LookUp:
    """Finds the entities of datasets: by the list of their schema or service, or each by its name.

    The first page of a list states how long it is; where the rest of it takes as many requests as
    datasets are left, or the list is far longer than what is looked for, those are asked for one
    by one. How long a list was is remembered.
    """

    def __init__(self, api: OpenMetadataApi, datasets: DatasetWires, *, workers: int) -> None:
        self._api = api
        self._datasets = datasets
        self._workers = workers
        self._totals: dict[_List, float] = {}

    def nodes(self, urns: Sequence[Urn]) -> dict[Urn, Node]:
        """Return the entities of some datasets, also of those that are only mentioned."""
        groups: dict[_List, list[Urn]] = defaultdict(list)
        for urn in dict.fromkeys(urns):
            groups[_list_of(place_of(urn))].append(urn)
        found: dict[Urn, Node] = {}
        alone: list[Urn] = []
        for where, some in groups.items():
            left = some
            if max(_FEWEST, self._totals.get(where, 0) / _LONGEST) <= len(some):
                left = self._listed(where, some, found=found)
            alone += left
        nodes = mapped(self._datasets.find, alone, workers=min(self._workers, len(alone) or 1))
        found |= {urn: node for urn, node in zip(alone, nodes, strict=True) if node is not None}
        return found

    def _listed(self, where: _List, urns: Sequence[Urn], *, found: dict[Urn, Node]) -> list[Urn]:
        """Look into a list as far as it pays; return those that are still to be asked for."""
        seen: dict[_Path, Json] = {}
        wanted = {urn: _paths(urn) for urn in urns}
        paths = {path for some in wanted.values() for path in some}
        left: list[Urn] = [*urns]
        try:
            for page in self._api.pages(where.type, **{where.filter: where.of}):
                named = ((path_of(str(each["fullyQualifiedName"])), each) for each in page.entities)
                seen |= {path: entity for path, entity in named if path in paths}
                is_whole = not page.left
                left = [urn for urn, some in wanted.items() if not is_whole and some[0] not in seen]
                if math.isfinite(page.total):
                    self._totals[where] = page.total
                if page.left >= len(left) or page.total / _LONGEST > len(urns):
                    break
        except PlatformNotFoundError:
            return [*urns]
        for urn in (urn for urn in urns if urn not in {*left}):
            if entity := _first(seen, wanted[urn]):
                found[urn] = node_of(where.type, entity)
        return left


def _first(seen: Mapping[_Path, Json], paths: Iterable[_Path]) -> Json | None:
    return next((seen[path] for path in paths if path in seen), None)


def _list_of(place: Place) -> _List:
    if place.type == "table" and len(place.path) > _SCHEMA_LEVELS:
        return _List(place.type, "databaseSchema", fqn(place.path[:_SCHEMA_LEVELS]))
    return _List(place.type, "service", fqn(place.path[:1]))


def _paths(urn: Urn) -> tuple[_Path, ...]:
    """Return where a dataset may lie, the likeliest first."""
    place, nested = place_of(urn), nested_place(urn)
    return (place.path,) if nested is None else (place.path, nested.path)
