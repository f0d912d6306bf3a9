"""Finds the dataset that a person means, by URN or by name, and never guesses."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pydantic import Field, model_validator
from typing_extensions import override

from lumos.core.errors import PlatformError
from lumos.core.models.base import CanonicalModel, Name
from lumos.core.models.origin import folder_of
from lumos.core.settings.item_document import with_names

if TYPE_CHECKING:
    from lumos.core.models import LumosDataset, Urn
    from lumos.core.platform.interface import MetadataPlatformInterface

_MOST_NAMED = 5
_URN_SCHEME = "lumos://"
OTHER_NAMES = {
    "dataset_name": "name",
    "dataset": "name",
    "data_type": "platform",
    "datatype": "platform",
    "env": "environment",
}
"""The spellings of the earlier framework."""


class UnresolvedReferenceError(PlatformError):
    """A reference to a dataset fits none, or fits several."""

    code = "LUM-404"


class DatasetReference(CanonicalModel):
    """How people name a dataset: a URN, a name, or a name with its platform and environment."""

    name: Name = Field(description="A URN, or a name: `orders`, `finance.orders`, a path.")
    platform: str | None = Field(
        default=None, description="The platform or the format, such as snowflake or parquet."
    )
    environment: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _accept_other_spellings(cls, value: object) -> object:
        return {"name": value} if isinstance(value, str) else with_names(value, OTHER_NAMES)

    @override
    def __str__(self) -> str:
        where = [each for each in (self.platform, self.environment) if each]
        return f"{self.name} ({', '.join(where)})" if where else self.name

    def fits(self, dataset: LumosDataset) -> bool:
        """Return whether the dataset may be meant; what it does not say about itself fits."""
        if self.platform and self.platform.lower() not in _kinds(dataset):
            return False
        known = dataset.environment
        if self.environment and known and known.lower() != self.environment.lower():
            return False
        return self.name in _names(dataset)


class DatasetFinder:
    """Looks up references, reading the list of datasets once for all that are no URN."""

    def __init__(self, platform: MetadataPlatformInterface) -> None:
        self._platform = platform
        self._found: dict[DatasetReference, list[Urn]] = {}

    def prepare(self, references: Iterable[DatasetReference]) -> None:
        """Find all of these by one pass over the catalog."""
        wanted: dict[str, list[DatasetReference]] = {}
        for reference in references:
            if not reference.name.startswith(_URN_SCHEME) and reference not in self._found:
                self._found[reference] = []
                wanted.setdefault(reference.name, []).append(reference)
        if not wanted:
            return
        for dataset in self._platform.list():
            for name in _names(dataset) & wanted.keys():
                for reference in wanted[name]:
                    if reference.fits(dataset):
                        self._found[reference].append(dataset.urn)

    def find(self, reference: DatasetReference) -> LumosDataset:
        """Return the one dataset that is meant.

        Raises:
            DatasetNotFoundError: the catalog does not hold the URN.
            InvalidUrnError: the text begins like a URN and is none.
            UnresolvedReferenceError: no dataset fits, or several do.
        """
        if reference.name.startswith(_URN_SCHEME):
            return self._platform.get_dataset(reference.name)
        self.prepare([reference])
        found = self._found[reference] or self._found_by_path(reference)
        if not found:
            raise UnresolvedReferenceError(
                f"no dataset is called {reference}",
                hint="look for it with: lumos search NAME, and give its URN",
            )
        if len(found) > 1:
            named = ", ".join(found[:_MOST_NAMED]) + (", ..." if len(found) > _MOST_NAMED else "")
            raise UnresolvedReferenceError(
                f"{len(found)} datasets are called {reference}: {named}",
                hint="give the URN of the one that is meant",
            )
        return self._platform.get_dataset(found[0])

    def _found_by_path(self, reference: DatasetReference) -> list[Urn]:
        """Return the datasets at a path of this machine, however it is written."""
        if "/" not in reference.name and not reference.name.startswith((".", "~")):
            return []
        whole = reference.model_copy(update={"name": _as_path(reference.name)})
        self.prepare([whole])
        return self._found[whole]


def _as_path(name: str) -> str:
    return os.path.abspath(os.path.expanduser(name))


def _kinds(dataset: LumosDataset) -> set[str]:
    return {kind.lower() for kind in (dataset.platform, dataset.format) if kind}


def _names(dataset: LumosDataset) -> set[str]:
    return set(_name_forms(dataset))


def _name_forms(dataset: LumosDataset) -> Iterator[str]:
    """Yield the ways in which people write the name of a dataset, short and qualified."""
    yield dataset.name
    qualifiers = [each for each in (dataset.database, dataset.namespace) if each]
    for start in range(len(qualifiers)):
        yield ".".join([*qualifiers[start:], dataset.name])
    parts = dataset.urn.parts
    yield ".".join(parts)
    yield "/".join(parts)
    location = dataset.location
    if location:
        if location.path:
            yield location.path
        if folder := folder_of(dataset.extensions):
            yield f"{folder.rstrip('/')}/{(location.prefix or '').strip('/')}".rstrip("/")
        if location.bucket:
            yield "/".join([location.bucket, (location.prefix or "").strip("/")]).rstrip("/")
