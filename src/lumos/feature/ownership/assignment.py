"""An assignment of an owner to a dataset, in Lumos's own shape or the earlier framework's."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from lumos.core.models.base import CanonicalModel, Name
from lumos.core.platform.dataset_reference import DatasetReference
from lumos.core.settings.item_document import with_names

_OTHER_NAMES = {
    "entity": "dataset",
    "owner_name": "owner",
    "owner_category": "category",
    "ownership_type": "type",
    "owner_type": "type",
}


class Assignment(CanonicalModel):
    """Who owns what.

    The owner is `user` or `group`, or `owner` with its `category`. Without a category, `owner` is
    looked up among the users and groups that the catalog knows.
    """

    dataset: DatasetReference
    user: Name | None = None
    group: Name | None = None
    owner: Name | None = None
    category: Literal["user", "group"] | None = None
    type: Name = "TECHNICAL_OWNER"

    @model_validator(mode="before")
    @classmethod
    def _accept_other_spellings(cls, value: object) -> object:
        return with_names(value, _OTHER_NAMES)

    @model_validator(mode="after")
    def _names_one_owner(self) -> Self:
        if len([each for each in (self.user, self.group, self.owner) if each]) != 1:
            raise ValueError("an assignment must name one owner: user, group, or owner")
        if self.category and not self.owner:
            raise ValueError("an assignment has a category, which goes with owner only")
        return self
