"""What Amundsen knows of a table, in its own terms."""

from __future__ import annotations

from pydantic import Field

from lumos.core.models.base import CanonicalModel, NameSet, Properties
from lumos.core.models.frozen import FrozenDict


class AmundsenColumn(CanonicalModel):
    """A column: its type is text, and of labels it has badges only."""

    key: str
    name: str
    type: str
    description: str | None = None
    badges: NameSet = ()


class AmundsenTable(CanonicalModel):
    """A table with all that hangs on it; what has no canonical place is in `extras`."""

    key: str
    database: str
    cluster: str
    schema_name: str
    name: str
    is_view: bool = False
    description: str | None = None
    tags: NameSet = ()
    badges: NameSet = ()
    owners: NameSet = ()
    columns: tuple[AmundsenColumn, ...] = ()
    last_updated: int | None = None
    read_count: int | None = None
    extras: Properties = Field(
        default_factory=FrozenDict,
        description="`badges`: the category of each, of the table and of columns. "
        "`rows`: rows of other tables, as they are.",
    )
