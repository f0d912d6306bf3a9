"""Who says something of a dataset."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from typing_extensions import override


class ContributorKind(StrEnum):
    """What gives a statement its weight."""

    SOURCE = "source"
    """It was found where the data is."""
    DECLARED = "declared"
    """A file that people keep says so: a dbt project, a contract, an enrichment."""
    PEOPLE = "people"
    """Somebody edited it in a catalog."""
    INFERRED = "inferred"
    """Lumos concluded it, such as from SQL, names or git."""
    ASSISTANT = "assistant"
    """A language model proposed it."""


class Contributor(NamedTuple):
    """One speaker: `source:lake`, `declared:dbt`, `people:datahub`."""

    kind: ContributorKind
    name: str

    @classmethod
    def of(cls, text: str) -> Contributor:
        """Read `kind:name`.

        Raises:
            ValueError: the kind is not known.
        """
        kind, _, name = text.partition(":")
        return cls(ContributorKind(kind), name)

    @override
    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"
