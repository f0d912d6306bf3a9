"""Who is responsible: owners of datasets, and the people and groups themselves."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from lumos.core.models.base import (
    LARGEST_INTEGER,
    CanonicalModel,
    Name,
    NameSet,
    Properties,
)
from lumos.core.models.frozen import FrozenDict


def _upper(value: object) -> object:
    return value.strip().upper() if isinstance(value, str) else value


OwnerType = Annotated[str, BeforeValidator(_upper), Field(min_length=1)]


class Owner(CanonicalModel):
    """A user or a group that owns something, and in which role."""

    user: Name | None = None
    group: Name | None = None
    type: OwnerType = Field(
        default="technical_owner",  # validated to upper case, so that it is always written out
        validate_default=True,
        json_schema_extra={"default": "TECHNICAL_OWNER"},
        description="TECHNICAL_OWNER, BUSINESS_OWNER, DATA_STEWARD, CONSUMER or one of your own.",
    )

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if (self.user is None) == (self.group is None):
            raise PydanticCustomError("owner", "an owner is either a user or a group")
        return self

    @property
    def name(self) -> str:
        return self.user or self.group or ""

    @property
    def category(self) -> str:
        """`user` or `group`."""
        return "user" if self.user else "group"


def _sorted_owners(owners: tuple[Owner, ...]) -> tuple[Owner, ...]:
    return tuple(sorted(set(owners), key=lambda owner: (owner.category, owner.name, owner.type)))


class Ownership(CanonicalModel):
    """The owners of a dataset, in a stable order."""

    owners: Annotated[tuple[Owner, ...], AfterValidator(_sorted_owners)] = ()

    @model_validator(mode="before")
    @classmethod
    def _accept_a_bare_list(cls, value: object) -> object:
        return {"owners": value} if isinstance(value, list | tuple) else value


class User(CanonicalModel):
    """A person."""

    username: Name
    display_name: str | None = None
    first_name: str | None = None
    last_name: str | None = None
    full_name: str | None = None
    email: str | None = None
    title: str | None = None
    department_name: str | None = None
    department_id: str | Annotated[int, Field(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)] | None = (
        None
    )
    about_me: str | None = None
    teams: NameSet = ()
    skills: NameSet = ()
    picture_link: str | None = None
    manager_urn: str | None = None
    country_code: str | None = None
    system: bool = False
    custom_properties: Properties = Field(default_factory=FrozenDict)


class Group(CanonicalModel):
    """A team or another group of people."""

    name: Name
    display_name: str | None = None
    description: str | None = None
    email: str | None = None
    slack: str | None = None
    picture_link: str | None = None
    members: NameSet = ()
    admins: NameSet = ()
    custom_properties: Properties = Field(default_factory=FrozenDict)
