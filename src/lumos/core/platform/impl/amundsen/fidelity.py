"""How well Amundsen keeps each concept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lumos.core.platform.fidelity import CONCEPTS, Fidelity

_SHOWN: Final = {
    **dict.fromkeys(
        ("field", "field_description", "tag", "description", "user", "tag_definition"),
        Fidelity.NATIVE,
    ),
    **dict.fromkeys(
        ("dataset", "kind", "nested_field", "owner", "field_tag", "lineage_edge", "column_lineage"),
        Fidelity.TRANSFORMED,
    ),
}
FIDELITY: Final[Mapping[str, Fidelity]] = {
    concept: _SHOWN.get(concept, Fidelity.STASHED) for concept in CONCEPTS
}
"""What Amundsen does not show is kept whole beside the table, so nothing is dropped."""
