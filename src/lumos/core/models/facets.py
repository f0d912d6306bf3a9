"""The table of facets: every part of a dataset, and what each use of it has to know.

Hashing, import modes, the three-way merge of a sync, fidelity reports, the proof of a migration,
the side store and partial exports read this table and keep no list of parts themselves. A new
facet is a field of its model and a row here; a model field without a row fails a test.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, NamedTuple

FIELDS: Final = "schema.fields"
"""The path of a dataset's columns. A path below it is a facet of every column, at any depth."""


class FacetClass(StrEnum):
    """What a facet means to the version of a dataset."""

    CONTRACT = "CONTRACT"
    """Others rely on it: it is part of `contract_hash`, and a change of it is a new version."""
    DECLARED = "DECLARED"
    """Stated by the author of the dataset, carried along, and never compared."""
    OBSERVED = "OBSERVED"
    """Measured: recorded and reported, and never a reason for a new version."""


class MergeRule(StrEnum):
    """How two statements on one facet become one."""

    REPLACE = "REPLACE"
    """One of them holds as a whole."""
    TEXT = "TEXT"
    """One of them holds as a whole, where it says anything."""
    SET = "SET"
    """The members of both, less those that were removed."""
    MAP = "MAP"
    """Member by member, each known by its key."""


EditedPart = Literal["documentation", "tags", "owners", "governance", "properties"]
"""The setting below `sync.truth` that decides whose edits of a facet count."""
Section = Literal["tags", "glossary", "domains", "people"]
"""The section of a snapshot that defines what a facet names."""


class Facet(NamedTuple):
    """One part of a dataset."""

    path: str
    """Where it is in the JSON of a dataset, such as `documentation.sla`."""
    concept: str
    """What fidelity reports and the tables of catalog adapters call it."""
    merge: MergeRule = MergeRule.REPLACE
    kind: FacetClass = FacetClass.CONTRACT
    truth: EditedPart | None = None
    """Set for what people edit in catalogs; all else is technical."""
    identity: tuple[str, ...] = ()
    """Keys of the members of a list; the first that a member has identifies it."""
    any_order: bool = False
    """Whether a list is hashed regardless of its order; models sort the others themselves."""
    refers_to: Section | None = None
    sync_name: str | None = None
    """What the state of a sync calls it, where that is not its path."""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]

    @property
    def part(self) -> str:
        """The first part of the path: the field of the dataset."""
        return self.path.partition(".")[0]

    @property
    def of_column(self) -> bool:
        """Whether every column has one."""
        return self.path.startswith(f"{FIELDS}.")

    @property
    def edited_by_people(self) -> bool:
        return self.truth is not None

    @property
    def has_members(self) -> bool:
        """Whether it is a list or an object of members, each counted by itself."""
        return self.merge in (MergeRule.SET, MergeRule.MAP)


_REPLACE, _TEXT, _SET, _MAP = MergeRule
_OBSERVED, _DECLARED = FacetClass.OBSERVED, FacetClass.DECLARED

FACETS: Final = (
    Facet("urn", "dataset"),
    Facet("name", "dataset"),
    Facet("platform", "dataset"),
    Facet("database", "dataset"),
    Facet("namespace", "dataset"),
    Facet("schema.positional", "dataset"),
    Facet("kind", "kind"),
    Facet("environment", "environment"),
    Facet("format", "format"),
    Facet("location", "location"),
    Facet(FIELDS, "field", _MAP, identity=("name",)),
    Facet(
        f"{FIELDS}.description", "field_description", _TEXT, truth="documentation",
        sync_name="field",
    ),
    Facet(f"{FIELDS}.default", "field_default"),
    Facet(f"{FIELDS}.pii", "field_pii", truth="tags", sync_name="pii"),
    Facet(
        f"{FIELDS}.tags", "field_tag", _SET, truth="tags", refers_to="tags", sync_name="tags",
    ),
    Facet(
        f"{FIELDS}.glossary_terms", "field_term", _SET, truth="governance", refers_to="glossary",
        sync_name="terms",
    ),
    Facet(
        f"{FIELDS}.properties", "field_property", _MAP, truth="properties",
        sync_name="attributes",
    ),
    Facet(
        f"{FIELDS}.deprecation", "field_deprecation", truth="governance", sync_name="deprecation",
    ),
    Facet("schema.primary_key", "primary_key"),
    Facet("schema.unique_keys", "unique_key", _SET, any_order=True),
    Facet("schema.foreign_keys", "foreign_key", _SET, identity=("columns",), any_order=True),
    Facet("schema.checks", "check", _MAP, identity=("name",), any_order=True),
    Facet(
        "ownership.owners", "owner", _SET, truth="owners", identity=("user", "group"),
        refers_to="people",
    ),
    Facet("tags", "tag", _SET, truth="tags", refers_to="tags"),
    Facet("governance.glossary_terms", "term", _SET, truth="governance", refers_to="glossary"),
    Facet("governance.domains", "domain", _SET, truth="governance", refers_to="domains"),
    Facet("governance.deprecation", "deprecation", truth="governance"),
    Facet("governance.stability", "governance", truth="governance"),
    Facet("governance.access", "governance", truth="governance"),
    Facet("governance.retention_days", "governance", truth="governance"),
    Facet("documentation.description", "description", _TEXT, truth="documentation"),
    Facet("documentation.business_context", "documentation", _TEXT, truth="documentation"),
    Facet("documentation.sla", "documentation", _TEXT, truth="documentation"),
    Facet(
        "documentation.links", "link", _SET, truth="documentation", identity=("url",),
        any_order=True,
    ),
    Facet("properties", "property", _MAP, truth="properties"),
    Facet("assertions", "assertion", _MAP, identity=("name",), any_order=True),
    Facet("statistics", "statistics", kind=_OBSERVED),
    Facet("profile", "profile", kind=_OBSERVED),
    Facet("quality", "quality", kind=_OBSERVED),
    Facet("cost", "cost", kind=_OBSERVED),
    Facet("version", "version", kind=_DECLARED),
    Facet("extensions", "extension", _MAP, kind=_DECLARED, truth="properties"),
)  # fmt: skip
"""Every facet, in the order of reports."""

DERIVED: Final = "lineage"
"""The part of a dataset that follows from lineage edges, which are not parts of datasets."""
TYPE_PARTS: Final = frozenset(
    {
        "name", "type", "nullable", "native_type", "precision", "scale", "length", "unit",
        "timezone", "symbols", "fields", "items", "key", "value", "branches",
    }
)  # fmt: skip
"""What a column is, and not a facet of it: it changes with its type as a whole."""

BY_PATH: Final = {facet.path: facet for facet in FACETS}
COLUMN_FACETS: Final = {facet.name: facet for facet in FACETS if facet.of_column}
"""The facets of a column by their names there."""
DATASET_FACETS: Final = tuple(facet for facet in FACETS if not facet.of_column)
NOT_COMPARED: Final = frozenset(
    facet.part for facet in FACETS if facet.kind is not FacetClass.CONTRACT
)
"""Parts of a dataset that are recorded and reported, and never hashed, compared or versioned."""
OBSERVED_PARTS: Final = tuple(facet.path for facet in FACETS if facet.kind is FacetClass.OBSERVED)
"""The parts of a dataset that are the latest of a series of observations."""


def names_in_any_order(part: str | None = None) -> tuple[str, ...]:
    """Return the lists of a part, or of the dataset itself, whose order does not matter."""
    return tuple(
        facet.name
        for facet in DATASET_FACETS
        if facet.any_order and facet.path == (f"{part}.{facet.name}" if part else facet.name)
    )
