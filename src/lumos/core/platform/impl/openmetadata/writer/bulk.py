"""New tables in one request, where the server takes them so.

A refused row is named by its table or by the request that it stood for, and a row that passed may
be a table that people had deleted. So nothing is concluded from the rows: what was made is read,
and every table that is not there as it was sent is written alone, which also shows what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from lumos.core.errors import PlatformConflictError, PlatformError, PlatformNotFoundError
from lumos.core.platform.impl.openmetadata.mapping.entities import NAME
from lumos.core.platform.impl.openmetadata.mapping.names import place_of
from lumos.core.platform.impl.openmetadata.mapping.stashed import MENTIONED
from lumos.core.platform.impl.openmetadata.writer.datasets import FIRST_VERSION
from lumos.core.platform.interface import changed_since
from lumos.core.platform.refusals import ends_run
from lumos.core.platform.threads import mapped

if TYPE_CHECKING:
    from lumos.core.models import LumosDataset, Urn
    from lumos.core.platform.impl.openmetadata.client import OpenMetadataApi
    from lumos.core.platform.impl.openmetadata.mapping.names import Place
    from lumos.core.platform.impl.openmetadata.mapping.stashed import Node, Plan
    from lumos.core.platform.impl.openmetadata.reader.look_up import LookUp
    from lumos.core.platform.impl.openmetadata.writer.datasets import DatasetWires

_TABLE: Final = "table"
_FEWEST: Final = 2
"""Of fewer tables a list of them says nothing new."""


class BulkWires:
    """Writes datasets that come together."""

    def __init__(
        self, api: OpenMetadataApi, datasets: DatasetWires, *, look_up: LookUp, workers: int
    ) -> None:
        self._api = api
        self._datasets = datasets
        self._look_up = look_up
        self._workers = workers
        self._is_taken = True

    def write(
        self, datasets: Mapping[Urn, LumosDataset], *, absent: Collection[Urn] = ()
    ) -> list[LumosDataset]:
        """Write as many datasets as go together, and return the others, in their order.

        Raises:
            PlatformConflictError: somebody made one of those that were absent.
            PlatformError: the server does not answer, or does not accept the token.
        """
        if not self._is_taken or len(datasets) < _FEWEST:
            self._refuse_made(absent, self._look_up.nodes([*absent]))
            return [*datasets.values()]
        held = self._look_up.nodes([*datasets])
        self._refuse_made(absent, held)
        new = {
            urn: dataset
            for urn, dataset in datasets.items()
            if urn not in held and place_of(urn).type == _TABLE and _stands_alone(dataset, datasets)
        }
        done = {*self._created(new), *self._updated(datasets, held)}
        return [dataset for urn, dataset in datasets.items() if urn not in done]

    def _refuse_made(self, absent: Iterable[Urn], held: Mapping[Urn, Node]) -> None:
        for urn in absent:
            if urn in held and not held[urn].stash.get(MENTIONED):
                raise changed_since(urn, place=NAME)

    def _updated(
        self, datasets: Mapping[Urn, LumosDataset], held: Mapping[Urn, Node]
    ) -> Iterator[Urn]:
        def update(urn: Urn) -> bool:
            place, entity = place_of(urn), held[urn].entity
            if not lies_at(held[urn], place):
                return False
            return _unless_changed(
                partial(self._datasets.write_at, place, entity, dataset=datasets[urn])
            )

        return self._passing(update, held)

    def _created(self, datasets: Mapping[Urn, LumosDataset]) -> Iterable[Urn]:
        if len(datasets) < _FEWEST:
            return []
        plans = {
            urn: plan
            for urn, dataset in datasets.items()
            if (plan := self._datasets.plan(dataset, place_of(urn), entity=None)) is not None
        }
        try:
            self._api.put_all(_TABLE, [self._datasets.creating(each) for each in plans.values()])
        except PlatformNotFoundError:
            self._is_taken = False
            return []
        except PlatformError as error:
            if ends_run(error):
                raise
            return []
        made = self._look_up.nodes([*plans])
        return self._passing(lambda urn: self._finished(plans[urn], made.get(urn)), plans)

    def _finished(self, plan: Plan, node: Node | None) -> bool:
        if node is None or node.entity.get("version") != FIRST_VERSION:
            return False
        return _unless_changed(
            partial(self._datasets.finish, plan, node.entity, stored=node.entity)
        )

    def _passing(self, done: Callable[[Urn], bool], urns: Collection[Urn]) -> Iterator[Urn]:
        verdicts = mapped(done, urns, workers=min(self._workers, len(urns) or 1))
        return (urn for urn, is_done in zip(urns, verdicts, strict=True) if is_done)


def lies_at(node: Node, place: Place) -> bool:
    """Return whether a dataset is where Lumos would put it."""
    return node.entity["fullyQualifiedName"] == place.fqn


def _unless_changed(act: Callable[[], None]) -> bool:
    """Do something with what was read; return whether it was still current."""
    try:
        act()
    except PlatformConflictError:
        return False
    return True


def _stands_alone(dataset: LumosDataset, others: Mapping[Urn, LumosDataset]) -> bool:
    """Return whether a table has no key that leads to one which may be new, too."""
    return not any(key.references in others for key in dataset.schema.foreign_keys)
