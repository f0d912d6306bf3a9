"""How well OpenMetadata keeps each concept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lumos.core.platform.fidelity import CONCEPTS, Fidelity

_NATIVE: Final = (
    "dataset", "kind", "field", "nested_field", "field_description",
    "field_tag", "field_term", "primary_key", "unique_key", "foreign_key", "tag",
    "term", "domain", "description", "lineage_edge", "column_lineage",
    "job", "tag_definition", "glossary_term", "domain_definition",
)  # fmt: skip
_TRANSFORMED: Final = (
    "format", "field_pii", "owner", "user", "group", "profile", "assertion", "quality",
    "property",
)  # fmt: skip

FIDELITY: Final[Mapping[str, Fidelity]] = {
    **dict.fromkeys(CONCEPTS, Fidelity.STASHED),
    **dict.fromkeys(_NATIVE, Fidelity.NATIVE),
    **dict.fromkeys(_TRANSFORMED, Fidelity.TRANSFORMED),
}
"""Nothing is dropped: what OpenMetadata has no place for lies in the custom property `lumos`."""
