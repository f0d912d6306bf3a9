"""What Atlas makes of each concept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lumos.core.platform.fidelity import CONCEPTS, Fidelity

_NATIVE = (
    "dataset", "field", "field_description", "field_tag", "field_term", "tag", "term",
    "description", "tag_definition", "glossary_term", "lineage_edge",
)  # fmt: skip
_TRANSFORMED = (
    "kind", "environment", "format", "location", "nested_field", "field_default", "field_pii",
    "owner", "domain", "documentation", "property", "column_lineage", "primary_key", "statistics",
    "version", "job", "user", "group", "domain_definition", "identity",
)  # fmt: skip

FIDELITY: Final[Mapping[str, Fidelity]] = {
    **dict.fromkeys(CONCEPTS, Fidelity.STASHED),
    **dict.fromkeys(_NATIVE, Fidelity.NATIVE),
    **dict.fromkeys(_TRANSFORMED, Fidelity.TRANSFORMED),
}
"""Nothing is dropped: what Atlas has no place for lies in the stash of its entity."""
